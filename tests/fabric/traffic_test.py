# SPDX-License-Identifier: Apache-2.0
"""The lab's RoCEv2 traffic without the product: what the endpoints put on the wire, and how fast it goes."""
import json
import subprocess
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace

import ideal
import path_map
from capture import capture
from icrc import carried, computed, roce_packets
from measure import Endpoints
from support import make_lab, placed_on, ring_flows, te_lab
from te_lab import Traffic, wait_for

MESSAGE_BYTES = 65536
WINDOW_PACKETS = 16


def kernel_source_port(flow_label, local_qpn, remote_qpn):
    """rdma_get_udp_sport() of Linux's include/rdma/ib_verbs.h."""
    if flow_label == 0:
        mixed = local_qpn * remote_qpn
        mixed ^= mixed >> 20
        mixed ^= mixed >> 40
        flow_label = mixed & 0xFFFFF
    return ((flow_label & 0x3FFF) ^ ((flow_label & 0xFC000) >> 14)) | 0xC000


def first_delivery_s(endpoints, flow):
    """When the first message bytes of a flow were seen to have arrived."""
    series = endpoints.series[flow.destination, flow.destination_qpn, "goodput_bytes"]
    return next(time_s for time_s, value in zip(series.times, series.values) if value > 0)


class StatsFiles(unittest.TestCase):
    """What endpoints write is read whole while its files are rotated."""

    def test_no_line_is_lost_when_a_new_file_takes_the_place_of_a_full_one(self):
        with tempfile.TemporaryDirectory() as directory:
            lab = SimpleNamespace(directory=Path(directory), names=lambda kind: ["h1"])
            path = lab.directory / "stats" / "h1.jsonl"
            path.parent.mkdir()
            path.write_text(self.line(1))
            endpoints = Endpoints(lab)
            self.assertEqual(endpoints.update().count("messages_completed"), 1)
            with open(path, "a", encoding="ascii") as file:
                file.write(self.line(2))
            path.rename(path.with_suffix(".jsonl.1"))
            self.assertEqual(endpoints.update().count("messages_completed"), 1)     # there is no file for an instant
            path.write_text("".join(self.line(number) for number in range(3, 20)))
            endpoints.update()
            self.assertEqual(endpoints.series["h1", 7, "messages_completed"].values, list(range(1, 20)))
            for number in (20, 21):     # two files later, what was in between is lost
                path.rename(path.with_suffix(".jsonl.1"))
                path.write_text(self.line(number))
            endpoints.update()
            self.assertEqual(endpoints.series["h1", 7, "messages_completed"].values, [*range(1, 20), 21])

    @staticmethod
    def line(number):
        counters = dict.fromkeys(Endpoints.COUNTERS, number)
        sample = {"t_ns": number * 10**8, "icrc_errors": 0, "malformed": 0, "receive_drops": 0, "qps": [{"qpn": 7} | counters]}
        return json.dumps(sample) + "\n"

    def test_what_cannot_be_meant_is_refused(self):
        with make_lab(hosts=2, spines=1) as lab:
            for option, value in (("--seconds", "-1"), ("--seconds", "nan"), ("--seconds", "inf"), ("--qps", "0")):
                with self.subTest(option=option, value=value):
                    refused = te_lab("traffic", "--id", lab.id, option, value)
                    self.assertIn(refused.returncode, (1, 2))
                    self.assertIn(option, refused.stderr)


