# SPDX-License-Identifier: Apache-2.0
"""The agent with what its systemd units leave it: their capabilities, user and system calls, read from the unit files."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from contextlib import contextmanager
from pathlib import Path

from agent_stage import flow_key, ports_on_wire, stage
from agent_wire import HELLO, LINKS, PROBE_REQUEST, PROBE_RESULT, SOURCES, STEERING_REPORT, decode, encode, number
from support import PROGRAMS
from te_lab import Traffic, wait_for

sys.path.append(str(Path(__file__).resolve().parents[1] / "deploy"))
from deployment import allowed_system_calls, capabilities, settings, unit

HOST, SWITCH = unit("roce-te-agent"), unit("roce-te-switch-agent")
NOBODY = 65534
CAP_NET_ADMIN, CAP_BPF = 12, 39


def as_unit(path, user=()):
    """Starts a program with a unit's CapabilityBoundingSet=, without new privileges."""
    left = ",".join(["-all", *(f"+{name.lower()}" for name in sorted(capabilities(path)))])
    return [Path("/usr/bin/setpriv"), *user, "--bounding-set", left, "--inh-caps", "-all", "--no-new-privs"]


def traced(log):
    """The program stays the child that is ended by a signal: the tracer is a grandchild."""
    return [Path("/usr/bin/strace"), "-D", "-f", "-q", "-o", log]


def system_calls(log, program):
    """Names of what was called once `program` ran."""
    text = log.read_text(errors="replace")
    return set(re.findall(r"^\d+\s+(\w+)\(", text[re.search(rf'execve\("[^"]*/{program}"', text).start():], re.M))


@contextmanager
def readable_by(user):
    """A folder for a program and certificates that a user other than root can reach."""
    folder = Path(tempfile.mkdtemp(prefix="te-unit-"))
    try:
        folder.chmod(0o755)
        (folder / "run").mkdir()
        shutil.chown(folder / "run", user)
        yield folder
    finally:
        shutil.rmtree(folder)


