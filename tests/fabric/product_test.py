# SPDX-License-Identifier: Apache-2.0
"""The whole product on a lab: what it does to real packets, and what stays when parts of it die."""
import json
import logging
import os
import subprocess
import time
import unittest
import warnings
from contextlib import contextmanager

import ideal
import path_map
from capture import capture
from icrc import carried, computed, destination_qpn, roce_packets, source_port
from measure import ConvergenceWatch, Endpoints
from product import Product
from support import PROGRAMS, make_lab
from te_lab import LabError, Traffic, wait_for

MESSAGE_BYTES = 65536
WINDOW_PACKETS = 16
BAR = 0.95
RING = {"hosts": 8, "leaves": 2, "spines": 4, "rate": "50mbit", "mtu": 4500, "seed": 1}
CALM_RATE, CALM_WINDOW = "20mbit", 8     # for files that run two at a time


class Scene:
    """A ring on two leaves x four hosts and four spines, with the product beside it."""

    def __init__(self, lab, traffic, product):
        self.lab, self.traffic, self.product = lab, traffic, product
        self.flows = lab.flows()
        self.endpoints = Endpoints(lab)
        self.ideal_bps = ideal.ideal_min_flow_bps(lab, self.flows, MESSAGE_BYTES)

    def status(self):
        return self.product.get("/v1/status")

    def shown_flows(self):
        return self.product.get("/v1/flows").get("flows", [])

    def steered(self):
        return {flow["id"]: flow for flow in self.shown_flows() if flow.get("steered")}

    def wait_converged(self, from_s, hold_s=2.0, seconds=20):
        """Seconds from `from_s` until every flow had its share of the ideal and kept it for `hold_s`."""
        convergence = ConvergenceWatch(self.endpoints, self.flows, from_s, BAR * self.ideal_bps, hold_s)
        found = []

        def done():
            self.traffic.check()
            self.endpoints.update()
            found.append(convergence.look())
            return found[-1] is not None

        try:
            wait_for(done, seconds, "the slowest flow did not reach its share of the ideal")
        except LabError as problem:
            raise LabError(f"{problem}\n{self.product.controller.log_end(30)}") from problem
        return found[-1] - from_s

    def act_until_converged(self):
        self.product.wait_for_first_reports(len(self.flows))
        begin = time.monotonic()
        self.product.act(True)
        return self.wait_converged(begin)

    def wait_settled(self, seconds=10):
        """Every move judged: nothing under way."""
        under_way = ("proposed", "sent", "programmed")
        wait_for(lambda: not any(move.get("state") in under_way for move in self.product.get("/v1/moves").get("moves", [])),
                 seconds, "moves are still under way")

    def ports_on_wire(self, host, seconds=0.5):
        """{destination QPN: source ports} of the message data that leaves `host`, seen at its leaf."""
        leaf, port, _ = self.lab.attachment(host)
        path = self.lab.directory / f"wire-{host}.pcap"
        capture(self.lab, leaf, port, path, seconds=seconds).wait(15)
        ports = {}
        for packet in roce_packets(path):
            ports.setdefault(destination_qpn(packet), set()).add(source_port(packet))
        return ports


@contextmanager
def scene(qp_source="file", spec=None, traffic_options=None, prepare=lambda lab: None, calm=False, **product_options):
    """`spec`: what the lab has unlike the quickstart's; `prepare(lab)` runs before the product starts. `calm`: less traffic."""
    with make_lab(**RING | ({"rate": CALM_RATE} if calm else {}) | (spec or {})) as lab:
        prepare(lab)
        options = ({"window_packets": CALM_WINDOW} if calm else {}) | (traffic_options or {})
        traffic = Traffic(lab, pattern="ring", qps=2, message_bytes=MESSAGE_BYTES, **options)
        with Product(lab, PROGRAMS, qp_source, **product_options) as product:
            yield Scene(lab, traffic, product)


def cold_start(seed):
    """Seconds to converge when the product acts before there is traffic: from when every agent has reported its flows."""
    with make_lab(**RING | {"seed": seed}) as lab, Product(lab, PROGRAMS) as product:
        product.act(True)
        stage = Scene(lab, Traffic(lab, pattern="ring", qps=2, message_bytes=MESSAGE_BYTES), product)
        reported_s = product.wait_for_first_reports(len(stage.flows))
        return stage.wait_converged(reported_s, hold_s=5.0)


