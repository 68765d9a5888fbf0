# SPDX-License-Identifier: Apache-2.0
"""What the product does when its surroundings fail it: no room on disk, a controller that stands still, crowds of flows."""
import os
import signal
import tempfile
import time
import unittest
from contextlib import contextmanager
from pathlib import Path

from books import PATIENT, Books, counted_from_the_first_packet
from link_failure_test import wrong_paths
from listening import send
from product_test import scene
from te_lab import run, wait_for

MEBI = 1 << 20


def resident_bytes(program):
    with open(f"/proc/{program.process.pid}/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def pass_time(seconds):
    end = time.monotonic() + seconds
    wait_for(lambda: time.monotonic() > end, seconds + 5, "")


@contextmanager
def small_disk(size="1m"):
    with tempfile.TemporaryDirectory() as directory:
        run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", directory])
        try:
            yield Path(directory)
        finally:
            run(["umount", directory])


def fill(disk):
    """Takes what room there is; returns the file that does."""
    path = disk / "filler"
    with open(path, "wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(512))
        except OSError:
            return path


class FullDisk(unittest.TestCase):
    def warned(self, here):
        return any("database or disk is full" in warning for warning in here.status().get("warnings", []))

    def test_only_what_must_be_is_moved_until_decisions_can_be_stored_again(self):
        with small_disk() as disk, scene(calm=True, traffic_options=PATIENT, state=disk / "state.db") as here:
            here.product.wait_for_first_reports(len(here.flows))
            filler = fill(disk)
            here.product.act(True)
            wait_for(lambda: self.warned(here), 5, "the full disk is not told")
            pass_time(5)
            self.assertTrue(here.product.get("/v1/plan").get("moves"))
            self.assertEqual((here.status()["moves_total"], here.steered()), (0, {}))
            here.lab.fail("leaf1:spine2")
            wait_for(lambda: not wrong_paths(here), 15, "flows stay on a dead link because the disk is full")
            self.assertEqual([move for move in here.product.get("/v1/moves")["moves"] if not move.get("forced")], [])
            here.lab.restore("leaf1:spine2")
            filler.unlink()
            wait_for(lambda: not self.warned(here), 5, "there is room and the disk is still called full")
            here.wait_converged(time.monotonic(), seconds=40)
            here.product.controller.process.kill()
            here.product.controller.process.wait()
            here.product.start_controller()
            self.assertEqual(here.status()["mode"], "act")

    def test_a_controller_comes_back_on_a_full_disk(self):
        with small_disk() as disk, scene(calm=True, state=disk / "state.db") as here:
            here.act_until_converged()
            here.wait_settled()
            steered = {key: flow["wire_port"] for key, flow in here.steered().items()}
            fill(disk)
            here.product.controller.process.kill()
            here.product.controller.process.wait()
            here.product.start_controller()
            here.product.wait_for_first_reports(len(here.flows))
            self.assertEqual({key: flow["wire_port"] for key, flow in here.steered().items()}, steered)


class StandStill(unittest.TestCase):
    """A controller that does nothing for 10 s, as when its machine is out of memory or moves to another host."""

    STOPPED_S = 10.0

    def stand_still(self, here):
        os.kill(here.product.controller.process.pid, signal.SIGSTOP)
        pass_time(self.STOPPED_S)
        os.kill(here.product.controller.process.pid, signal.SIGCONT)
        wait_for(lambda: here.status().get("agents_connected") == 8, 15, "the agents did not come back")
        here.product.wait_for_first_reports(len(here.flows))

    def test_agents_go_on_and_nothing_moves_afterwards(self):
        with scene(calm=True) as here:
            here.act_until_converged()
            here.wait_settled()
            steered = {key: flow["wire_port"] for key, flow in here.steered().items()}
            memory = {name: resident_bytes(agent) for name, agent in here.product.agents.items()}
            moves = here.status()["moves_total"]
            begin = here.endpoints.update().known_until_s()
            self.stand_still(here)
            for name, agent in here.product.agents.items():
                self.assertLess(resident_bytes(agent), memory[name] + 16 * MEBI, name)
            here.wait_converged(begin, hold_s=self.STOPPED_S)
            pass_time(3)
            self.assertEqual({key: flow["wire_port"] for key, flow in here.steered().items()}, steered)
            self.assertEqual(here.status()["moves_total"], moves)
            self.assertEqual(here.status().get("rollbacks_total", 0), 0)

    def test_moves_that_were_on_their_way_are_not_taken_back(self):
        with scene(calm=True) as here:
            here.product.wait_for_first_reports(len(here.flows))
            here.product.act(True)
            wait_for(lambda: here.status().get("moves_total"), 10, "nothing is moved")
            self.stand_still(here)
            here.wait_converged(time.monotonic())
            here.wait_settled(40)
            self.assertEqual([move for move in Books(here).moves() if move["state"] in ("rolled_back", "failed")], [])


class ShortLivedFlows(unittest.TestCase):
    CROWD, BATCH = 10_000, 500

    def test_ten_thousand_leave_long_flows_counted_and_memory_bounded(self):
        with counted_from_the_first_packet() as here:
            here.act_until_converged()
            here.wait_settled()
            before = {name: resident_bytes(program) for name, program in self.programs(here).items()}
            moves = here.status()["moves_total"]
            for first in range(0, self.CROWD, self.BATCH):
                crowd = [[0xC000 + number % 0x4000, 0x800000 + number] for number in range(first, first + self.BATCH)]
                send(here.lab, "h1", "h5", crowd, 2)
            wait_for(lambda: here.status()["flows"] >= self.CROWD, 20, "not all flows were seen")
            here.wait_converged(time.monotonic())
            growth = {name: (resident_bytes(program) - before[name]) / MEBI for name, program in self.programs(here).items()}
            print(f"{self.CROWD} short-lived flows: memory grew by {growth['te-controller']:.0f} MiB in the controller, by "
                  f"{growth['h1']:.0f} MiB in the sender's agent", flush=True)
            self.assertLess(growth["te-controller"], 100)
            self.assertLess(growth["h1"], 60)
            self.assertEqual(here.status()["moves_total"], moves)
            here.traffic.stop()
            self.assertEqual(Books(here).wait_counted(), {}, "packets sent, and counted")

    @staticmethod
    def programs(here):
        return {"te-controller": here.product.controller, **here.product.agents}


if __name__ == "__main__":
    unittest.main()
