# SPDX-License-Identifier: Apache-2.0
"""One agent in a lab: what it reports of its links, in both roles, and what survives it."""
import fcntl
import json
import os
import random
import re
import signal
import socket
import statistics
import struct
import threading
import time
import unittest
from contextlib import contextmanager
from pathlib import Path

from agent_wire import (EVENT, FLOWS, HELLO, LINKS, PROBE_REQUEST, PROBE_RESULT, SOURCES, STEERING_REPORT, FakeController, decode, encode,
                        in_netns, links_of, number)
from capture import capture
from certificates import Authority
from icrc import destination_qpn, roce_packets, source_port
from measure import Endpoints
from product import CONTROLLER, Product, Program
from support import PROGRAMS, make_lab
from te_lab import Traffic, wait_for

SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1


class Interface:
    """Sets an interface up and down without starting a program: the time of the change is known."""

    def __init__(self, lab, node, name):
        self.name = name.encode()
        self.socket = in_netns(lab.netns(node), lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))

    def set_up(self, up):
        """Returns when the change began, in seconds of the monotonic clock."""
        flags = struct.unpack("16sh", fcntl.ioctl(self.socket, SIOCGIFFLAGS, struct.pack("16sh", self.name, 0)))[1]
        request = struct.pack("16sh", self.name, flags | IFF_UP if up else flags & ~IFF_UP)
        begin = time.monotonic()
        fcntl.ioctl(self.socket, SIOCSIFFLAGS, request)
        return begin


class Stage:
    """A lab with a controller of the test's own, and agents that the test starts."""

    def __init__(self, lab):
        self.lab = lab
        self.directory = lab.directory / "agents"
        self.directory.mkdir()
        self.authority = Authority(self.directory / "certificates")
        self.controller = FakeController(lab.netns("mgmt"), self.authority)
        self.agents = []

    def config(self, node, role="host", extra=""):
        certificate, key = self.authority.issue(node)
        path = self.directory / f"{node}.yaml"
        path.write_text(f"""node: {node}
role: {role}
controllers: ["{CONTROLLER}:7411"]
certificate: {certificate}
key: {key}
ca: {self.authority.certificate}
bpffs: {self.lab.directory}/bpffs
{extra}
""")
        return path

    def start(self, node, config, command=()):
        """Starts an agent, without waiting for it."""
        log = self.directory / f"{node}-{len(self.agents)}.log"
        self.agents.append(Program(self.lab, node, [*command, PROGRAMS / "host-agent", "run", "--config", config], log))
        return self.agents[-1]

    def session_of(self, node, role="host", extra="", command=()):
        """Starts an agent; returns it and its first session."""
        sessions = len(self.controller.sessions)
        agent = self.start(node, self.config(node, role, extra), command)
        wait_for(agent.is_ready, 15, f"{agent.name} did not get ready")
        return agent, self.controller.wait_session(sessions + 1)

    def end(self):
        for agent in self.agents:
            agent.end()


@contextmanager
def stage(**spec):
    with make_lab(**{"hosts": 2, "leaves": 1, "spines": 2, **spec}) as lab:
        made = Stage(lab)
        with made.controller:
            try:
                yield made
            finally:
                made.end()


HOST = "interfaces: [eth0]\nqp_source: none"


