# SPDX-License-Identifier: Apache-2.0
"""Switches that do not hash five fields, or do not answer from the port that a packet came in by."""
import json
import unittest

from listening import ports_taken, trace
from support import make_lab, te_lab

FAMILIES = (4, 6)
LOOPBACK = {4: "10.254.0.1", 6: "fd00:fe::1"}


def inbound_address(lab, host):
    """Of the leaf's port towards `host`."""
    return next(link["b"]["address"] for link in lab.links if link["a"]["node"] == host)


def uplinks_of(taken):
    """{flow: the uplinks that its packets left by}"""
    found = {}
    for port, flows in taken.items():
        for flow in flows:
            found.setdefault(flow, set()).add(port)
    return found


def rules(lab, family):
    return json.loads(lab.exec("leaf1", ["ip", f"-{family}", "-json", "rule", "show"]))


class SwitchModes(unittest.TestCase):
    def in_each_family(self, check, **spec):
        for family in FAMILIES:
            with self.subTest(family=family), make_lab(hosts=2, family=family, **spec) as lab:
                check(lab, family)

    def assert_traced_by_ports(self, lab):
        """TTLs count down and each switch answers from where the packet came in."""
        self.assertEqual(trace(lab, "h1", "h2", 1), inbound_address(lab, "h1"))
        spine_ports = [link["b"]["address"] for link in lab.links if link["a"]["node"] == "leaf1"]
        self.assertIn(trace(lab, "h1", "h2", 2), spine_ports)
        leaf_ports = [link["a"]["address"] for link in lab.links if link["a"]["node"] == "leaf2"]
        self.assertIn(trace(lab, "h1", "h2", 3), leaf_ports)

    def assert_normal(self, lab):
        ports = range(50000, 50064)
        taken = uplinks_of(ports_taken(lab, "leaf1", "h1", "h2", [[port, port % 7] for port in ports]))
        routed = lab.next_hops("h1", "h2", ports)
        self.assertEqual(taken, {(port, port % 7): {spine} for port, spine in zip(ports, routed)})
        self.assert_traced_by_ports(lab)

    def test_a_new_lab_is_normal(self):
        self.in_each_family(lambda lab, _: self.assert_normal(lab))

    def test_qpn_hash_follows_the_qpn_and_not_the_source_port(self):
        def check(lab, _):
            lab.switch("leaf1", "qpn-hash")
            qpns = range(17, 81)
            flows = [[50000 + 13 * number, qpn] for qpn in qpns for number in range(8)]
            taken = uplinks_of(ports_taken(lab, "leaf1", "h1", "h2", flows))
            self.assertEqual(len(taken), len(flows))
            by_qpn = {}
            for (_, qpn), uplinks in taken.items():
                by_qpn.setdefault(qpn, set()).update(uplinks)
            self.assertEqual({len(uplinks) for uplinks in by_qpn.values()}, {1})
            share = [sum(spine in uplinks for uplinks in by_qpn.values()) for spine in lab.names("spine")]
            self.assertEqual(sum(share), len(qpns))
            self.assertGreater(min(share), 4)  # 64 QPNs on 4 uplinks
            self.assert_traced_by_ports(lab)

        self.in_each_family(check)

    def test_qpn_hash_leaves_a_cut_uplink_alone(self):
        def check(lab, _):
            lab.switch("leaf1", "qpn-hash")
            lab.fail("leaf1:spine2")
            flows = [[50000, qpn] for qpn in range(17, 81)]
            taken = uplinks_of(ports_taken(lab, "leaf1", "h1", "h2", flows))
            self.assertEqual(len(taken), len(flows))
            self.assertEqual(set.union(*taken.values()), {"spine1", "spine3", "spine4"})

        self.in_each_family(check)

    def test_spray_gives_each_packet_an_uplink_of_its_own(self):
        def check(lab, _):
            lab.switch("leaf1", "spray")
            taken = ports_taken(lab, "leaf1", "h1", "h2", [[50000, 17]], 800)
            counts = {port: flows.total() for port, flows in taken.items()}
            self.assertEqual(set(counts), set(lab.names("spine")))
            self.assertEqual(sum(counts.values()), 800)
            for port, count in counts.items():
                self.assertLess(abs(count - 200), 5 * (800 * 0.25 * 0.75) ** 0.5, port)
            self.assert_traced_by_ports(lab)

        self.in_each_family(check)

    def test_sprayed_packets_wait_in_the_ports_queues(self):
        with make_lab(hosts=2) as lab:
            lab.switch("leaf1", "spray")
            before = self.shaped_packets(lab)
            ports_taken(lab, "leaf1", "h1", "h2", [[50000, 17]], 400)
            self.assertEqual(self.shaped_packets(lab) - before, 400)

    def shaped_packets(self, lab):
        queues = json.loads(lab.exec("leaf1", ["tc", "-s", "-json", "qdisc", "show"]))
        return sum(queue["packets"] for queue in queues if queue["kind"] == "tbf" and queue["dev"] in lab.names("spine"))

    def test_loopback_answers_come_from_an_address_that_no_port_has(self):
        def check(lab, family):
            lab.switch("leaf1", "loopback-answers")
            self.assertEqual(trace(lab, "h1", "h2", 1), LOOPBACK[family])
            self.assertNotIn(LOOPBACK[family], (lab.directory / "topology.yaml").read_text())
            # On the way back from other leaves as well; and only this switch does it.
            self.assertEqual(trace(lab, "h2", "h1", 3), LOOPBACK[family])
            self.assertEqual(trace(lab, "h2", "h1", 1), inbound_address(lab, "h2"))

        self.in_each_family(check)

    def test_a_silent_switch_answers_nothing_and_forwards_all(self):
        def check(lab, _):
            lab.switch("leaf1", "silent")
            self.assertIsNone(trace(lab, "h1", "h2", 1))
            self.assertIsNotNone(trace(lab, "h1", "h2", 2))
            self.assertIsNone(trace(lab, "h2", "h1", 3))
            flows = [[50000 + number, 17] for number in range(32)]
            self.assertEqual(len(uplinks_of(ports_taken(lab, "leaf1", "h1", "h2", flows))), 32)

        self.in_each_family(check)

    def test_normal_is_as_before_whatever_the_mode_was(self):
        def check(lab, family):
            before = rules(lab, family)
            for mode in ("qpn-hash", "spray", "loopback-answers", "silent"):
                with self.subTest(mode=mode):
                    lab.switch("leaf1", mode)
                    self.assertEqual(lab.status()["switch_modes"], {"leaf1": mode})
                    lab.switch("leaf1", "normal")
                    self.assertEqual(lab.status()["switch_modes"], {})
                    self.assertEqual(rules(lab, family), before)
                    self.assert_normal(lab)

        self.in_each_family(check)

    def test_modes_follow_one_another(self):
        with make_lab(hosts=2) as lab:
            for mode in ("qpn-hash", "silent", "spray", "loopback-answers", "qpn-hash"):
                lab.switch("leaf1", mode)
                self.assertEqual(lab.status()["switch_modes"], {"leaf1": mode})
            self.assert_traced_by_ports(lab)

    def test_what_cannot_be_is_refused(self):
        with make_lab(hosts=2, spines=2) as lab:
            for node, mode, told in (("h1", "silent", "leaf1, leaf2, spine1, spine2"), ("spine1", "spray", "one way to each leaf"),
                                     ("spine7", "normal", "leaf1, leaf2")):
                refused = te_lab("switch", "--id", lab.id, node, "--mode", mode)
                self.assertEqual(refused.returncode, 1)
                self.assertIn(told, refused.stderr)


if __name__ == "__main__":
    unittest.main()
