# SPDX-License-Identifier: Apache-2.0
"""Hosts as they are in clusters: the quickstart's ring with several NICs a host, and without IPv4."""
import json
import time
import unittest

import path_map
from product_test import scene


class Ring(unittest.TestCase):
    def converge(self, spec, **options):
        """The ring gets its share, nothing is lost, and what is shown is what is on the wire."""
        with scene(spec=spec, **options) as here:
            here.product.wait_for_first_reports(len(here.flows))
            begin = time.monotonic()
            here.product.act(True)
            took = here.wait_converged(begin)
            here.wait_settled()
            self.assertLessEqual(took, 10)
            shown = {(flow["source"], flow["destination"], flow["destination_qpn"]): flow
                     for flow in here.shown_flows() if flow["kind"] == "data"}
            self.assertEqual(len(shown), len(here.flows))
            taken = path_map.observe(here.lab, here.flows)
            for flow, spine in taken.items():
                path = [each["path"] for key, each in shown.items() if key[2] == flow.destination_qpn
                        and each["source_node"] == flow.source]
                self.assertEqual(len(path), 1, flow)
                self.assertIn(spine, path[0], flow)
            self.assertEqual(len(taken), len(here.flows))
            here.traffic.stop()
            here.endpoints.update()
            self.assertEqual(here.endpoints.count("messages_lost"), 0)
            return here.status()["moves_total"]

    def test_two_nics_a_host(self):
        self.assertGreater(self.converge({"nics": 2, "leaves": 4}), 0)

    def test_two_nics_a_host_over_ipv6(self):
        self.assertGreater(self.converge({"nics": 2, "leaves": 4, "family": 6}), 0)

    def test_nothing_but_ipv6(self):
        """Neither the fabric nor the controller's session has an IPv4 address to fall back to."""
        def look(lab):
            for node in (*lab.nodes, "mgmt"):
                addresses = json.loads(lab.exec(node, ["ip", "-json", "-4", "address", "show"]))
                self.assertEqual([each["ifname"] for each in addresses if each.get("addr_info")], ["lo"], node)
            self.assertIn(":", lab.controller)

        self.assertGreater(self.converge({"family": 6}, prepare=look), 0)


if __name__ == "__main__":
    unittest.main()