class PlacedTraffic(unittest.TestCase):
    """Flows on paths chosen by hand."""

    def run_placed(self, lab, spine_of, seconds=4.0, **options):
        """Runs the ring with flow number n of a leaf on spine `spine_of(n)`."""
        labels = placed_on(lab, lab.directory / "labels.json", ring_flows(lab), spine_of)
        traffic = Traffic(lab, flow_labels=labels, seconds=seconds, **options)
        traffic.wait(seconds + 15)
        return lab.flows(), Endpoints(lab).update()

    def best_placement(self, family):
        """What a run with every flow at its best place showed: (least and most of the ideal in any second, packets
        retransmitted, packets dropped)"""
        with make_lab(family=family) as lab:
            spines = lab.names("spine")
            flows, endpoints = self.run_placed(lab, lambda number: spines[number % 4], seconds=6.0)
            best = ideal.ideal_min_flow_bps(lab, flows, MESSAGE_BYTES)
            begin = max(first_delivery_s(endpoints, flow) for flow in flows) + 0.5
            windows = [endpoints.slowest_bps(flows, begin + step / 10, begin + step / 10 + 1) for step in range(41)]
            return min(windows) / best, max(windows) / best, endpoints.count("retransmitted"), lab.queue_drops()

    def test_the_best_placement_gives_every_flow_its_ideal_in_every_second(self):
        for family in (4, 6):
            with self.subTest(family=family):
                seen = self.best_placement(family)
                good = seen[0] >= 0.97 and seen[2] == 0
                if not good:    # a machine that does something else for a while: once more
                    print(f"IPv{family}: {seen}, tried again", flush=True)
                    seen = self.best_placement(family)
                least, most, retransmitted, drops = seen
                self.assertGreaterEqual(least, 0.97)
                self.assertLessEqual(most, 1.001)
                self.assertEqual(retransmitted, 0)
                self.assertEqual(drops, 0)

    def test_the_best_placement_is_not_disturbed_by_congestion_marks(self):
        with make_lab() as lab:
            spines = lab.names("spine")
            flows, endpoints = self.run_placed(lab, lambda number: spines[number % 4])
            self.assertLess(endpoints.count("cnps_sent"), 20)
            lowest = min(qp["rate_bps"] for host in lab.names("host")
                         for line in (lab.directory / "stats" / f"{host}.jsonl").read_text().splitlines()
                         for qp in json.loads(line)["qps"])
            self.assertGreater(lowest, 0.6 * lab.rate_bps)
            self.assertEqual(len(flows), 16)

    def test_three_flows_on_an_uplink_are_marked_and_cut(self):
        with make_lab() as lab:
            order = [0, 0, 0, 1, 1, 2, 2, 3]
            spines = lab.names("spine")
            flows, endpoints = self.run_placed(lab, lambda number: spines[order[number]])
            self.assertGreater(endpoints.count("ce_marks"), 100)
            self.assertGreater(endpoints.count("cnps_sent"), 100)
            self.assertEqual(lab.queue_drops(), 0)
            self.assertEqual(endpoints.count("messages_lost"), 0)
            begin = endpoints.known_until_s() - 3
            best = ideal.ideal_min_flow_bps(lab, flows, MESSAGE_BYTES)
            self.assertLess(endpoints.slowest_bps(flows, begin, begin + 2), 0.75 * best)

    def test_no_queue_drops_when_all_flows_share_one_uplink(self):
        with make_lab() as lab:
            flows, endpoints = self.run_placed(lab, lambda number: "spine1")
            self.assertEqual(lab.queue_drops(), 0)
            for counter in ("retransmitted", "timeouts", "messages_lost"):
                self.assertEqual(endpoints.count(counter), 0, counter)
            begin = endpoints.known_until_s() - 3
            total = sum(endpoints.goodput_bps(flow, begin, begin + 2) for flow in flows)
            # Two directions, one uplink each: the links stay full.
            best = 2 * lab.rate_bps * MESSAGE_BYTES / ideal.message_wire_bytes(MESSAGE_BYTES, lab.spec["mtu"], 4)
            self.assertGreater(total / best, 0.93)

    def test_packets_take_the_spines_that_the_routing_names(self):
        with make_lab() as lab:
            traffic = Traffic(lab)
            flows = lab.flows()
            expected = {flow: lab.next_hops(flow.source, flow.destination, [flow.source_port])[0] for flow in flows}
            self.assertEqual(path_map.observe(lab, flows, seconds=1.0), expected)
            traffic.stop()


class MovedTraffic(unittest.TestCase):
    def test_a_move_costs_at_most_a_window_and_no_timeout(self):
        moves = [(300 + 150 * number, number % 16, 5 + number) for number in range(24)]
        with make_lab() as lab:
            traffic = Traffic(lab, seconds=5, relabel=[":".join(map(str, move)) for move in moves])
            traffic.wait(20)
            endpoints = Endpoints(lab).update()
            self.assertLessEqual(endpoints.count("retransmitted"), len(moves) * WINDOW_PACKETS)
            for counter in ("timeouts", "messages_lost"):
                self.assertEqual(endpoints.count(counter), 0, counter)
            self.assertEqual(lab.queue_drops(), 0)