class Switch(unittest.TestCase):
    def test_reports_every_link_of_a_leaf_but_the_loopback(self):
        with stage() as scene:
            _, session = scene.session_of("leaf1", "switch")
            hello = session.of_kind(HELLO)[0][1]
            self.assertEqual((hello[2], hello[4]), ([b"leaf1"], [b"switch"]))
            self.assertNotIn(8, hello)
            _, update = session.wait(LINKS)
            self.assertEqual(number(update, 2), 1)
            names = {name for name in os.listdir("/sys/class/net")} and set(
                re.findall(r"^\d+: ([^:@]+)", scene.lab.exec("leaf1", ["ip", "-o", "link", "show"]), re.M))
            self.assertEqual(set(links_of(update)), names - {"lo"})
            self.assertTrue(all(link["carrier"] and link["up"] for link in links_of(update).values()))

    def test_loads_nothing_and_refuses_to_probe_and_to_steer(self):
        with stage() as scene:
            agent, session = scene.session_of("leaf1", "switch")
            self.assertFalse((scene.lab.directory / "bpffs" / "roce-te").exists())
            flow = encode((1, 2), (2, bytes([10, 0, 0, 1])), (3, bytes([10, 0, 0, 2])), (4, 17))
            session.send(PROBE_REQUEST, encode((1, 7), (2, flow), (4, 50000), (5, 1)))
            _, result = session.wait(PROBE_RESULT)
            self.assertEqual((number(result, 1), number(result, 5)), (7, 1))
            self.assertIn(b"role switch", result[6][0])
            session.steer(3, {flow: 50000})
            _, report = session.wait(STEERING_REPORT)
            self.assertEqual(number(report, 1), 3)
            self.assertNotIn(2, report)
            self.assertIn(b"role switch", decode(report[3][0])[2][0])
            self.assertIsNone(agent.process.poll())

    def test_te_controller_accepts_it_and_takes_its_links(self):
        with make_lab(hosts=2, leaves=1, spines=2) as lab, Product(lab, PROGRAMS) as product:
            certificate, key = product.authority.issue("leaf1")
            config = product.directory / "leaf1.yaml"
            config.write_text(f"node: leaf1\nrole: switch\ncontrollers: ['{CONTROLLER}:7411']\ncertificate: {certificate}\n"
                              f"key: {key}\nca: {product.authority.certificate}\nbpffs: {lab.directory}/bpffs\n"
                              "metrics: {listen: '127.0.0.1:7413'}\n")
            agent = Program(lab, "leaf1", [PROGRAMS / "host-agent", "run", "--config", config], product.directory / "leaf1.log")
            try:
                wait_for(agent.is_ready, 15, "the agent did not get ready")
                wait_for(lambda: self.updates(lab) >= 3, 15, "no session, or links are not taken")
                self.assertIsNone(agent.process.poll())
            finally:
                agent.end()

    @staticmethod
    def updates(lab):
        text = lab.exec("leaf1", ["/usr/bin/python3", "-c", "import urllib.request as r; "
                                  "print(r.urlopen('http://127.0.0.1:7413/metrics', timeout=5).read().decode())"])
        if not re.search(r"^te_agent_connected 1$", text, re.M):
            return 0
        return int(re.search(r"^te_agent_link_updates_total (\d+)$", text, re.M).group(1))

    def test_doctor_and_cleanup_know_the_role(self):
        with stage() as scene:
            config = scene.config("leaf1", "switch")
            told = scene.lab.exec("leaf1", [PROGRAMS / "host-agent", "doctor", "--config", config])
            self.assertRegex(told, r"links +on +\d+ watched, \d+ with carrier")
            self.assertRegex(told, r"tc +off +role: switch")
            scene.lab.exec("leaf1", [PROGRAMS / "host-agent", "cleanup", "--config", config])