class SteeredPackets(unittest.TestCase):
    """1,000 packets that the product rewrote carry the ICRC that the specification asks for."""

    def steered_packets(self, stage):
        """Packets of steered flows, seen at the leaf beyond the host, whose port is the one the product chose."""
        chosen = {}
        for flow in stage.steered().values():
            if flow["kind"] == "data":
                chosen.setdefault(flow["source_node"], {})[flow["destination_qpn"]] = flow["wire_port"]
        packets = []
        for host, ports in chosen.items():
            leaf, port, _ = stage.lab.attachment(host)
            path = stage.lab.directory / f"steered-{host}.pcap"
            capture(stage.lab, leaf, port, path, seconds=2.0).wait(15)
            sent = {flow.destination_qpn: flow.source_port for flow in stage.flows if flow.source == host}
            for packet in roce_packets(path):
                qpn = destination_qpn(packet)
                if qpn in ports and source_port(packet) == ports[qpn] != sent[qpn]:
                    packets.append(packet)
            if len(packets) >= 1000:
                break
        self.assertGreaterEqual(len(packets), 1000)
        return packets[:1000]

    def scapys_icrc(self, packet):
        from scapy.contrib.roce import BTH
        from scapy.layers.inet import IP
        layers = IP(packet)
        layers[BTH].icrc = None
        return int.from_bytes(bytes(layers)[-4:], "little")

    def test_ipv4_by_scapy_and_by_zlib(self):
        warnings.simplefilter("ignore")
        logging.getLogger("scapy").setLevel(logging.ERROR)
        with scene() as stage:
            stage.act_until_converged()
            packets = self.steered_packets(stage)
        self.assertEqual([packet for packet in packets if self.scapys_icrc(packet) != carried(packet)], [])
        self.assertEqual([packet for packet in packets if computed(packet) != carried(packet)], [])

    def test_ipv6_by_zlib(self):
        with scene(spec={"family": 6}) as stage:
            stage.act_until_converged()
            packets = self.steered_packets(stage)
        self.assertEqual([packet for packet in packets if computed(packet) != carried(packet)], [])


class Convergence(unittest.TestCase):
    def test_without_a_qp_table_all_comes_from_ebpf_and_probes(self):
        with scene(qp_source="none") as stage:
            self.assertLessEqual(stage.act_until_converged(), 10)
            self.assertEqual([flow for flow in stage.shown_flows() if flow.get("source_qpn")], [])

    def test_acting_from_the_start_converges_too_probing_included(self):
        self.assertLessEqual(cold_start(seed=2), 10)

    def test_by_clsact_as_on_older_kernels(self):
        with scene(attach="clsact") as stage:
            self.assertLessEqual(stage.act_until_converged(), 10)

    def test_what_is_shown_is_what_is_on_the_wire(self):
        with scene() as stage:
            stage.act_until_converged()
            stage.wait_settled()
            taken = path_map.observe(stage.lab, stage.flows)
            by_key = {(flow["source_node"], flow["destination_node"], flow["destination_qpn"]): flow
                      for flow in stage.shown_flows()}
            for flow, spine in taken.items():
                shown = by_key[flow.source, flow.destination, flow.destination_qpn]
                self.assertIn(spine, shown["path"], flow)
            self.assertEqual(len(taken), len(stage.flows))

    def test_no_message_lost_and_at_most_a_window_repeated_for_each_move(self):
        with scene() as stage:
            stage.product.wait_for_first_reports(len(stage.flows))
            begin = time.monotonic()
            stage.product.act(True)
            stage.wait_converged(begin)
            stage.wait_settled()
            moves = stage.status()["moves_total"]
            drops = stage.lab.queue_drops()
            stage.traffic.stop()
            stage.endpoints.update()
            self.assertGreater(moves, 0)
            self.assertLessEqual(stage.endpoints.count("retransmitted", begin), WINDOW_PACKETS * moves)
            self.assertEqual(stage.endpoints.count("timeouts", begin), 0)
            self.assertEqual(stage.endpoints.count("messages_lost"), 0)
            self.assertEqual(drops, 0)


class Modes(unittest.TestCase):
    def test_observing_plans_but_moves_nothing(self):
        with scene() as stage:
            stage.product.wait_for_first_reports(len(stage.flows))
            wait_for(lambda: stage.product.get("/v1/plan").get("moves"), 15, "no plan while observing")
            ports = {flow.destination_qpn: {flow.source_port} for flow in stage.flows if flow.source == "h1"}
            on_wire = stage.ports_on_wire("h1", 1.0)
            self.assertEqual({qpn: on_wire[qpn] for qpn in ports}, ports)
            self.assertEqual(stage.steered(), {})
            self.assertEqual(stage.status()["moves_total"], 0)

    def test_pause_takes_every_steering_back(self):
        with scene() as stage:
            stage.act_until_converged()
            self.assertTrue(stage.steered())
            stage.product.call("POST", "/v1/pause")
            wait_for(lambda: not stage.steered(), 5, "flows are still steered after pause")
            for host in stage.lab.names("host"):
                on_wire = stage.ports_on_wire(host)
                for flow in stage.flows:
                    if flow.source == host:
                        self.assertEqual(on_wire[flow.destination_qpn], {flow.source_port}, flow)


