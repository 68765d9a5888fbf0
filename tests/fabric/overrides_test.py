# SPDX-License-Identifier: Apache-2.0
"""Drains by operators under real traffic: flows leave in time, nothing is lost, and what is forgotten ends."""
import time
import unittest

from product_test import scene
from te_lab import wait_for


class Drain(unittest.TestCase):
    def flows_over(self, here, switch):
        return next(one for one in here.product.get("/v1/switches")["switches"] if one["name"] == switch)["elastic_flows"]

    def test_flows_leave_a_spine_at_once_and_come_back_when_the_time_is_over(self):
        with scene(calm=True) as here:
            here.act_until_converged()
            here.wait_settled()
            self.assertGreater(self.flows_over(here, "spine2"), 0)
            begin = time.monotonic()
            here.product.call("POST", "/v1/drain?target=spine2&ttl_s=12&reason=new%20optics")
            wait_for(lambda: self.flows_over(here, "spine2") == 0, 2, "flows are left on the drained spine")
            print(f"no flow on spine2 after {time.monotonic() - begin:.2f} s", flush=True)
            here.product.controller.process.kill()
            here.product.controller.process.wait()
            here.product.start_controller()
            here.product.wait_for_first_reports(len(here.flows))
            wait_for(lambda: here.status()["flows_with_known_path"] == here.status()["flows"], 10, "paths are not known again")
            if time.monotonic() - begin < 11:
                self.assertEqual([one["target"] for one in here.product.get("/v1/overrides")["overrides"]], ["spine2"])
                self.assertEqual(self.flows_over(here, "spine2"), 0)
            wait_for(lambda: not here.product.get("/v1/overrides").get("overrides"), 15, "the drain does not end")
            here.wait_converged(time.monotonic(), seconds=30)
            self.assertGreater(self.flows_over(here, "spine2"), 0)
            here.traffic.stop()
            here.endpoints.update()
            self.assertEqual(here.endpoints.count("messages_lost"), 0)


if __name__ == "__main__":
    unittest.main()