class Links(unittest.TestCase):
    def test_a_lost_carrier_is_told_within_milliseconds(self):
        with stage() as scene:
            _, port, _ = scene.lab.attachment("h1")
            _, session = scene.session_of("leaf1", "switch")
            far_end = Interface(scene.lab, "h1", "eth0")
            delays = []
            for up in [False, True] * 10:
                begin = far_end.set_up(up)
                told, _ = session.wait(LINKS, lambda update, up=up: port in links_of(update) and
                                       links_of(update)[port]["carrier"] == up, after=begin)
                delays.append(told - begin)
            print(f"carrier changes told after {statistics.median(delays) * 1e3:.1f} ms (median), "
                  f"{max(delays) * 1e3:.1f} ms at most", flush=True)
            self.assertLess(statistics.median(delays), 0.02)

    def test_a_flapping_link_is_told_with_all_its_changes(self):
        with stage() as scene:
            _, port, _ = scene.lab.attachment("h1")
            _, session = scene.session_of("leaf1", "switch")
            first = links_of(session.wait(LINKS)[1])[port]["carrier_changes"]
            far_end = Interface(scene.lab, "h1", "eth0")
            begin = time.monotonic()
            for _ in range(50):
                far_end.set_up(False)
                far_end.set_up(True)
            end = time.monotonic()
            sysfs = scene.lab.exec("leaf1", ["cat", f"/sys/class/net/{port}/carrier_changes"])
            session.wait(LINKS, lambda update: port in links_of(update) and links_of(update)[port]["carrier"] and
                         links_of(update)[port]["carrier_changes"] >= int(sysfs), after=end)
            self.assertGreaterEqual(int(sysfs), first + 2)
            updates = [when for when, _ in session.of_kind(LINKS) if when > begin]
            self.assertLessEqual(len(updates), 200 * (updates[-1] - begin) + 5)

    def test_interfaces_that_come_and_go_are_told(self):
        with stage() as scene:
            _, session = scene.session_of("leaf1", "switch")
            begin = time.monotonic()
            scene.lab.exec("leaf1", ["ip", "link", "add", "extra0", "type", "veth", "peer", "name", "extra1"])
            session.wait(LINKS, lambda update: links_of(update).get("extra0", {}).get("ifindex"), after=begin)
            begin = time.monotonic()
            scene.lab.exec("leaf1", ["ip", "link", "del", "extra0"])
            session.wait(LINKS, lambda update: links_of(update).get("extra0", {}).get("ifindex") == 0, after=begin)

    def test_leaving_a_bridge_is_no_removal(self):
        with stage() as scene:
            _, session = scene.session_of("leaf1", "switch")
            for command in ("add extra0 type veth peer name extra1", "add bridge0 type bridge", "set extra0 master bridge0",
                            "set extra0 nomaster", "add last0 type veth peer name last1"):
                scene.lab.exec("leaf1", ["ip", "link", *command.split()])
            session.wait(LINKS, lambda update: "last0" in links_of(update))
            self.assertFalse([update for _, update in session.of_kind(LINKS)
                              if links_of(update).get("extra0", {"ifindex": 1})["ifindex"] == 0])

    def test_a_host_reports_the_interfaces_it_was_given_with_their_counters(self):
        with stage() as scene:
            _, session = scene.session_of("h1", extra="interfaces: [eth0, eth9]\nqp_source: none")
            _, update = session.wait(LINKS)
            self.assertEqual({name: bool(link["ifindex"]) for name, link in links_of(update).items()},
                             {"eth0": True, "eth9": False})
            sent = links_of(update)["eth0"]["sent_packets"]
            scene.lab.exec("h1", ["/usr/bin/python3", "-c", "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
                                  f"[s.sendto(b'x', ('{scene.lab.attachment('h2')[2]}', 9)) for _ in range(100)]"])
            session.wait(LINKS, lambda later: number(later, 2) and links_of(later)["eth0"]["sent_packets"] >= sent + 100)


def flow_key(lab, source, destination, qpn):
    """An encoded FlowKey of a flow that leaves host `source` by eth0."""
    ifindex = int(lab.exec(source, ["cat", "/sys/class/net/eth0/ifindex"]))
    addresses = [socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)
                 for address in (lab.attachment(source)[2], lab.attachment(destination)[2])]
    return encode((1, ifindex), (2, addresses[0]), (3, addresses[1]), (4, qpn))


class Unreachable(unittest.TestCase):
    """A switch that says that there is no way is no hop: the probe went unanswered."""

    def test_no_route_is_no_answer(self):
        for family in (4, 6):
            with self.subTest(family=family), stage(leaves=2, family=family) as scene:
                _, session = scene.session_of("h1", extra=HOST)
                target = scene.lab.attachment("h2")[2]
                for spine in scene.lab.names("spine"):
                    scene.lab.exec(spine, ["ip", f"-{family}", "route", "replace", "unreachable", target])
                before = self.unreachables(scene.lab, family)
                key = flow_key(scene.lab, "h1", "h2", 17)
                session.send(PROBE_REQUEST, encode((1, 1), (2, key), (4, 50000), (5, 1), (5, 2), (6, 100), (7, 2), (8, 200)))
                session.wait(PROBE_RESULT, lambda result: number(result, 5))
                results = [result for _, result in session.of_kind(PROBE_RESULT)]
                answers = {number(answer, 2): answer.get(3, [b""])[0]
                           for result in results for answer in map(decode, result.get(2, []))}
                self.assertEqual(set(answers), {1, 2})
                self.assertNotEqual(answers[1], b"", "the leaf answers what expires there")
                self.assertEqual(answers[2], b"")
                self.assertEqual(sum(number(result, 4) for result in results), 2)
                self.assertGreater(self.unreachables(scene.lab, family), before, "no spine said anything")

    @staticmethod
    def unreachables(lab, family):
        """Destination-unreachable messages that h1 has got."""
        if family == 6:
            text = lab.exec("h1", ["cat", "/proc/net/snmp6"])
            return int(re.search(r"^Icmp6InDestUnreachs\s+(\d+)", text, re.M).group(1))
        names, values = re.findall(r"^Icmp: (.+)$", lab.exec("h1", ["cat", "/proc/net/snmp"]), re.M)
        return int(values.split()[names.split().index("InDestUnreachs")])


