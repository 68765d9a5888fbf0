# SPDX-License-Identifier: Apache-2.0
"""One agent in a lab: what it reports of its links, in both roles, what it holds and what it says of itself."""
import re
import signal
import socket
import statistics
import subprocess
import time
import unittest
from pathlib import Path

from agent_stage import HOST, Interface, flow_key, ports_on_wire, stage
from agent_wire import HELLO, LINKS, PROBE_REQUEST, PROBE_RESULT, SOURCES, STEERING_REPORT, decode, encode, links_of, number
from product import Product, Program
from support import PROGRAMS, make_lab
from te_lab import Traffic, wait_for


class Switch(unittest.TestCase):
    def test_reports_every_link_of_a_leaf_but_the_loopback(self):
        with stage() as scene:
            _, session = scene.session_of("leaf1", "switch")
            hello = session.of_kind(HELLO)[0][1]
            self.assertEqual((hello[2], hello[4]), ([b"leaf1"], [b"switch"]))
            self.assertNotIn(8, hello)
            _, update = session.wait(LINKS)
            self.assertEqual(number(update, 2), 1)
            names = set(
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
            config.write_text(f"node: leaf1\nrole: switch\ncontrollers: ['{lab.controller_endpoint()}']\ncertificate: {certificate}\n"
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


class Doctor(unittest.TestCase):
    def doctor(self, scene, *arguments):
        command = ["ip", "netns", "exec", scene.lab.netns("h1"), PROGRAMS / "host-agent", "doctor", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)

    def test_tells_what_works_and_opens_no_session(self):
        with stage() as scene:
            told = self.doctor(scene, "--config", scene.config("h1", extra=HOST))
            self.assertEqual(told.returncode, 0, told.stderr)
            for line in (r"certificate +on +for \d+ days more", rf"controller +on +{re.escape(scene.lab.controller_endpoint())}", r"links +on +1 watched",
                         r"tc +on", r"probe +on"):
                self.assertRegex(told.stdout, line)
            self.assertEqual(scene.controller.sessions, [])

    def test_tells_what_does_not(self):
        with stage() as scene:
            config = scene.config("h1", extra=HOST)
            scene.controller.listener.shutdown(socket.SHUT_RDWR)
            scene.controller.listener.close()
            certificate = scene.directory / "certificates" / "h1.crt"
            told = self.doctor(scene, "--config", config)
            self.assertEqual(told.returncode, 0, "a controller that is away is waited for")
            self.assertRegex(told.stdout, r"controller +off +.*Connection refused")
            scene.lab.exec("h1", ["openssl", "x509", "-in", certificate, "-signkey", certificate.with_suffix(".key"), "-days", "-1",
                                  "-out", certificate])
            told = self.doctor(scene, "--config", config)
            self.assertEqual(told.returncode, 1)
            self.assertRegex(told.stdout, r"certificate +off +.*expired")
            certificate.unlink()
            told = self.doctor(scene, "--config", config)
            self.assertEqual(told.returncode, 1)
            self.assertRegex(told.stdout, rf"certificate +off +.*{certificate}")

    def test_without_a_configuration_says_what_it_needs(self):
        with stage() as scene:
            for arguments, words in (((), "--config FILE"), (("--nonsense",), "--nonsense"),
                                     (("--config", "/nonexistent.yaml"), "/nonexistent.yaml")):
                told = self.doctor(scene, *arguments)
                self.assertEqual(told.returncode, 2, arguments)
                self.assertIn(words, told.stderr)


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


class Unreachable(unittest.TestCase):
    """A switch that says that there is no way on is told from a hop."""

    def test_no_route_is_an_answer_of_its_own_kind(self):
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
                answers = {number(answer, 2): (answer.get(3, [b""])[0] != b"", number(answer, 6))
                           for result in results for answer in map(decode, result.get(2, []))}
                self.assertEqual(answers, {1: (True, 0), 2: (True, 1)}, "(answered, unreachable) by TTL")
                self.assertEqual(sum(number(result, 4) for result in results), 0)
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


if __name__ == "__main__":
    unittest.main()
