# SPDX-License-Identifier: Apache-2.0
"""Links that die, come back and lose packets under real traffic, and what the product makes of them."""
import os
import random
import time
import unittest
from collections import defaultdict

from link_failure import LinkFailure, shortcomings
from product_test import scene
from te_lab import wait_for

LIMIT_FACTOR = float(os.environ.get("TE_FACTOR", "2"))    # of the limits, which ./check --full tests
PLACES = int(os.environ.get("TE_PLACES", "1"))              # that lose packets, one after the other
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
            flows = 2 * len(here.flows)     # with their acknowledgements; each goes from one leaf to the other
            wait_for(lambda: len(crossing(here)) == flows and not wrong_paths(here), 10, "paths before any cut")
            for spine in ("spine1", "spine3", "spine4"):
                with self.subTest(spine=spine):
                    failure = LinkFailure(here.lab, here.product, here.flows, here.endpoints, "leaf1", spine)
                    here.lab.fail(f"leaf1:{spine}")
                    wait_for(failure.is_down, 2, f"leaf1:{spine} is not known to be down")
                    wait_for(lambda: not wrong_paths(here), 10, f"paths while leaf1:{spine} is cut")
                    failure.mend()
                    wait_for(lambda: not wrong_paths(here), 10, f"paths after leaf1:{spine} was mended")

    def test_a_dead_cable_of_a_host_blames_no_other_link_and_moves_no_flow_of_others(self):
        with scene(traffic_options=PATIENT | {"retries": 250}) as here:
            here.act_until_converged()
            here.wait_settled()
            moves = here.status()["moves_total"]
            here.lab.fail("h3:eth0")
            cut = {"h3:eth0", "leaf1:h3"}
            end = time.monotonic() + 8

            def blamed():
                return {link["from"] for link in here.product.get("/v1/links")["links"] if link["state"] not in ("healthy", "unknown")}

            wait_for(lambda: blamed() == cut, 2, "the dead cable is not known")
            wait_for(lambda: time.monotonic() > end or blamed() != cut, 10, "")
            self.assertEqual(blamed(), cut)
            made = [move for move in here.product.get("/v1/moves?limit=400")["moves"] if move["number"] > moves]
            self.assertEqual([move for move in made if move.get("forced")], [])
            here.lab.restore("h3:eth0")
            here.wait_converged(time.monotonic())
            self.assertEqual([line for line in here.status().get("warnings", []) if "fit no path" in line], [])

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
            self.assertEqual(shortcomings(entry, LIMIT_FACTOR), [])

    def test_flows_leave_it_within_a_second_where_switches_have_agents(self):
        self.restore(switch_agents=True, seed=2)

    def test_flows_leave_it_within_three_seconds_where_only_hosts_have_agents(self):
        self.restore(switch_agents=False, seed=3)


class LosingLink(unittest.TestCase):
    """Places: directions between a leaf and a spine that carry message data, picked at random, in a fabric of three leaves."""

    def suspects(self, here):
        return {link["from"] for link in here.product.get("/v1/links")["links"] if link["state"] in ("suspect", "failing")}

    def place(self, here, picked):
        """(sending port, what the path of a flow over it holds)"""
        flow = picked.choice([flow for flow in crossing(here) if flow["kind"] == "data"])
        at = picked.choice((1, 2))      # leaf to spine, or spine to leaf
        sender, receiver = flow["path"][at:at + 2]
        return f"{sender}:{receiver}", (at, [sender, receiver])

    def lose(self, loss, limit_s, seed):
        with scene(spec={"leaves": 3, "hosts": 9, "seed": seed}, traffic_options=PATIENT) as here:
            here.product.act(True)
            here.wait_converged(here.product.wait_for_first_reports(len(here.flows)))
            port, (at, nodes) = self.place(here, random.Random(seed))
            begin = time.monotonic()
            here.lab.degrade(port, loss=loss)
            wait_for(lambda: all(flow.get("path", [])[at:at + 2] != nodes for flow in crossing(here)),
                     LIMIT_FACTOR * limit_s, f"flows stay on {port}, which loses {loss:.0%}")
            left_s = time.monotonic() - begin
            # Suspects beside the culprit are exonerated once flows that were moved cross them without a loss.
            wait_for(lambda: len(self.suspects(here)) <= 2, 60 - left_s, "more than two links stay suspect")
            found = self.suspects(here)
            print(f"{port} loses {loss:.0%}: no flow on it after {left_s:.1f} s; suspects {sorted(found)}", flush=True)
            self.assertIn(port, found)

    def over_places(self, loss, limit_s):
        for seed in range(1, 1 + PLACES):
            with self.subTest(loss=loss, seed=seed):
                self.lose(loss, limit_s, seed)

    def test_flows_leave_a_link_that_loses_one_packet_in_ten(self):
        self.over_places(0.1, 3)

    def test_flows_leave_a_link_that_loses_one_packet_in_a_hundred(self):
        self.over_places(0.01, 10)


if __name__ == "__main__":
    unittest.main()
