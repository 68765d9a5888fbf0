# SPDX-License-Identifier: Apache-2.0
"""Cuts a cable under steered traffic and says how soon the product knew, how soon it had put the flows elsewhere, and what
they get then."""
import time
from collections import Counter
from math import ceil

import ideal
import path_map
from te_lab import LabError, wait_for

OBSERVED_S = 5.0            # goodput is measured over this long from the moment of restoration
LONGEST_RESTORE_S = 6.0
MEGA = 1e6
MESSAGE_BYTES = 65536
LIMITS_MS = {True: 1000, False: 3000}   # of restore_ms, with and without agents on switches
SHARES = {True: 0.95, False: 0.85}      # of the ideal, where no link carries more than two QPs, and where one does


class LinkFailure:
    """One cut of leaf:spine. `source` are the flows that leave the leaf, `remote` those that come to it from elsewhere."""

    def __init__(self, lab, product, flows, endpoints, leaf, spine):
        self.lab = lab
        self.product = product
        self.endpoints = endpoints
        self.leaf = leaf
        self.spine = spine
        leaf_of = {host: lab.attachment(host)[0] for host in lab.names("host")}
        self.groups = {"source": [flow for flow in flows if leaf_of[flow.source] == leaf != leaf_of[flow.destination]],
                       "remote": [flow for flow in flows if leaf_of[flow.destination] == leaf != leaf_of[flow.source]]}

    def run(self):
        """Cuts, waits and measures; the cable stays cut. A list of two entries."""
        number = self.newest_move()
        wall_minus_monotonic = time.time() - time.monotonic()
        cut_s = self.lab.fail(f"{self.leaf}:{self.spine}")
        wait_for(self.is_down, LONGEST_RESTORE_S, f"{self.leaf}:{self.spine} was cut and the controller does not know")
        # Moves come within a few planning cycles; what is late counts in restore_ms.
        self.wait_until(cut_s + LONGEST_RESTORE_S + OBSERVED_S)
        carried = path_map.flows_on_uplinks(self.lab, path_map.observe(self.lab, [*self.groups["source"], *self.groups["remote"]]))
        detected_s = self.since_s() - wall_minus_monotonic
        moved_s = self.programmed_s(number, wall_minus_monotonic)
        return [self.entry(kind, cut_s, detected_s, moved_s[kind], carried) for kind in self.groups]

    def entry(self, kind, cut_s, detected_s, moved_s, carried):
        flows = self.groups[kind]
        restored_s = max([detected_s, *moved_s])
        fullest = max(sum(flow in flows for flow in on_it) for on_it in carried.values())
        return {"kind": kind, "switch_agents": self.product.switch_agents, "detect_ms": round((detected_s - cut_s) * 1000),
                "restore_ms": round((restored_s - cut_s) * 1000), "moves": len(moved_s),
                "min_flow_mbps": round(self.endpoints.slowest_bps(flows, restored_s, restored_s + OBSERVED_S) / MEGA, 3),
                "ideal_min_flow_mbps": round(self.ideal_bps(flows) / MEGA, 3), "max_qps_per_link": fullest}

    def ideal_bps(self, flows):
        """Of unsplittable flows over the uplinks that are left."""
        uplinks = len(self.lab.names("spine")) - 1
        fullest = max(ceil(len(flows) / uplinks), *Counter(flow.source for flow in flows).values(),
                      *Counter(flow.destination for flow in flows).values())
        spec = self.lab.spec
        return self.lab.rate_bps / fullest * MESSAGE_BYTES / ideal.message_wire_bytes(MESSAGE_BYTES, spec["mtu"], spec["family"])

    def links(self):
        """Both directions of the cable, as the product tells of them."""
        ends = {f"{self.leaf}:{self.spine}", f"{self.spine}:{self.leaf}"}
        return [link for link in self.product.get("/v1/links")["links"] if link["from"] in ends]

    def is_down(self):
        return all(link["state"] == "down" for link in self.links())

    def since_s(self):
        return max(link["since_s"] for link in self.links())

    def newest_move(self):
        return max((move["number"] for move in self.product.get("/v1/moves").get("moves", [])), default=0)

    def programmed_s(self, after_number, wall_minus_monotonic):
        """{kind: times at which the kernel had the new port of a flow of that kind, or of its acknowledgements}"""
        kind_of = {}
        flows = {flow["id"]: flow for flow in self.product.get("/v1/flows")["flows"]}
        for kind, group in self.groups.items():
            pairs = {(flow.source, flow.destination, flow.destination_qpn) for flow in group}
            for flow in flows.values():
                if (flow["source_node"], flow["destination_node"], flow["destination_qpn"]) in pairs:
                    kind_of[flow["id"]] = kind_of[flow.get("reverse_id", "")] = kind
        times = {kind: [] for kind in self.groups}
        for move in self.product.get("/v1/moves").get("moves", []):
            kind = kind_of.get(move["flow_id"])
            if move["number"] > after_number and kind and move.get("programmed_ms"):
                times[kind].append(move["wall_s"] + move["programmed_ms"] / 1000 - wall_minus_monotonic)
        return times

    def wait_until(self, moment_s):
        while self.endpoints.update().known_until_s() < moment_s:
            self.product.check_alive()
            time.sleep(0.1)

    def mend(self, seconds=20):
        """Mends the cable and waits until the product trusts it again."""
        self.lab.restore(f"{self.leaf}:{self.spine}")

        def trusted():
            return all(link.get("takes_flows") and link["state"] == "healthy" for link in self.links())

        try:
            wait_for(trusted, seconds, "")
        except LabError:
            raise LabError(f"{self.leaf}:{self.spine} was mended and is not trusted again: "
                           f"{[(link['from'], link['state']) for link in self.links()]}") from None


def shortcomings(entry, factor=1.0):
    """What of one entry is beyond `factor` times what it may be, as lines."""
    name = f"link failure ({entry['kind']}, {'with' if entry['switch_agents'] else 'without'} switch agents)"
    wrong = []
    limit_ms = factor * LIMITS_MS[entry["switch_agents"]]
    if entry["restore_ms"] > limit_ms:
        wrong.append(f"{name}: restored after {entry['restore_ms']} ms, the limit is {limit_ms} ms")
    share = 1 - factor * (1 - SHARES[entry["max_qps_per_link"] <= 2])
    if entry["min_flow_mbps"] < share * entry["ideal_min_flow_mbps"]:
        wrong.append(f"{name}: the slowest flow got {entry['min_flow_mbps']} of {entry['ideal_min_flow_mbps']} Mbit/s, less than {share:.0%}")
    return wrong
