# SPDX-License-Identifier: Apache-2.0
"""A lab comes up, goes down, and leaves nothing behind."""
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import path_map
import te_lab as te_lab_module
from measure import Endpoints
from support import TE_LAB, lab_id, left_over, make_lab, namespaces, te_lab
from te_lab import Traffic, wait_for


class Lifecycle(unittest.TestCase):
    def setUp(self):
        self.ids = []

    def tearDown(self):
        for identifier in self.ids:
            if left_over(identifier):
                te_lab("down", "--id", identifier)

    def new_id(self):
        self.ids.append(lab_id())
        return self.ids[-1]

    def test_down_removes_what_up_made(self):
        identifier = self.new_id()
        self.assertEqual(te_lab("up", "--id", identifier).stdout.strip(), identifier)
        self.assertEqual(len(namespaces(identifier)), 8 + 2 + 4 + 2)
        self.assertEqual(te_lab("down", "--id", identifier).returncode, 0)
        self.assertEqual(left_over(identifier), [])

    def test_every_port_is_up_when_up_returns(self):
        for family in (4, 6):
            with self.subTest(family=family), make_lab(family=family) as lab:
                for node in lab.names("host") + lab.names("leaf") + lab.names("spine"):
                    links = json.loads(lab.exec(node, ["ip", "-json", "link", "show"]))
                    waiting = [link["ifname"] for link in links if link["operstate"] not in ("UP", "UNKNOWN")]
                    self.assertEqual(waiting, [], node)

    def test_every_host_reaches_every_other(self):
        for family in (4, 6):
            with self.subTest(family=family), make_lab(hosts=4, leaves=2, spines=2, family=family) as lab:
                for source in lab.names("host"):
                    for target in lab.names("host"):
                        if source != target:
                            answer = lab.next_hops(source, target, [50000])
                            self.assertEqual(len(answer), 1)
                            lab.exec(source, ["/usr/bin/python3", "-c", REACH, lab.attachment(target)[2]])

    def test_two_labs_live_side_by_side(self):
        with make_lab() as one, make_lab(family=6) as other:
            one.down()
            self.assertEqual(left_over(one.id), [])
            self.assertEqual(len(namespaces(other.id)), 16)

    def test_up_names_a_lab_by_itself_when_no_name_is_given(self):
        identifier = te_lab("up", "--hosts", 2, "--spines", 1).stdout.strip()
        self.ids.append(identifier)
        self.assertRegex(identifier, r"^lab\d+$")

    def test_a_name_in_use_is_refused_with_what_to_do(self):
        with make_lab(hosts=2, spines=1) as lab:
            refused = te_lab("up", "--id", lab.id)
            self.assertEqual(refused.returncode, 1)
            self.assertIn(f"te-lab down --id {lab.id}", refused.stderr)
            self.assertEqual(len(namespaces(lab.id)), 2 + 2 + 1 + 2)

    def test_a_spec_file_says_what_to_build(self):
        identifier = self.new_id()
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as spec:
            spec.write(f"id: {identifier}\nhosts: 3\nleaves: 3\nspines: 2\nrate: 100mbit\nseed: 7\n")
            spec.flush()
            te_lab("up", "--file", spec.name)
        status = json.loads(te_lab("status", "--id", identifier, "-o", "json").stdout)[0]
        self.assertEqual((status["hosts"], status["leaves"], status["rate_bps"], status["seed"]), (3, 3, 100e6, 7))

    def test_a_mistake_in_a_spec_file_is_named_with_its_line(self):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as spec:
            spec.write("hosts: 4\nspinez: 2\n")
            spec.flush()
            refused = te_lab("up", "--file", spec.name)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("spinez", refused.stderr)

    def test_up_that_fails_half_way_removes_what_it_made(self):
        identifier = self.new_id()
        with tempfile.TemporaryDirectory() as programs:
            os.symlink(shutil.which("ip"), Path(programs) / "ip")  # no tc: shaping fails
            failed = te_lab("up", "--id", identifier, env={"PATH": programs})
        self.assertEqual(failed.returncode, 1)
        self.assertIn("tc", failed.stderr)
        self.assertEqual(left_over(identifier), [])

    def test_down_clears_up_after_an_up_that_was_killed(self):
        identifier = self.new_id()
        up = subprocess.Popen([TE_LAB, "up", "--id", identifier, "--hosts", "64", "--leaves", "16", "--spines", "8"],
                              stdout=subprocess.DEVNULL)
        wait_for(lambda: len(namespaces(identifier)) > 4, 10, "up made no namespaces")
        up.kill()
        up.wait()
        self.assertEqual(te_lab("down", "--id", identifier).returncode, 0)
        self.assertEqual(left_over(identifier), [])

    def test_an_interrupted_up_clears_up_by_itself(self):
        identifier = self.new_id()
        up = subprocess.Popen([TE_LAB, "up", "--id", identifier, "--hosts", "64", "--leaves", "16", "--spines", "8"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(lambda: len(namespaces(identifier)) > 4, 10, "up made no namespaces")
        up.send_signal(signal.SIGTERM)
        self.assertEqual(up.wait(20), 1)
        self.assertEqual(left_over(identifier), [])

    def test_down_ends_traffic_and_programs_in_the_lab(self):
        with make_lab(hosts=4, spines=2) as lab:
            traffic = Traffic(lab, pattern="ring")
            sleeper = lab.popen("leaf1", ["sleep", "1000"])
            lab.down()
            self.assertNotEqual(sleeper.wait(5), None)
            traffic.process.wait(5)
            traffic.process.stderr.close()
            self.assertEqual(left_over(lab.id), [])

    def test_endpoints_end_with_a_traffic_that_was_killed(self):
        with make_lab(hosts=4, spines=2) as lab:
            traffic = Traffic(lab, pattern="ring")
            traffic.process.kill()
            traffic.process.wait()
            traffic.process.stderr.close()

            def processes():
                return json.loads(te_lab("status", "--id", lab.id, "-o", "json").stdout)[0]["processes"]

            wait_for(lambda: processes() == 0, 5, "endpoints outlive their parent")
            lab.down()
            self.assertEqual(left_over(lab.id), [])

    def test_a_program_that_is_killed_leaves_no_lab_behind(self):
        identifier = self.new_id()
        program = subprocess.Popen(["/usr/bin/python3", "-c", HOLD_A_LAB, DEMO, TE_LAB, identifier], stdout=subprocess.PIPE)
        self.assertEqual(program.stdout.readline(), b"up\n")
        self.assertNotEqual(left_over(identifier), [])
        program.kill()
        program.communicate()
        wait_for(lambda: not left_over(identifier), 10, "the lab outlives its program")

    def test_a_program_that_is_interrupted_leaves_no_half_built_lab(self):
        for number, wait_s in enumerate((0.0, 0.1, 0.3, 0.6, 1.0, 2.0)):
            with self.subTest(wait_s=wait_s):
                identifier = self.new_id()
                program = subprocess.Popen(["/usr/bin/python3", "-c", BUILD_A_LAB, DEMO, TE_LAB, identifier],
                                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
                wait_for(lambda: namespaces(identifier), 10, "no lab is begun")
                end = time.monotonic() + wait_s
                wait_for(lambda: time.monotonic() > end, 10, "")
                if number % 2:
                    program.send_signal(signal.SIGINT)
                else:
                    os.killpg(program.pid, signal.SIGINT)   # as Ctrl-C does
                program.wait(30)
                wait_for(lambda: not left_over(identifier), 10, "half a lab outlives its program")

    def test_the_topology_file_has_no_seed_and_no_routes(self):
        with make_lab(hosts=2, spines=2, seed=424242) as lab:
            text = (lab.directory / "topology.yaml").read_text()
            self.assertNotIn("424242", text)
            self.assertEqual(set(line.split(":")[0] for line in text.splitlines() if not line.startswith(" ")),
                             {"version", "nodes", "links"})

    def test_the_seed_repeats_the_mapping_of_ports_to_paths(self):
        ports = range(50000, 50032)
        mappings = []
        for seed in (5, 5, 6):
            with make_lab(hosts=2, spines=4, seed=seed) as lab:
                mappings.append(lab.next_hops("h1", "h2", ports))
        self.assertEqual(mappings[0], mappings[1])
        self.assertNotEqual(mappings[0], mappings[2])

    def test_a_switch_answers_at_most_its_share_of_expired_packets(self):
        for family in (4, 6):
            with self.subTest(family=family), make_lab(hosts=2, spines=1, family=family) as lab:
                target = lab.attachment("h2")[2]
                answers = json.loads(lab.exec("h1", ["/usr/bin/python3", "-c", EXPIRE, target, 1000]))
                # A burst of 50, then 200 a second, for the 0.5 s of sending.
                self.assertGreater(answers, 60)
                self.assertLess(answers, 250)


class Rails(unittest.TestCase):
    """Hosts with several NICs."""

    def in_each_family(self, check):
        for family in (4, 6):
            with self.subTest(family=family), make_lab(hosts=4, nics=2, leaves=4, spines=2, family=family) as lab:
                check(lab)

    def test_a_nic_reaches_the_same_nic_of_every_host_by_its_own_leaf(self):
        def check(lab):
            for source in lab.names("host"):
                for nic in range(2):
                    before = self.sent(lab, source)
                    for target in lab.names("host"):
                        if source != target:
                            lab.exec(source, ["/usr/bin/python3", "-c", REACH, lab.attachment(target, nic)[2],
                                              lab.attachment(source, nic)[2]])
                    grown = [after - count for after, count in zip(self.sent(lab, source), before)]
                    self.assertGreaterEqual(grown[nic], 3)
                    self.assertLess(grown[1 - nic], 3)  # but for what IPv6 says by itself

        self.in_each_family(check)

    def sent(self, lab, host):
        links = {link["ifname"]: link for link in json.loads(lab.exec(host, ["ip", "-s", "-json", "link", "show"]))}
        return [links[f"eth{nic}"]["stats64"]["tx"]["packets"] for nic in range(2)]

    def test_the_topology_file_has_every_nic(self):
        with make_lab(hosts=4, nics=2, leaves=4, spines=2) as lab:
            text = (lab.directory / "topology.yaml").read_text()
            for host in lab.names("host"):
                for nic in range(2):
                    leaf, port, address = lab.attachment(host, nic)
                    self.assertIn(f'{{a: {{node: {host}, port: eth{nic}, addresses: ["{address}"]}}, b: {{node: {leaf}, port: {port},', text)

    def test_traffic_runs_on_every_nic_by_the_spines_that_the_routing_names(self):
        def check(lab):
            traffic = Traffic(lab)
            flows = lab.flows()
            self.assertEqual(len(flows), 4 * 2 * 2)
            expected = {flow: lab.next_hops(flow.source, flow.destination, [flow.source_port], flow.nic)[0] for flow in flows}
            self.assertEqual(path_map.observe(lab, flows, seconds=1.0), expected)
            traffic.stop()
            endpoints = Endpoints(lab).update()
            for counter in ("messages_lost", "timeouts"):
                self.assertEqual(endpoints.count(counter), 0, counter)

        self.in_each_family(check)

    def test_too_few_leaves_are_refused(self):
        refused = te_lab("up", "--nics", 4, "--leaves", 2)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("multiple of 4", refused.stderr)


DEMO = Path(te_lab_module.__file__).parent

HOLD_A_LAB = """
import sys, time
sys.path.insert(0, sys.argv[1])
from te_lab import Lab, Traffic
with Lab(sys.argv[2], sys.argv[3], hosts=2, spines=1) as lab:
    traffic = Traffic(lab, pattern="pairs")
    print("up", flush=True)
    time.sleep(60)
"""

BUILD_A_LAB = """
import signal, sys, time
sys.path.insert(0, sys.argv[1])
from te_lab import Lab
signal.signal(signal.SIGINT, signal.default_int_handler)    # shells let programs in the background ignore it
with Lab(sys.argv[2], sys.argv[3], hosts=16, leaves=4, spines=4):
    time.sleep(60)
"""

REACH = """
import socket, sys
with socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET, socket.SOCK_STREAM) as client:
    client.settimeout(2)
    if len(sys.argv) > 2:
        client.bind((sys.argv[2], 0))
    try:
        client.connect((sys.argv[1], 9))
    except ConnectionRefusedError:
        sys.exit(0)     # the host itself refused: it was reached
sys.exit(1)
"""

EXPIRE = """
import socket, sys, time
target, count = sys.argv[1], int(sys.argv[2])
v6 = ":" in target
family = socket.AF_INET6 if v6 else socket.AF_INET
listener = socket.socket(family, socket.SOCK_RAW, socket.IPPROTO_ICMPV6 if v6 else socket.IPPROTO_ICMP)
sender = socket.socket(family, socket.SOCK_DGRAM)
if v6:
    sender.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, 1)
else:
    sender.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, 1)
begin = time.monotonic()
for number in range(count):
    sender.sendto(b"x" * 40, (target, 4791))
    time.sleep(max(0, begin + number * 0.5 / count - time.monotonic()))
listener.settimeout(0.3)
answers = 0
try:
    while True:
        packet = listener.recv(2000)
        kind = packet[0] if v6 else packet[20]
        answers += kind == (3 if v6 else 11)
except TimeoutError:
    print(answers)
"""

if __name__ == "__main__":
    unittest.main()