class Deaths(unittest.TestCase):
    def test_a_killed_controller_leaves_steering_and_comes_back_without_a_move(self):
        with scene() as stage:
            stage.act_until_converged()
            stage.wait_settled()
            steered = {key: flow["wire_port"] for key, flow in stage.steered().items()}
            moves = stage.status()["moves_total"]
            self.assertTrue(steered)
            stage.product.controller.process.kill()
            stage.product.controller.process.wait()
            begin = stage.endpoints.update().known_until_s()
            stage.wait_converged(begin)
            stage.product.start_controller()
            stage.product.wait_for_first_reports(len(stage.flows))
            wait_for(lambda: len(stage.steered()) == len(steered), 10, "the new controller does not know what is steered")
            begin = time.monotonic()
            stage.wait_converged(begin, hold_s=3.0)
            self.assertEqual({key: flow["wire_port"] for key, flow in stage.steered().items()}, steered)
            self.assertEqual(stage.status()["moves_total"], moves)

    def test_a_killed_agent_leaves_its_programs_and_the_next_one_adopts_them(self):
        with scene() as stage:
            stage.act_until_converged()
            stage.wait_settled()
            host, flow = next((flow["source_node"], flow) for flow in stage.steered().values() if flow["kind"] == "data")
            port, qpn = flow["wire_port"], flow["destination_qpn"]
            agent = stage.product.agents[host]
            agent.process.kill()
            agent.process.wait()
            self.assertEqual(stage.ports_on_wire(host)[qpn], {port})
            stage.product.agents[host] = stage.product.start_agent(host)
            wait_for(stage.product.agents[host].is_ready, 15, "the new agent did not get ready")
            stage.product.wait_for_first_reports(len(stage.flows))
            self.assertEqual(stage.ports_on_wire(host)[qpn], {port})
            self.assertEqual(stage.endpoints.update().count("messages_lost"), 0)

    def test_cleanup_removes_what_the_agent_left(self):
        with scene() as stage:
            stage.act_until_converged()
            agent = stage.product.agents["h1"]
            agent.end()
            done = stage.lab.exec("h1", [PROGRAMS / "host-agent", "cleanup", "--config", stage.product.directory / "h1.yaml"])
            self.assertFalse((stage.lab.directory / "bpffs" / "roce-te" / "h1").exists(), done)
            for flow in stage.flows:
                if flow.source == "h1":
                    self.assertEqual(stage.ports_on_wire("h1")[flow.destination_qpn], {flow.source_port})


class Tectl(unittest.TestCase):
    COMMANDS = (["status"], ["nodes"], ["links"], ["flows"], ["paths", "h1", "h2"], ["plan"], ["moves"])

    def test_every_command_answers_people_and_programs(self):
        with scene() as stage:
            stage.act_until_converged()
            flow = next(iter(stage.steered()))
            for command in (*self.COMMANDS, ["explain", flow]):
                with self.subTest(command=command):
                    people = self.tectl(stage, *command)
                    self.assertEqual(people.returncode, 0, people.stderr)
                    self.assertNotIn("\x1b", people.stdout)
                    programs = self.tectl(stage, "-o", "json", *command)
                    self.assertEqual(programs.returncode, 0, programs.stderr)
                    self.assertTrue(json.loads(programs.stdout))
            unknown = self.tectl(stage, "explain", "00000000")
            self.assertEqual(unknown.returncode, 1)
            self.assertIn("00000000", unknown.stderr)

    def test_no_controller_is_told_with_an_exit_code_of_its_own(self):
        done = subprocess.run([PROGRAMS / "tectl", "--api", "unix:/nonexistent/api.sock", "status"], capture_output=True, text=True,
                              check=False, timeout=20)
        self.assertEqual(done.returncode, 3)
        self.assertIn("/nonexistent/api.sock", done.stderr)

    @staticmethod
    def tectl(stage, *arguments):
        return subprocess.run([PROGRAMS / "tectl", "--api", f"unix:{stage.product.api_socket}", *arguments], capture_output=True,
                              text=True, check=False, timeout=20, env={**os.environ, "TERM": "dumb"})


if __name__ == "__main__":
    unittest.main()
