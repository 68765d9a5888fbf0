# SPDX-License-Identifier: Apache-2.0
"""What the best placement of unsplittable flows would give, in closed form."""
from collections import Counter
from math import ceil

PATH_MTUS = (4096, 2048, 1024, 512, 256)
RXE_HEADER_ROOM = 80
RETH_BYTES = 16


def path_mtu(mtu):
    return next((size for size in PATH_MTUS if mtu >= size + RXE_HEADER_ROOM), 256)


def header_bytes(family):
    """Ethernet, IP, UDP, BTH and ICRC of one packet, as the shaper counts them."""
    return 14 + (40 if family == 6 else 20) + 8 + 12 + 4


def message_wire_bytes(message_bytes, mtu, family, verb="write"):
    packets = ceil(message_bytes / path_mtu(mtu))
    padding = -message_bytes % 4
    return message_bytes + padding + packets * header_bytes(family) + (RETH_BYTES if verb == "write" else 0)


def answer_wire_bytes(family):
    """An acknowledgement: headers and AETH."""
    return header_bytes(family) + 4


def ideal_min_flow_bps(lab, flows, message_bytes, verb="write"):
    """Goodput of the slowest flow: the link rate, divided by the flows that the fullest link must carry at best, times the
    share of message bytes in what the shaper counts. Flows of a leaf spread evenly over its spines at best."""
    leaf_of = {host: lab.attachment(host)[0] for host in lab.names("host")}
    spines = len(lab.names("spine"))
    crossing = [flow for flow in flows if leaf_of[flow.source] != leaf_of[flow.destination]]
    fullest = max([*Counter(flow.source for flow in flows).values(), *Counter(flow.destination for flow in flows).values(),
                   *(ceil(count / spines) for count in Counter(leaf_of[flow.source] for flow in crossing).values()),
                   *(ceil(count / spines) for count in Counter(leaf_of[flow.destination] for flow in crossing).values())])
    share = message_bytes / message_wire_bytes(message_bytes, lab.spec["mtu"], lab.spec["family"], verb)
    return lab.rate_bps / fullest * share
