# SPDX-License-Identifier: Apache-2.0
"""What goes wrong on purpose: cut cables, lossy and slow ones."""
import json
import math
import time
import unittest

from listening import send
from measure import Endpoints
from support import left_over, make_lab, te_lab
from te_lab import LabError, Traffic, wait_for

PORTS = range(50000, 50064)


def link(lab, node, port):
    return json.loads(lab.exec(node, ["ip", "-s", "-json", "link", "show", "dev", port]))[0]


def packets(lab, node, port, direction):
    return link(lab, node, port)["stats64"][direction]["packets"]


class CutCables(unittest.TestCase):
    def test_both_ends_lose_their_carrier_and_stay_up_administratively(self):
        for family in (4, 6):
            with make_lab(hosts=2, spines=2, family=family) as lab:
                for one, other in (("leaf1:spine2", "spine2:leaf1"), ("leaf2:h2", "h2:eth0"), ("h1:eth0", "leaf1:h1")):
                    with self.subTest(family=family, named=one):
                        lab.fail(one)
                        for end in (one, other):
                            found = link(lab, *end.split(":"))
                            self.assertIn("NO-CARRIER", found["flags"], end)
                            self.assertIn("UP", found["flags"], end)
                            self.assertEqual(found["operstate"], "DOWN", end)
                        lab.restore(other)
                        for end in (one, other):
                            found = link(lab, *end.split(":"))
                            self.assertIn("LOWER_UP", found["flags"], end)
                            self.assertEqual(found["operstate"], "UP", end)

    def test_after_restore_every_port_takes_the_path_that_it_took_before(self):
        for family in (4, 6):
            with make_lab(hosts=2, family=family) as lab:
                before = lab.next_hops("h1", "h2", PORTS)
                self.assertEqual(set(before), set(lab.names("spine")))
                for spine in ("spine1", "spine2", "spine4"):
                    with self.subTest(family=family, spine=spine):
                        lab.fail(f"leaf1:{spine}")
                        meanwhile = lab.next_hops("h1", "h2", PORTS)
                        self.assertEqual(set(meanwhile), set(before) - {spine})
                        lab.restore(f"leaf1:{spine}")
                        self.assertEqual(lab.next_hops("h1", "h2", PORTS), before)

    def test_a_switch_beyond_the_cable_keeps_sending_to_it(self):
        with make_lab(hosts=2) as lab:
            before = lab.next_hops("h2", "h1", PORTS)
            lab.fail("leaf1:spine2")
            self.assertEqual(lab.next_hops("h2", "h1", PORTS), before)

    def test_flows_elsewhere_go_on_and_those_that_others_send_over_the_cable_stop(self):
        with make_lab(spines=2) as lab:
            traffic = Traffic(lab)
            flows = lab.flows()
            wait_for(lambda: self.all_delivered(lab, flows), 10, "no traffic")
            lost, kept = [], []
            for flow in flows:
                ways = [(flow.source, flow.destination, flow.source_port), (flow.destination, flow.source, flow.answer_source_port)]
                # Only leaf2 sends over spine2 without knowing of the cut.
                (lost if any(lab.attachment(source)[0] == "leaf2" and lab.next_hops(source, target, [port]) == ["spine2"]
                             for source, target, port in ways) else kept).append(flow)
            self.assertTrue(lost and kept)
            cut_s = lab.fail("spine2:leaf1")
            endpoints = Endpoints(lab)
            wait_for(lambda: endpoints.update().known_until_s() > cut_s + 2.0, 10, "the endpoints fell silent")
            for flow in kept:
                self.assertGreater(endpoints.goodput_bps(flow, cut_s + 1.0, cut_s + 2.0), 0, flow.name)
            for flow in lost:
                self.assertEqual(endpoints.goodput_bps(flow, cut_s + 1.0, cut_s + 2.0), 0, flow.name)
            traffic.process.kill()
            traffic.process.communicate()

    def all_delivered(self, lab, flows):
        endpoints = Endpoints(lab).update()
        return all(endpoints.series.get((flow.destination, flow.destination_qpn, "goodput_bytes"), None) and
                   endpoints.series[flow.destination, flow.destination_qpn, "goodput_bytes"].values[-1] > 0 for flow in flows)

    def test_a_whole_cable_may_be_restored_and_a_cut_one_not_be_cut(self):
        with make_lab(hosts=2, spines=1) as lab:
            self.assertEqual(te_lab("restore", "--id", lab.id, "leaf1:spine1").stdout, "")
            self.assertEqual(te_lab("fail", "--id", lab.id, "leaf1:spine1").stdout, "")
            again = te_lab("fail", "--id", lab.id, "spine1:leaf1")
            self.assertEqual(again.returncode, 1)
            self.assertIn("cut already", again.stderr)
            lab.restore("spine1:leaf1")
            lab.restore("spine1:leaf1")
            self.assertEqual(lab.status()["cut_cables"], [])

    def test_the_time_of_the_cut_is_that_of_the_command(self):
        with make_lab(hosts=2, spines=1) as lab:
            begin_s = time.monotonic()
            cut_s = lab.fail("leaf1:spine1")
            end_s = time.monotonic()
            self.assertTrue(begin_s <= cut_s <= end_s)
            restored_s = lab.restore("leaf1:spine1")
            self.assertTrue(end_s <= restored_s <= time.monotonic())

    def test_a_wrong_name_is_answered_with_what_there_is(self):
        with make_lab(hosts=2, spines=3) as lab:
            for name, told in (("leaf9:spine1", "h1, h2, leaf1, leaf2, spine1 to spine3"),
                               ("leaf1:eth0", "h1, spine1, spine2, spine3"), ("leaf1", "NODE:PORT"), ("mgmt:h1", "spine3")):
                for command in (["fail"], ["restore"], ["degrade", "--loss", "1%"]):
                    refused = te_lab(*command, "--id", lab.id, name)
                    self.assertEqual(refused.returncode, 1)
                    self.assertIn(told, refused.stderr)

    def test_status_lists_what_is_wrong(self):
        with make_lab(hosts=2) as lab:
            lab.fail("spine3:leaf2")
            lab.degrade("h1:eth0", loss=0.01, rate="10mbit")
            status = lab.status()
            self.assertEqual(status["cut_cables"], [["leaf2:spine3", "spine3:leaf2"]])
            self.assertEqual([(port["port"], port["loss"], port["rate_bps"]) for port in status["degraded_ports"]],
                             [("h1:eth0", 0.01, 10e6)])
            text = te_lab("status", "--id", lab.id).stdout
            self.assertIn("cut: leaf2:spine3 - spine3:leaf2", text)
            self.assertIn("degraded: h1:eth0 sends at 10 Mbit/s with 1 % of the packets lost", text)
            lab.restore("leaf2:spine3")
            lab.restore("leaf1:h1")
            self.assertEqual((lab.status()["cut_cables"], lab.status()["degraded_ports"]), ([], []))
            lab.down()
            self.assertEqual(left_over(lab.id), [])