class Host(unittest.TestCase):
    def test_attaches_probes_and_steers_with_the_units_capabilities(self):
        for attach in ("tcx", "clsact"):
            with self.subTest(attach=attach), stage() as scene:
                traffic = Traffic(scene.lab, pattern="ring", qps=1)
                agent, session = scene.session_of("h1", extra=self.config(attach), command=as_unit(HOST))
                sources = {decode(source)[1][0]: number(decode(source), 2) for source in session.of_kind(HELLO)[0][1][6]}
                self.assertEqual((sources[b"tc"], sources[b"probe"], sources[b"links"]), (1, 1, 1))
                self.work(scene, session)
                self.assertIsNone(agent.process.poll())
                traffic.stop()

    def test_makes_no_system_call_that_the_unit_forbids(self):
        with stage() as scene:
            traffic = Traffic(scene.lab, pattern="ring", qps=1)
            log = scene.directory / "calls"
            agent, session = scene.session_of("h1", extra=self.config("auto"), command=[*traced(log), *as_unit(HOST)])
            self.work(scene, session)
            traffic.stop()
            agent.end(15)
            # The tracer has written all when it is gone: then the end of the program is in its file.
            wait_for(lambda: "+++ exited" in log.read_text(errors="replace"), 10, "the trace has no end")
            called = system_calls(log, "host-agent")
        self.assertLessEqual({"bpf", "connect", "capset"}, called)
        self.assertEqual(called - allowed_system_calls(HOST), set())

    def test_enters_another_namespace_and_works_there_with_what_is_left_then(self):
        for attach in ("tcx", "clsact"):
            with self.subTest(attach=attach), stage(nic_netns=True) as scene:
                traffic = Traffic(scene.lab, pattern="ring", qps=1)
                nic = f"{{name: eth0, netns: /run/netns/{scene.lab.netns('h1')}}}"
                config = self.config(attach).replace("[eth0]", f"[{nic}]")
                log = scene.directory / "calls"
                agent, session = scene.session_of("h1", extra=config, command=[*traced(log), *as_unit(HOST)])
                self.work(scene, session)
                threads = list(Path(f"/proc/{agent.process.pid}/task").iterdir())
                self.assertEqual(len(threads), 2)
                for thread in threads:
                    left = re.search(r"^CapPrm:\t([0-9a-f]+)$", (thread / "status").read_text(), re.M).group(1)
                    self.assertEqual(int(left, 16) & ~(1 << CAP_NET_ADMIN | 1 << CAP_BPF), 0, thread)
                traffic.stop()
                agent.end(15)
                wait_for(lambda: "+++ exited" in log.read_text(errors="replace"), 10, "the trace has no end")
                called = system_calls(log, "host-agent")
            self.assertIn("setns", called)
            self.assertEqual(called - allowed_system_calls(HOST), set())

    def test_without_one_of_them_it_would_not_do(self):
        for missing, source in (("net_raw", b"probe"), ("perfmon", b"tc")):
            with self.subTest(missing=missing), stage() as scene:
                command = as_unit(HOST)
                place = command.index("--bounding-set") + 1
                command[place] = re.sub(rf",\+({missing}|sys_admin)\b", "", command[place])
                agent = scene.start("h1", scene.config("h1", extra=self.config("auto")), command)
                wait_for(lambda: agent.process.poll() is not None or scene.controller.sessions and
                         scene.controller.sessions[0].of_kind(HELLO), 15, "the agent neither ended nor said hello")
                if agent.process.poll() is None:
                    hello = scene.controller.sessions[0].of_kind(HELLO)[0][1]
                    on = {decode(told)[1][0] for told in hello[6] if number(decode(told), 2) == 1}
                    self.assertNotIn(source, on)
                else:
                    self.assertNotIn(" ready ", agent.log.read_text())

    @staticmethod
    def config(attach):
        return f"interfaces: [eth0]\nqp_source: none\nattach: {attach}"

    def work(self, scene, session):
        """A steered flow and an answered probe."""
        flow = next(flow for flow in scene.lab.flows() if flow.source == "h1")
        key = flow_key(scene.lab, "h1", flow.destination, flow.destination_qpn)
        port = 0xC000 + (flow.source_port + 1) % 0x4000
        session.steer(1, {key: port})
        session.wait(STEERING_REPORT, lambda report: number(report, 1) == 1 and 2 in report)
        self.assertEqual(ports_on_wire(scene.lab, "h1")[flow.destination_qpn], {port})
        session.send(PROBE_REQUEST, encode((1, 1), (2, key), (4, 50000), (5, 1), (6, 100), (7, 2), (8, 200)))
        _, result = session.wait(PROBE_RESULT, lambda result: 2 in result)
        self.assertTrue(decode(result[2][0]).get(3, [b""])[0], "no switch answered the probe")


class Switch(unittest.TestCase):
    def test_reports_links_as_a_user_without_capabilities_and_makes_no_call_that_the_unit_forbids(self):
        self.assertEqual(capabilities(SWITCH), set())
        self.assertNotIn(settings(SWITCH, "User"), ([], ["root"]))
        user = ["--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups"]
        with stage() as scene, readable_by(NOBODY) as folder:
            program = shutil.copy(PROGRAMS / "host-agent", folder)
            certificate, key = scene.authority.issue("leaf1")
            for file in (certificate, key, scene.authority.certificate):
                shutil.chown(shutil.copy(file, folder), NOBODY)
            config = scene.config("leaf1", "switch", f"run_directory: {folder}/run")
            config.write_text(config.read_text().replace(str(certificate.parent), str(folder)))
            shutil.copy(config, folder)
            os.chmod(folder / config.name, 0o644)
            log = scene.directory / "calls"
            process = scene.lab.popen("leaf1", [*traced(log), *as_unit(SWITCH, user), program, "run", "--config", folder / config.name],
                                      stderr=subprocess.DEVNULL)
            try:
                _, update = scene.controller.wait_session().wait(LINKS)
                self.assertIn(1, update)
                status = Path(f"/proc/{process.pid}/status").read_text()
                self.assertEqual(re.search(r"^CapBnd:\t([0-9a-f]+)$", status, re.M).group(1), "0" * 16)
                self.assertEqual(re.search(r"^Uid:\t(\d+)", status, re.M).group(1), str(NOBODY))
            finally:
                process.terminate()
                process.wait(15)
            wait_for(lambda: "+++ exited" in log.read_text(errors="replace"), 10, "the trace has no end")
            called = system_calls(log, "host-agent")
        self.assertIn("connect", called)
        self.assertEqual(called - allowed_system_calls(SWITCH), set())


if __name__ == "__main__":
    unittest.main()
