# SPDX-License-Identifier: Apache-2.0
"""kill -9 of the controller, of agents and of both, under traffic and while flows are being moved: no message, no counter and
no steering is lost, and nothing moves afterwards that need not.

    TE_KILLS   how many (6)        TE_SEED   of what dies and when; printed, so that a run can be repeated
"""
import os
import random
import time
import unittest
from collections import Counter

from books import Books, counted_from_the_first_packet
from link_failure import LinkFailure
from link_failure_test import wrong_paths
from te_lab import wait_for


class Kills(unittest.TestCase):
    KILLS = int(os.environ.get("TE_KILLS", "6"))
    WATCHED_S = 2.5     # after a return, where nothing was to be moved

    def test_nothing_is_lost_and_nothing_moves_that_need_not(self):
        seed = int(os.environ.get("TE_SEED", random.randrange(1 << 30)))
        print(f"TE_SEED={seed} TE_KILLS={self.KILLS}", flush=True)
        self.dice = random.Random(seed)
        self.cut = None
        self.tally = Counter()
        with counted_from_the_first_packet() as self.here:
            self.books = Books(self.here)
            self.here.product.wait_for_first_reports(len(self.here.flows))
            for number in range(self.KILLS):
                provocation = "act" if number == 0 else self.pick_provocation()
                victims = self.pick_victims()
                begin = time.monotonic()
                with self.subTest(kill=number, provocation=provocation, victims=victims):
                    moves = getattr(self, "kill_with_" + provocation)(victims)
                    print(f"kill {number}: {provocation}, {'+'.join(victims)}: {moves} moves, {time.monotonic() - begin:.1f} s",
                          flush=True)
            print(dict(self.tally), flush=True)
            if self.cut:
                self.here.lab.restore(f"{self.cut.leaf}:{self.cut.spine}")
                self.trusted(self.cut)
            # A controller that never knew of a cut finds out by its probes of ports in use that a switch hashes anew.
            self.here.wait_converged(self.here.endpoints.update().known_until_s(), seconds=60)
            self.here.traffic.stop()
            self.check_counters()

    def pick_provocation(self):
        picked = self.dice.choices(("none", "resume", "cable"), (50, 35, 15))[0]
        # A pause takes flows back to where they were before the cut.
        return "cable" if picked == "resume" and self.cut else picked

    def pick_victims(self):
        agent = self.dice.choice(sorted(self.here.product.agents))
        return self.dice.choice((["controller"], [agent], sorted(self.here.product.agents), ["controller", agent]))

    def kill_with_none(self, victims):
        """Nothing is to be done: nothing is done after the return either."""
        self.books.wait_quiet()
        if self.books.drained():    # a new controller does not know of losses that the last one found
            victims = [name for name in victims if name != "controller"] or ["h1"]
        return self.kill(victims, lambda: None, 0.5, still=True)

    def kill_with_act(self, victims):
        return self.kill(victims, self.here.product.act, 0.5)

    def kill_with_resume(self, victims):
        """All flows are moved anew."""
        self.here.product.call("POST", "/v1/pause")
        wait_for(lambda: not self.here.steered() and not self.books.disagreements(), 10, "flows are steered after a pause")
        return self.kill(victims, lambda: self.here.product.call("POST", "/v1/resume"), 0.6)

    def kill_with_cable(self, victims):
        """Flows have to leave a link, or may come back to it."""
        lab = self.here.lab
        if self.cut:
            failure, self.cut = self.cut, None
            return self.kill(victims, lambda: lab.restore(f"{failure.leaf}:{failure.spine}"), 3.0, lambda: self.trusted(failure))
        failure = self.cut = LinkFailure(lab, self.here.product, self.here.flows, self.here.endpoints,
                                         self.dice.choice(lab.names("leaf")), self.dice.choice(lab.names("spine")))
        return self.kill(victims, lambda: lab.fail(f"{failure.leaf}:{failure.spine}"), 2.0, self.all_arrive)

    @staticmethod
    def trusted(failure):
        """Flows may use the mended link. To a controller that never knew of the cut it may be one that nobody has used yet."""
        wait_for(lambda: all(link.get("takes_flows") for link in failure.links()), 20, "a mended link takes no flows")

    def all_arrive(self):
        """Every flow takes the way that the kernel takes, to its end. A new controller need not know which link it was."""
        wait_for(lambda: not wrong_paths(self.here), 20, "flows are on ways that are dead or not known")

    def kill(self, victims, provoke, most_s, settle=lambda: None, still=False):
        """Provokes, kills after at most `most_s`, brings back, checks. How many moves that took; `still`: none are due."""
        before, total = self.books.flows(), self.books.total()
        provoke()
        time.sleep(self.dice.uniform(0, most_s))
        product = self.here.product
        programs = [product.controller if name == "controller" else product.agents[name] for name in victims]
        for program in programs:
            program.process.kill()
        for program in programs:
            program.process.wait()
        self.bring_back(victims)
        self.here.product.wait_for_first_reports(len(self.here.flows))
        kinds = ["controller" if name == "controller" else "agent" for name in victims]
        self.tally["all agents" if len(victims) > 2 else "+".join(kinds)] += 1
        if still:
            end = time.monotonic() + self.WATCHED_S
            wait_for(lambda: time.monotonic() > end or self.books.total() != total, 2 * self.WATCHED_S, "")
            self.assertEqual(self.books.total(), total, [move for move in self.books.moves() if move["number"] > total])
        settle()
        self.books.wait_quiet()
        self.check(before, total)
        return self.books.total() - total

    def bring_back(self, victims):
        for name in self.dice.sample(victims, len(victims)):
            time.sleep(self.dice.uniform(0, 1.5 / len(victims)))
            if name == "controller":
                self.here.product.start_controller()
            else:
                self.here.product.agents[name] = self.here.product.start_agent(name)
        for agent in self.here.product.agents.values():
            wait_for(agent.is_ready, 15, f"{agent.name} did not get ready")

    def check(self, before, total):
        self.assertGreaterEqual(self.books.total(), total, "the ledger lost moves")
        self.assertEqual(self.here.endpoints.update().count("messages_lost"), 0)
        wait_for(lambda: not self.books.disagreements(), 5, f"not steered as desired: {self.books.disagreements()}")
        after = self.books.flows()
        self.assertEqual(set(after), set(before))
        ports = {}      # that a flow has had meanwhile
        for move in self.books.moves():
            if move["number"] > total:
                ports.setdefault(move["flow_id"], set()).update((move["from_port"], move["to_port"]))
        for key, flow in after.items():
            sent_before = before[key].get("packets_sent", 0)    # absent: the sender's first report had not come
            self.assertGreaterEqual(flow["packets_sent"], sent_before, flow)
            both = before[key].get("steered") and flow.get("steered")
            if both and self.books.own_ports[key] not in ports.get(flow["id"], ()):
                unsteered, was = (one["packets_sent"] - one["packets_steered"] for one in (flow, before[key]))
                self.assertEqual(unsteered, was, f"packets of {flow['id']} left with their own port")

    def check_counters(self):
        """What the controller shows in the end is what the endpoints say that they sent."""
        self.assertEqual(self.books.wait_counted(), {}, "packets sent, and counted")
        self.assertEqual(self.here.endpoints.count("messages_lost"), 0)
        self.assertEqual(self.here.endpoints.count("messages_completed"), self.here.endpoints.count("messages_received"))


if __name__ == "__main__":
    unittest.main()
