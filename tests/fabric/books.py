# SPDX-License-Identifier: Apache-2.0
"""What the product says of its flows and moves, held against what the endpoints say and what it has on disk."""
import json
import sqlite3
import time
from contextlib import contextmanager

from product import Product
from product_test import CALM_RATE, CALM_WINDOW, MESSAGE_BYTES, RING, Scene
from support import PROGRAMS, make_lab
from te_lab import Traffic, wait_for

PATIENT = {"timeout_ms": 100, "retries": 250}   # connections that outlive a dead link and a dead controller, as long as usual ones
UNDER_WAY = ("proposed", "sent", "programmed")


@contextmanager
def counted_from_the_first_packet():
    """The quickstart's ring, calmer, with traffic that begins under the agents' eyes."""
    with make_lab(**RING | {"rate": CALM_RATE}) as lab, Product(lab, PROGRAMS) as product:
        traffic = Traffic(lab, pattern="ring", qps=2, message_bytes=MESSAGE_BYTES, window_packets=CALM_WINDOW, **PATIENT)
        yield Scene(lab, traffic, product)


class Books:
    """What the product says of its flows and moves, and what it has on disk."""

    def __init__(self, here):
        self.here = here
        self.own_ports = {}
        for flow in here.flows:
            self.own_ports[flow.source, flow.destination_qpn] = flow.source_port
            self.own_ports[flow.destination, flow.source_qpn] = flow.answer_source_port

    def flows(self):
        return {(flow["source_node"], flow["destination_qpn"]): flow for flow in self.here.shown_flows()}

    def moves(self):
        return self.here.product.get("/v1/moves?limit=400").get("moves", [])

    def total(self):
        return self.here.status()["moves_total"]

    def drained(self):
        """Links that carry and are not used, because of losses."""
        return [link["from"] for link in self.here.product.get("/v1/links")["links"]
                if not link.get("takes_flows") and link["state"] != "down"]

    def is_quiet(self):
        """Nothing is being moved, nothing is planned."""
        return (not self.here.product.get("/v1/plan").get("moves") and
                not any(move["state"] in UNDER_WAY for move in self.moves()))

    def wait_quiet(self, seconds=40, hold_s=1.5):
        quiet_since = [None, -1]

        def stays_quiet():
            total = self.total()
            if not self.is_quiet() or total != quiet_since[1]:
                quiet_since[:] = [time.monotonic(), total]
            return time.monotonic() - quiet_since[0] >= hold_s

        wait_for(stays_quiet, seconds, "the product goes on moving flows")

    def stored(self):
        """{(source node, destination QPN): port} that are desired, as the controller would find them after a kill."""
        with sqlite3.connect(f"file:{self.here.product.state}?mode=ro", uri=True) as database:
            rows = database.execute("SELECT node, entries FROM steering").fetchall()
        return {(node, entry["key"]["destination_qpn"]): entry["port"]
                for node, entries in rows for entry in json.loads(entries).get("entries", [])}

    def disagreements(self):
        """Flows whose packets do not carry the port that is desired."""
        stored = self.stored()
        return [(key, stored.get(key), flow["wire_port"]) for key, flow in self.flows().items()
                if flow["wire_port"] != stored.get(key, self.own_ports[key])]

    def miscounted(self):
        """{flow: (packets that its endpoint sent, that the product counted)} where they differ; once no traffic runs."""
        sent = self.here.endpoints.update().series
        shown = self.flows()
        both = {(flow.source, flow.destination_qpn): (sent[flow.source, flow.source_qpn, "packets_sent"].values[-1],
                                                      shown[flow.source, flow.destination_qpn]["packets_sent"])
                for flow in self.here.flows}
        return {key: counts for key, counts in both.items() if counts[0] != counts[1]}

    def wait_counted(self, seconds=10):
        """Returns what is miscounted after that long at most."""
        end = time.monotonic() + seconds
        wait_for(lambda: not self.miscounted() or time.monotonic() > end, seconds + 5, "")
        return self.miscounted()