class DegradedCables(unittest.TestCase):
    FLOWS = [[50000 + number, 100 + number] for number in range(20)]

    def assert_share(self, lost, sent, share):
        """Within five standard deviations of a binomial distribution: a right program fails once in two million runs."""
        self.assertLess(abs(lost - share * sent), 5 * math.sqrt(sent * share * (1 - share)), f"{lost} of {sent}")

    def test_a_port_loses_the_share_asked_for_and_counts_what_it_lost(self):
        sent = 20_000
        # h1:eth0 and leaf1:spine1 are the veth ends of their cables, the others the macvlan ends.
        for family in (4, 6):
            with make_lab(hosts=2, spines=1, rate="1gbit", family=family) as lab:
                for port, peer, share in (("h1:eth0", "leaf1:h1", 0.1), ("leaf1:spine1", "spine1:leaf1", 0.01),
                                          ("spine1:leaf2", "leaf2:spine1", 0.01), ("leaf2:h2", "h2:eth0", 0.1)):
                    with self.subTest(family=family, port=port):
                        lab.degrade(port, loss=share)
                        sent_before = packets(lab, *port.split(":"), "tx")
                        came_before = packets(lab, *peer.split(":"), "rx")
                        send(lab, "h1", "h2", self.FLOWS, sent // len(self.FLOWS))
                        wait_for(lambda: packets(lab, *port.split(":"), "tx") - sent_before >= sent, 5, "packets went astray")
                        counted = lab.status()["degraded_ports"][0]
                        came = packets(lab, *peer.split(":"), "rx") - came_before
                        lab.restore(port)
                        self.assertGreaterEqual(counted["lost_packets"] + counted["passed_packets"], sent)
                        self.assert_share(counted["lost_packets"], counted["lost_packets"] + counted["passed_packets"], share)
                        # Router solicitations and the like may come in between.
                        self.assertLess(abs(came - counted["passed_packets"]), 20)

    def test_only_the_direction_that_the_port_sends_is_degraded(self):
        with make_lab(hosts=2, spines=1, rate="1gbit") as lab:
            lab.degrade("leaf1:spine1", loss=1)
            before = packets(lab, "h1", "eth0", "rx")
            send(lab, "h2", "h1", self.FLOWS, 50)
            wait_for(lambda: packets(lab, "h1", "eth0", "rx") - before >= 1000, 5, "packets were lost")
            # What is lost so far are h1's few answers that nobody owns the port.
            lost = lab.status()["degraded_ports"][0]["lost_packets"]
            self.assertLess(lost, 100)
            send(lab, "h1", "h2", self.FLOWS, 50)
            wait_for(lambda: lab.status()["degraded_ports"][0]["lost_packets"] >= lost + 1000, 5, "packets were not lost")
            self.assertEqual(lab.status()["degraded_ports"][0]["passed_packets"], 0)
            lab.restore("spine1:leaf1")
            before = packets(lab, "h2", "eth0", "rx")
            send(lab, "h1", "h2", self.FLOWS, 50)
            wait_for(lambda: packets(lab, "h2", "eth0", "rx") - before >= 1000, 5, "packets are lost after the restore")

    def test_both_directions_are_degraded_apart_and_restored_together(self):
        with make_lab(hosts=2, spines=1) as lab:
            lab.degrade("leaf1:spine1", loss=0.5)
            lab.degrade("spine1:leaf1", loss=0.25)
            lab.degrade("leaf1:spine1", loss=0.125)
            self.assertEqual({port["port"]: port["loss"] for port in lab.status()["degraded_ports"]},
                             {"leaf1:spine1": 0.125, "spine1:leaf1": 0.25})
            lab.restore("leaf1:spine1")
            self.assertEqual(lab.status()["degraded_ports"], [])

    def test_a_slow_port_sends_at_its_rate_until_restored(self):
        with make_lab(hosts=2, spines=1) as lab:
            traffic = Traffic(lab, pattern="pairs")
            flows = [flow for flow in lab.flows() if flow.source == "h1"]
            endpoints = Endpoints(lab)

            def goodput_bps():
                begin_s = time.monotonic() + 0.5
                wait_for(lambda: endpoints.update().known_until_s() > begin_s + 1.0, 10, "the endpoints fell silent")
                return sum(endpoints.goodput_bps(flow, begin_s, begin_s + 1.0) for flow in flows)

            for port in ("leaf1:spine1", "h1:eth0"):
                with self.subTest(port=port):
                    self.assertGreater(goodput_bps(), 0.9 * lab.rate_bps)
                    lab.degrade(port, rate="20mbit")
                    self.assertGreater(goodput_bps(), 0.85 * 20e6)
                    self.assertLess(goodput_bps(), 20e6)
                    lab.restore(port)
            self.assertGreater(goodput_bps(), 0.9 * lab.rate_bps)
            traffic.stop()

    def test_a_degradation_that_makes_no_sense_is_refused(self):
        with make_lab(hosts=2, spines=1) as lab:
            for options, told in ((["--loss", "0%"], "more than 0%"), (["--loss", "101%"], "at most 100%"),
                                  (["--loss", "0.1"], "0.5%"), (["--rate", "51mbit"], "50 Mbit/s"), ([], "--loss")):
                refused = te_lab("degrade", "--id", lab.id, "leaf1:h1", *options)
                self.assertEqual(refused.returncode, 1)
                self.assertIn(told, refused.stderr)
            self.assertEqual(lab.status()["degraded_ports"], [])
            with self.assertRaises(LabError):
                lab.degrade("leaf1:h1", rate="0bit")


if __name__ == "__main__":
    unittest.main()
