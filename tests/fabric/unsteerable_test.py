# SPDX-License-Identifier: Apache-2.0
"""Switches that cannot be steered are recognised, named and left alone, and steered once they behave."""
import time
import unittest

from product_test import scene
from te_lab import wait_for

RECOGNISED_S = 30


class Unsteerable(unittest.TestCase):
    def node(self, here, name):
        return next(node for node in here.product.get("/v1/nodes")["nodes"] if node["name"] == name)

    def ecmp(self, here, name):
        return self.node(here, name).get("ecmp")

    def moves(self, here):
        return here.product.get("/v1/moves").get("moves", [])

    def check(self, switch, mode, expected, forbidden):
        """`forbidden(move)`: a move that must not happen while the switch is in `mode`."""
        with scene(calm=True, prepare=lambda lab: lab.switch(switch, mode)) as here:
            here.product.act(True)
            begin = time.monotonic()
            wait_for(lambda: self.ecmp(here, switch) == expected, RECOGNISED_S, f"{switch} in mode {mode} is not recognised")
            print(f"{switch} {mode}: '{expected}' after {time.monotonic() - begin:.1f} s: "
                  f"{self.node(here, switch).get('ecmp_evidence')}", flush=True)
            end = time.monotonic() + 5
            wait_for(lambda: time.monotonic() > end, 10, "")
            self.assertEqual([move for move in self.moves(here) if forbidden(move)], [])
            self.assertTrue(any(switch in warning for warning in here.status().get("warnings", [])))
            here.lab.switch(switch, "normal")
            mended = time.monotonic()
            wait_for(lambda: self.ecmp(here, switch) != expected, RECOGNISED_S, f"{switch} is normal and still '{expected}'")
            here.wait_converged(mended, seconds=RECOGNISED_S)

    @staticmethod
    def by_leaf1(move):
        return "leaf1" in (move.get("from_path", "").split(",")[0], move["to_path"].split(",")[0])

    @staticmethod
    def onto_spine2(move):
        return "spine2" in move["to_path"].split(",")

    def test_hashing_by_the_destination_qp(self):
        self.check("leaf1", "qpn-hash", "not by port", self.by_leaf1)

    def test_spraying(self):
        self.check("leaf1", "spray", "varies", self.by_leaf1)

    def test_answers_from_a_loopback_address(self):
        self.check("spine2", "loopback-answers", "silent", self.onto_spine2)

    def test_no_answers(self):
        self.check("spine2", "silent", "silent", self.onto_spine2)


if __name__ == "__main__":
    unittest.main()