class Endings(unittest.TestCase):
    def test_every_message_that_was_begun_is_finished(self):
        for verb in ("write", "send"):
            with self.subTest(verb=verb), make_lab(hosts=4) as lab:
                traffic = Traffic(lab, pattern="permutation", verb=verb, message_bytes=10_001)
                wait_for(lambda: Endpoints(lab).update().count("messages_completed") > 100, 10, "no traffic")
                traffic.stop()
                endpoints = Endpoints(lab).update()
                self.assertEqual(endpoints.count("messages_completed"), endpoints.count("messages_received"))
                self.assertEqual(endpoints.count("goodput_bytes"), 10_001 * endpoints.count("messages_received"))
                self.assertEqual(endpoints.count("messages_lost"), 0)

    def test_a_dead_path_ends_a_qp_and_counts_its_messages_as_lost(self):
        with make_lab(hosts=2, leaves=2, spines=1) as lab:
            traffic = Traffic(lab, pattern="pairs")
            wait_for(lambda: Endpoints(lab).update().count("messages_completed") > 10, 10, "no traffic")
            lab.fail("spine1:leaf2")
            wait_for(lambda: Endpoints(lab).update().count("messages_lost") > 0, 10, "no QP gave up")
            traffic.stop()
            endpoints = Endpoints(lab).update()
            self.assertEqual(endpoints.count("timeouts"), 2 * 8)

    def test_a_short_outage_is_survived_by_going_back(self):
        for cable in ("spine1:leaf2", "h1:eth0"):
            with self.subTest(cable=cable), make_lab(hosts=2, leaves=2, spines=1) as lab:
                traffic = Traffic(lab, pattern="pairs")
                wait_for(lambda: Endpoints(lab).update().count("messages_completed") > 10, 10, "no traffic")
                lab.fail(cable)
                wait_for(lambda: Endpoints(lab).update().count("timeouts") > 0, 5, "the cable still carries packets")
                lab.restore(cable)
                before = Endpoints(lab).update().count("messages_completed")
                wait_for(lambda: Endpoints(lab).update().count("messages_completed") > before + 20, 10, "traffic did not come back")
                traffic.stop()
                endpoints = Endpoints(lab).update()
                self.assertEqual(endpoints.count("messages_lost"), 0)
                self.assertEqual(endpoints.count("messages_completed"), endpoints.count("messages_received"))


class OnTheWire(unittest.TestCase):
    def test_source_ports_follow_the_kernels_rule(self):
        with make_lab(hosts=4) as lab:
            traffic = Traffic(lab)
            for flow in lab.flows():
                self.assertEqual(flow.source_port, kernel_source_port(0, flow.source_qpn, flow.destination_qpn))
            traffic.stop()

    def test_the_qp_table_has_the_form_of_rdma_resource_show(self):
        with make_lab(hosts=2, spines=1) as lab:
            traffic = Traffic(lab, pattern="pairs", qps=3)
            path = lab.directory / "qp" / "h1.json"
            wait_for(lambda: '"RTS"' in path.read_text(), 5, "the QPs did not get ready to send")
            table = json.loads(path.read_text())
            self.assertEqual(set(table[0]), {"ifindex", "ifname", "port", "lqpn", "rqpn", "type", "state", "rq-psn", "sq-psn",
                                             "path-mig-state", "pid", "comm"})
            self.assertEqual({(qp["lqpn"], qp["rqpn"]) for qp in table},
                             {(flow.source_qpn, flow.destination_qpn) for flow in lab.flows()})
            self.assertEqual({qp["type"] for qp in table}, {"RC"})
            traffic.stop()
            self.assertEqual(json.loads(path.read_text()), [])

    def captured(self, family, verb, check):
        with make_lab(hosts=4, family=family) as lab, tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "host.pcap"
            traffic = Traffic(lab, verb=verb)
            taken = capture(lab, "h1", "eth0", path, seconds=1.5)
            self.assertEqual(taken.wait(10), 0)
            traffic.stop()
            check(path)

    def test_tshark_finds_no_malformed_packet(self):
        def check(path):
            columns = subprocess.run(
                ["tshark", "-r", path, "-T", "fields", "-e", "infiniband.bth.opcode", "-e", "_ws.malformed",
                 "-e", "_ws.expert.severity"], capture_output=True, text=True, check=True).stdout.splitlines()
            packets = [line.split("\t") for line in columns]
            roce = [packet for packet in packets if packet[0]]
            self.assertGreater(len(roce), 1000)
            self.assertEqual([packet for packet in packets if packet[1]], [])
            errors = [packet for packet in roce if "8388608" in packet[2]]  # PI_ERROR
            self.assertEqual(errors, [])
            opcodes = {int(packet[0]) for packet in roce}
            self.assertIn(17, opcodes)
            self.assertTrue({6, 7, 8} <= opcodes or {0, 1, 2} <= opcodes, opcodes)

        for family, verb in ((4, "write"), (6, "send")):
            with self.subTest(family=family, verb=verb):
                self.captured(family, verb, check)

    def test_every_packet_carries_the_icrc_that_the_specification_asks_for(self):
        def check(path):
            packets = list(roce_packets(path))
            self.assertGreater(len(packets), 1000)
            self.assertEqual([packet for packet in packets if carried(packet) != computed(packet)], [])

        for family in (4, 6):
            with self.subTest(family=family):
                self.captured(family, "write", check)


if __name__ == "__main__":
    unittest.main()