CAP_NET_ADMIN, CAP_BPF = 12, 39


class Capabilities(unittest.TestCase):
    """docs/running.md names what the agent goes on holding; here it is what the kernel says of a running one."""

    def held(self, agent):
        status = open(f"/proc/{agent.process.pid}/status", encoding="ascii").read()
        return {name: int(re.search(rf"^{name}:\t([0-9a-f]+)$", status, re.M).group(1), 16)
                for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs")}

    def test_a_host_keeps_two_and_still_steers_and_attaches(self):
        two = 1 << CAP_NET_ADMIN | 1 << CAP_BPF
        for attach in ("tcx", "clsact"):
            with self.subTest(attach=attach), stage() as scene:
                traffic = Traffic(scene.lab, pattern="ring", qps=1)
                agent, session = scene.session_of("h1", extra=f"interfaces: [eth0, late0]\nqp_source: none\nattach: {attach}")
                self.assertEqual(self.held(agent), {"CapInh": 0, "CapPrm": two, "CapEff": two, "CapBnd": two, "CapAmb": 0,
                                                    "NoNewPrivs": 1})
                flow = next(flow for flow in scene.lab.flows() if flow.source == "h1")
                key = flow_key(scene.lab, "h1", flow.destination, flow.destination_qpn)
                port = 0xC000 + (flow.source_port + 1) % 0x4000
                session.steer(1, {key: port})
                session.wait(STEERING_REPORT, lambda report: number(report, 1) == 1 and 2 in report)
                self.assertEqual(ports_on_wire(scene.lab, "h1")[flow.destination_qpn], {port})
                scene.lab.exec("h1", ["ip", "link", "add", "late0", "type", "veth", "peer", "name", "late1"])
                session.wait(SOURCES, lambda update: f"late0: {attach}".encode() in b" ".join(
                    decode(source).get(3, [b""])[0] for source in update[1]))
                self.assertIsNone(agent.process.poll())
                traffic.stop()

    def test_a_switch_keeps_none(self):
        with stage() as scene:
            agent, session = scene.session_of("leaf1", "switch")
            self.assertEqual([name for name, value in self.held(agent).items() if value and name != "NoNewPrivs"], [])
            session.wait(LINKS, after=time.monotonic())

    def test_a_host_starts_with_four(self):
        with stage() as scene:
            command = [Path("/usr/bin/setpriv"), "--bounding-set", "-all,+bpf,+net_admin,+net_raw,+perfmon"]
            _, session = scene.session_of("h1", extra=HOST, command=command)
            sources = {decode(source)[1][0]: number(decode(source), 2) for source in session.of_kind(HELLO)[0][1][6]}
            self.assertEqual((sources[b"tc"], sources[b"probe"], sources[b"links"]), (1, 1, 1))


class StaleSteering(unittest.TestCase):
    def dropped(self, session, key, port, reason):
        """Waits for the event and the report that say that a flow's steering was let go, and why."""
        _, event = session.wait(EVENT, lambda event: event.get(2) == [b"steering_dropped"])
        self.assertEqual((event[3][0], number(event, 4)), (key, port))
        self.assertIn(reason, event[6][0].decode())
        _, report = session.wait(STEERING_REPORT, lambda report: 2 not in report and 3 in report)
        self.assertEqual(decode(decode(report[3][0])[1][0])[1][0], key)

    def test_of_a_silent_flow_is_let_go(self):
        with stage() as scene:
            _, session = scene.session_of("h1", extra=HOST + "\nsteering_idle_s: 1")
            key = flow_key(scene.lab, "h1", "h2", 17)
            session.steer(1, {key: 50000})
            session.wait(STEERING_REPORT, lambda report: 2 in report)
            self.dropped(session, key, 50000, "no packet for 1 s")

    def test_of_a_queue_pair_that_is_another_one_now_is_let_go(self):
        with stage() as scene:
            table = scene.directory / "qp.json"
            self.write(table, 17)
            _, session = scene.session_of("h1", extra=f"interfaces: [eth0]\nqp_source: 'file:{table}'")
            key = flow_key(scene.lab, "h1", "h2", 17)
            session.steer(1, {key: 50000})
            session.wait(FLOWS, lambda update: any(number(flow, 7) == 7 for flow in map(decode, update.get(2, []))))
            self.write(table, 99)
            self.dropped(session, key, 50000, "another connection")

    @staticmethod
    def write(table, remote_qpn):
        """A table in which local QPN 7 is connected to a remote one."""
        fresh = table.with_suffix(".new")
        fresh.write_text(json.dumps([{"ifname": "rxe0", "lqpn": 7, "rqpn": remote_qpn, "type": "RC", "state": "RTS"}]))
        fresh.rename(table)


class Certificates(unittest.TestCase):
    def test_new_files_are_used_from_the_next_session_on_and_broken_ones_never(self):
        with stage() as scene:
            agent, session = scene.session_of("leaf1", "switch")
            first = session.certificate
            scene.authority.issue("leaf1")
            self.hang_up(agent, "certificate files read again")
            session.wait(LINKS, after=time.monotonic())     # the session goes on
            session.close()
            second = scene.controller.wait_session(2)
            self.assertNotEqual(second.certificate, first)
            (scene.directory / "certificates" / "leaf1.crt").write_text("broken")
            self.hang_up(agent, "cannot be used")
            second.close()
            third = scene.controller.wait_session(3)
            self.assertEqual(third.certificate, second.certificate)
            scene.authority.issue("leaf1")                  # and no signal
            third.close()
            self.assertNotIn(scene.controller.wait_session(4).certificate, (first, second.certificate))

    @staticmethod
    def hang_up(agent, answer):
        agent.process.send_signal(signal.SIGHUP)
        wait_for(lambda: answer in agent.log.read_text(errors="replace"), 10, f"the agent did not say '{answer}'")


class Steerer:
    """Wants other ports for all flows again and again, of whatever session there is, until stop()."""

    def __init__(self, scene, own_ports, dice):
        self.scene, self.own_ports, self.dice = scene, own_ports, dice
        self.revision = 0
        self.wanted = {key: set() for key in own_ports}     # every port that was ever asked for
        self.entries = {}
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def once(self):
        """One set, to the newest session; False when that is over."""
        self.entries = {key: self._port_but(own) for key, own in self.own_ports.items()}
        for key, port in self.entries.items():
            self.wanted[key].add(port)
        self.revision += 1
        try:
            self.scene.controller.sessions[-1].steer(self.revision, self.entries)
        except OSError:
            return False
        return True

    def stop(self):
        self.ended.set()
        self.thread.join()

    def _run(self):
        while not self.ended.wait(0.02):
            self.once()

    def _port_but(self, own):
        while True:
            port = self.dice.randrange(0xC000, 0x10000)
            if port != own:
                return port


class Kills(unittest.TestCase):
    """kill -9 of the agent at any moment, while it steers: the kernel goes on, and the next agent adopts all of it. TE_KILLS
    says how often."""

    KILLS = int(os.environ.get("TE_KILLS", "10"))
    OTHER_FLOWS = 300       # that are steered and never send: work for the agent

    def test_nothing_is_lost_and_steering_stays_in_force(self):
        dice = random.Random(20261130)
        with stage(leaves=2) as scene:
            config = scene.config("h1", extra=HOST)
            agent = scene.start("h1", config)
            first = scene.controller.wait_session()
            traffic = Traffic(scene.lab, pattern="ring", qps=2)
            flows = {flow_key(scene.lab, "h1", flow.destination, flow.destination_qpn): flow
                     for flow in scene.lab.flows() if flow.source == "h1"}
            own_ports = {key: flow.source_port for key, flow in flows.items()}
            own_ports.update({flow_key(scene.lab, "h1", "h2", 0x500000 + i): 0 for i in range(self.OTHER_FLOWS)})
            steerer = Steerer(scene, own_ports, dice)
            self.assertTrue(steerer.once())
            steered_s, _ = first.wait(STEERING_REPORT, lambda report: self.programmed(report, 2) == steerer.entries)
            unsteered = {key: self.unsteered(first, key, steered_s) for key in flows}
            steerer.thread.start()
            for _ in range(self.KILLS):
                time.sleep(dice.uniform(0, 0.8))
                agent.process.kill()
                agent.process.wait()
                agent = scene.start("h1", config)
            wait_for(agent.is_ready, 15, "the last agent did not get ready")
            steerer.stop()
            last = self.session_after(scene, agent)
            wait_for(steerer.once, 10, "no session is left")
            last.wait(STEERING_REPORT, lambda report: self.programmed(report, 2) == steerer.entries)
            self.check_adoptions(scene, steerer)
            traffic.stop()
            self.check_counters(scene, last, flows, unsteered)

    @staticmethod
    def session_after(scene, agent):
        """The session of the agent that was started last."""
        wait_for(lambda: "session with a controller" in agent.log.read_text(errors="replace"), 15, "no session")
        return scene.controller.sessions[-1]

    @staticmethod
    def programmed(message, field):
        """{key: port} of a message's SteeringEntries."""
        return {entry[1][0]: number(entry, 2) for entry in map(decode, message.get(field, []))}

    @staticmethod
    def reports(session, after=0.0):
        """(key, report) of every FlowReport, in order."""
        for when, update in session.of_kind(FLOWS):
            if when > after:
                for report in map(decode, update.get(2, [])):
                    yield report[1][0], report

    def unsteered(self, session, key, after):
        """Packets of a flow that went out with their own port, as the first report after a time says."""
        def report():
            return next((found for name, found in self.reports(session, after) if name == key), None)

        wait_for(report, 10, "the flow is not reported")
        return number(report(), 10) - number(report(), 19)

    def check_adoptions(self, scene, steerer):
        """Every agent but the first held all steering when it said hello, with ports that were asked for."""
        self.assertGreater(len(scene.controller.sessions), 2)
        for session in scene.controller.sessions[1:]:
            adopted = self.programmed(session.of_kind(HELLO)[0][1], 8)
            self.assertEqual(set(adopted), set(steerer.wanted))
            self.assertEqual([key for key, port in adopted.items() if port not in steerer.wanted[key]], [])

    def check_counters(self, scene, last, flows, unsteered):
        """Over all agents, counters only grow; in the end they say what the endpoints say that they sent."""
        seen = {}
        for session in scene.controller.sessions:
            for key, report in self.reports(session):
                self.assertGreaterEqual(number(report, 10), seen.get(key, 0))
                seen[key] = number(report, 10)
        sent = Endpoints(scene.lab).update().series
        for key, flow in flows.items():
            want = sent["h1", flow.source_qpn, "packets_sent"].values[-1]

            def newest(key=key):
                return [report for name, report in self.reports(last) if name == key][-1]

            wait_for(lambda want=want, newest=newest: number(newest(), 10) >= want, 10, "packets are missing in the counters")
            self.assertEqual(number(newest(), 10), want)
            self.assertEqual(number(newest(), 10) - number(newest(), 19), unsteered[key], "packets left with their own port")


def ports_on_wire(lab, host, seconds=0.5):
    """{destination QPN: source ports} of the RoCE packets that leave `host`, seen at its leaf."""
    leaf, port, _ = lab.attachment(host)
    path = lab.directory / f"wire-{host}.pcap"
    capture(lab, leaf, port, path, seconds=seconds).wait(15)
    ports = {}
    for packet in roce_packets(path):
        ports.setdefault(destination_qpn(packet), set()).add(source_port(packet))
    return ports


if __name__ == "__main__":
    unittest.main()
