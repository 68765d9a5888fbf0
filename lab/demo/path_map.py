# SPDX-License-Identifier: Apache-2.0
"""Which flow takes which spine, seen on the leaves' own ports."""
import json
import subprocess
import sys
from pathlib import Path

WATCHER = Path(__file__).with_name("watch_uplinks.py")


def observe(lab, flows, seconds=0.3):
    """{flow: spine} from the packets that leave the leaves; a flow that was not seen is absent."""
    spines = lab.names("spine")
    started = [lab.popen(leaf, [sys.executable, WATCHER, seconds, *spines], stdout=subprocess.PIPE, text=True)
               for leaf in lab.names("leaf")]
    address = {link["a"]["address"]: link["a"]["node"] for link in lab.links}
    by_key = {(flow.source, flow.destination, flow.destination_qpn): flow for flow in flows}
    taken = {}
    for process in started:
        for spine, seen in json.loads(process.communicate()[0]).items():
            for source, destination, qpn, _ in seen:
                flow = by_key.get((address.get(source), address.get(destination), qpn))
                if flow:
                    taken[flow] = spine
    return taken


def flows_on_uplinks(lab, taken):
    """{(leaf, spine): [flow, ...]}, every uplink listed."""
    uplinks = {(leaf, spine): [] for leaf in lab.names("leaf") for spine in lab.names("spine")}
    for flow, spine in taken.items():
        uplinks[lab.attachment(flow.source, flow.nic)[0], spine].append(flow)
    return uplinks
