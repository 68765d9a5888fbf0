# SPDX-License-Identifier: Apache-2.0
"""Links that die, come back and lose packets under real traffic, and what the product makes of them."""
import unittest
from collections import defaultdict

from link_failure import LinkFailure, shortcomings
from product_test import scene
from te_lab import wait_for

LIMIT_FACTOR = 2    # of the limits that ./check --full tests
PATIENT = {"timeout_ms": 100, "retries": 60}    # connections that outlive a dead link


def crossing(scene):
    """Flows of either kind between hosts of different leaves that the product sees now."""
    leaf_of = {host: scene.lab.attachment(host)[0] for host in scene.lab.names("host")}
    return [flow for flow in scene.shown_flows()
            if flow["kind"] != "idle" and leaf_of[flow["source_node"]] != leaf_of[flow["destination_node"]]]


def wrong_paths(scene):
    """Flows whose path, as the product has it, is not what the source leaf's own routing says of their port."""
    by_pair = defaultdict(list)
    for flow in crossing(scene):
        by_pair[flow["source_node"], flow["destination_node"]].append(flow)
    wrong = []
    for (source, destination), flows in by_pair.items():
        spines = scene.lab.next_hops(source, destination, [flow["wire_port"] for flow in flows])
        wrong += [(flow["id"], flow.get("path"), spine) for flow, spine in zip(flows, spines)
                  if len(flow.get("path", [])) != 5 or flow["path"][2] != spine]
    return wrong


class DeadLink(unittest.TestCase):
    def test_the_path_map_is_that_of_the_kernel_after_a_cut_and_after_the_mending(self):
        with scene(switch_agents=True, traffic_options=PATIENT) as here:
            here.product.wait_for_switch_agents()
            here.product.act(True)
            wait_for(lambda: crossing(here) and not wrong_paths(here), 10, "paths before any cut")
            for spine in ("spine1", "spine3", "spine4"):
                with self.subTest(spine=spine):
                    failure = LinkFailure(here.lab, here.product, here.flows, here.endpoints, "leaf1", spine)
                    here.lab.fail(f"leaf1:{spine}")
                    wait_for(failure.is_down, 2, f"leaf1:{spine} is not known to be down")
                    wait_for(lambda: not wrong_paths(here), 10, f"paths while leaf1:{spine} is cut")
                    failure.mend()
                    wait_for(lambda: not wrong_paths(here), 10, f"paths after leaf1:{spine} was mended")

    def restore(self, switch_agents, seed):
        with scene(spec={"seed": seed}, switch_agents=switch_agents, traffic_options=PATIENT) as here:
            if switch_agents:
                here.product.wait_for_switch_agents()
            here.product.act(True)
            here.wait_converged(here.product.wait_for_first_reports(len(here.flows)))
            entries = LinkFailure(here.lab, here.product, here.flows, here.endpoints, "leaf1", "spine2").run()
            self.assertEqual(here.endpoints.update().count("messages_lost"), 0)
        for entry in entries:
            print(entry, flush=True)
            entry["restore_ms"] /= LIMIT_FACTOR
            self.assertEqual(shortcomings(entry), [])

    def test_flows_leave_it_within_a_second_where_switches_have_agents(self):
        self.restore(switch_agents=True, seed=2)

    def test_flows_leave_it_within_three_seconds_where_only_hosts_have_agents(self):
        self.restore(switch_agents=False, seed=3)


class LosingLink(unittest.TestCase):
    def suspects(self, scene):
        return {(link["from"], link["to"]) for link in scene.product.get("/v1/links")["links"]
                if link["state"] in ("suspect", "failing")}

    def test_flows_leave_a_link_that_loses_one_packet_in_ten(self):
        with scene(spec={"leaves": 3, "hosts": 9}, traffic_options=PATIENT) as here:
            here.product.act(True)
            here.wait_converged(here.product.wait_for_first_reports(len(here.flows)))
            flow = next(flow for flow in crossing(here) if flow["kind"] == "data")
            leaf, spine = flow["path"][1:3]
            here.lab.degrade(f"{leaf}:{spine}", loss=0.1)
            bad = [leaf, spine]
            wait_for(lambda: all(flow["path"][1:3] != bad for flow in crossing(here)), 2 * LIMIT_FACTOR * 3,
                     f"flows stay on {leaf}:{spine}")
            found = self.suspects(here)
            self.assertIn((f"{leaf}:{spine}", f"{spine}:{leaf}"), found)
            self.assertLessEqual(len(found), 2)


if __name__ == "__main__":
    unittest.main()
