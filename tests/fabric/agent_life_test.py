# SPDX-License-Identifier: Apache-2.0
"""What survives an agent, and what does not outlive its flow."""
import json
import os
import random
import threading
import time
import unittest

from agent_stage import HOST, flow_key, stage
from agent_wire import EVENT, FLOWS, HELLO, STEERING_REPORT, decode, number
from measure import Endpoints
from te_lab import Traffic, wait_for


class StaleSteering(unittest.TestCase):
    def dropped(self, session, key, port, reason):
        """Waits for the event and the report that say that a flow's steering was let go, and why."""
        _, event = session.wait(EVENT, lambda event: event.get(2) == [b"steering_dropped"])
        self.assertEqual((event[3][0], number(event, 4)), (key, port))
        self.assertIn(reason, event[6][0].decode())
        _, report = session.wait(STEERING_REPORT, lambda report: 2 not in report and 3 in report)
        self.assertEqual(decode(decode(report[3][0])[1][0])[1][0], key)

    def test_of_a_silent_flow_is_let_go(self):
        with stage() as scene:
            _, session = scene.session_of("h1", extra=HOST + "\nsteering_idle_s: 1")
            key = flow_key(scene.lab, "h1", "h2", 17)
            session.steer(1, {key: 50000})
            session.wait(STEERING_REPORT, lambda report: 2 in report)
            self.dropped(session, key, 50000, "no packet for 1 s")

    def test_of_a_queue_pair_that_is_another_one_now_is_let_go(self):
        with stage() as scene:
            table = scene.directory / "qp.json"
            self.write(table, 17)
            _, session = scene.session_of("h1", extra=f"interfaces: [eth0]\nqp_source: 'file:{table}'")
            key = flow_key(scene.lab, "h1", "h2", 17)
            session.steer(1, {key: 50000})
            session.wait(FLOWS, lambda update: any(number(flow, 7) == 7 for flow in map(decode, update.get(2, []))))
            self.write(table, 99)
            self.dropped(session, key, 50000, "another connection")

    @staticmethod
    def write(table, remote_qpn):
        """A table in which local QPN 7 is connected to a remote one."""
        fresh = table.with_suffix(".new")
        fresh.write_text(json.dumps([{"ifname": "rxe0", "lqpn": 7, "rqpn": remote_qpn, "type": "RC", "state": "RTS"}]))
        fresh.rename(table)


class Steerer:
    """Wants other ports for all flows again and again, of whatever session there is, until stop()."""

    def __init__(self, scene, own_ports, dice):
        self.scene, self.own_ports, self.dice = scene, own_ports, dice
        self.revision = 0
        self.wanted = {key: set() for key in own_ports}     # every port that was ever asked for
        self.entries = {}
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def once(self):
        """One set, to the newest session; False when that is over."""
        self.entries = {key: self._port_but(own) for key, own in self.own_ports.items()}
        for key, port in self.entries.items():
            self.wanted[key].add(port)
        self.revision += 1
        try:
            self.scene.controller.sessions[-1].steer(self.revision, self.entries)
        except OSError:
            return False
        return True

    def stop(self):
        self.ended.set()
        self.thread.join()

    def _run(self):
        while not self.ended.wait(0.02):
            self.once()

    def _port_but(self, own):
        while True:
            port = self.dice.randrange(0xC000, 0x10000)
            if port != own:
                return port


class Kills(unittest.TestCase):
    """kill -9 of the agent at any moment, while it steers: the kernel goes on, and the next agent adopts all of it. TE_KILLS
    says how often."""

    KILLS = int(os.environ.get("TE_KILLS", "10"))
    OTHER_FLOWS = 300       # that are steered and never send: work for the agent

    def test_nothing_is_lost_and_steering_stays_in_force(self):
        dice = random.Random(20261130)
        with stage(leaves=2) as scene:
            config = scene.config("h1", extra=HOST)
            agent = scene.start("h1", config)
            first = scene.controller.wait_session()
            traffic = Traffic(scene.lab, pattern="ring", qps=2)
            flows = {flow_key(scene.lab, "h1", flow.destination, flow.destination_qpn): flow
                     for flow in scene.lab.flows() if flow.source == "h1"}
            own_ports = {key: flow.source_port for key, flow in flows.items()}
            own_ports.update({flow_key(scene.lab, "h1", "h2", 0x500000 + i): 0 for i in range(self.OTHER_FLOWS)})
            steerer = Steerer(scene, own_ports, dice)
            self.assertTrue(steerer.once())
            steered_s, _ = first.wait(STEERING_REPORT, lambda report: self.programmed(report, 2) == steerer.entries)
            unsteered = {key: self.unsteered(first, key, steered_s) for key in flows}
            steerer.thread.start()
            for _ in range(self.KILLS):
                time.sleep(dice.uniform(0, 0.8))
                agent.process.kill()
                agent.process.wait()
                agent = scene.start("h1", config)
            wait_for(agent.is_ready, 15, "the last agent did not get ready")
            steerer.stop()
            last = self.session_after(scene, agent)
            wait_for(steerer.once, 10, "no session is left")
            last.wait(STEERING_REPORT, lambda report: self.programmed(report, 2) == steerer.entries)
            self.check_adoptions(scene, steerer)
            traffic.stop()
            self.check_counters(scene, last, flows, unsteered)

    @staticmethod
    def session_after(scene, agent):
        """The session of the agent that was started last."""
        wait_for(lambda: "session with a controller" in agent.log.read_text(errors="replace"), 15, "no session")
        return scene.controller.sessions[-1]

    @staticmethod
    def programmed(message, field):
        """{key: port} of a message's SteeringEntries."""
        return {entry[1][0]: number(entry, 2) for entry in map(decode, message.get(field, []))}

    @staticmethod
    def reports(session, after=0.0):
        """(key, report) of every FlowReport, in order."""
        for when, update in session.of_kind(FLOWS):
            if when > after:
                for report in map(decode, update.get(2, [])):
                    yield report[1][0], report

    def unsteered(self, session, key, after):
        """Packets of a flow that went out with their own port, as the first report after a time says."""
        def report():
            return next((found for name, found in self.reports(session, after) if name == key), None)

        wait_for(report, 10, "the flow is not reported")
        return number(report(), 10) - number(report(), 19)

    def check_adoptions(self, scene, steerer):
        """Every agent but the first held all steering when it said hello, with ports that were asked for."""
        self.assertGreater(len(scene.controller.sessions), 2)
        for session in scene.controller.sessions[1:]:
            adopted = self.programmed(session.of_kind(HELLO)[0][1], 8)
            self.assertEqual(set(adopted), set(steerer.wanted))
            self.assertEqual([key for key, port in adopted.items() if port not in steerer.wanted[key]], [])

    def check_counters(self, scene, last, flows, unsteered):
        """Over all agents, counters only grow; in the end they say what the endpoints say that they sent."""
        seen = {}
        for session in scene.controller.sessions:
            for key, report in self.reports(session):
                self.assertGreaterEqual(number(report, 10), seen.get(key, 0))
                seen[key] = number(report, 10)
        sent = Endpoints(scene.lab).update().series
        for key, flow in flows.items():
            want = sent["h1", flow.source_qpn, "packets_sent"].values[-1]

            def newest(key=key):
                return [report for name, report in self.reports(last) if name == key][-1]

            wait_for(lambda want=want, newest=newest: number(newest(), 10) >= want, 10, "packets are missing in the counters")
            self.assertEqual(number(newest(), 10), want)
            self.assertEqual(number(newest(), 10) - number(newest(), 19), unsteered[key], "packets left with their own port")


if __name__ == "__main__":
    unittest.main()
