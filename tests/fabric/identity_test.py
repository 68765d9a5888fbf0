# SPDX-License-Identifier: Apache-2.0
"""Who may do what, with the real programs: te-controller and tectl on loopback, in a network namespace of their own."""
import contextlib
import ctypes
import hashlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from support import PROGRAMS, lab_id
from te_lab import LabError, wait_for

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET = 0x40000000
AGENTS, METRICS, API = 7411, 7412, 7414
TOPOLOGY = """version: 1
nodes:
  - {name: h1, kind: host}
  - {name: h2, kind: host}
  - {name: leaf1, kind: leaf}
links:
  - {a: {node: h1, port: eth0, addresses: [10.1.1.2]}, b: {node: leaf1, port: p1, addresses: [10.1.1.1]}, capacity: 10gbit}
  - {a: {node: h2, port: eth0, addresses: [10.1.2.2]}, b: {node: leaf1, port: p2, addresses: [10.1.2.1]}, capacity: 10gbit}
"""


class Namespace:
    """A network namespace with loopback only."""

    def __init__(self):
        self.name = f"te-{lab_id('i')}"
        subprocess.run(["ip", "netns", "add", self.name], check=True)
        subprocess.run(["ip", "-n", self.name, "link", "set", "lo", "up"], check=True)

    def remove(self):
        subprocess.run(["ip", "netns", "delete", self.name], check=True)

    @contextlib.contextmanager
    def inside(self):
        """Sockets made by this thread meanwhile are in the namespace."""
        with open("/proc/thread-self/ns/net", "rb") as before, open(f"/run/netns/{self.name}", "rb") as wanted:
            if LIBC.setns(wanted.fileno(), CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "setns")
            try:
                yield
            finally:
                LIBC.setns(before.fileno(), CLONE_NEWNET)

    def command(self, words):
        return ["ip", "netns", "exec", self.name, *map(str, words)]


def text_field(number, data):
    """A length-delimited field of Protocol Buffers."""
    return bytes([number << 3 | 2, len(data)]) + data


def hello(node):
    """An AgentMessage with a Hello, as a frame."""
    body = text_field(1, bytes([1 << 3, 1]) + text_field(2, node.encode()))
    return len(body).to_bytes(4, "big") + body


class Site:
    """An authority, a controller with all listeners, and clients of it."""

    def __init__(self):
        self.directory = Path(tempfile.mkdtemp(prefix="te-identity-"))
        self.namespace = Namespace()
        self.authority = self.directory / "ca"
        self.socket = self.directory / "api.sock"
        self.log = self.directory / "controller.log"
        self.tokens = self.directory / "tokens.yaml"
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("TECTL_")}
        self.process = None
        self.certs("init", "--san", "127.0.0.1")
        self.tokens.write_text("tokens: []\n")
        (self.directory / "topology.yaml").write_text(TOPOLOGY)
        ca, crl = self.authority / "ca.pem", self.authority / "crl.pem"
        own = f"certificate: {self.authority}/te-controller.pem, key: {self.authority}/te-controller.key"
        self.config = self.directory / "controller.yaml"
        self.config.write_text(f"""topology: {self.directory}/topology.yaml
state: {self.directory}/state.db
agents: {{listen: "127.0.0.1:{AGENTS}", {own}, ca: {ca}, crl: {crl}}}
api:
  unix: {self.socket}
  listen: "127.0.0.1:{API}"
  tls: {{{own}, client_ca: {ca}, crl: {crl}}}
  roles: {{alice: operate, bob: view}}
  tokens_file: {self.tokens}
enrolment: {{authority: {self.authority}}}
metrics: {{listen: "127.0.0.1:{METRICS}"}}
report_interval_ms: 60000
""")

    def start(self):
        with open(self.log, "wb") as output:
            self.process = subprocess.Popen(self.namespace.command([PROGRAMS / "te-controller", "--config", self.config]),
                                            stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        wait_for(lambda: self.process.poll() is None and "ready" in self.logged(), 20, f"no te-controller:\n{self.logged()}")

    def end(self):
        if self.process:
            self.process.terminate()
            self.process.wait(20)
        self.namespace.remove()
        shutil.rmtree(self.directory)

    def logged(self):
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def tectl(self, *words):
        return subprocess.run(self.namespace.command([PROGRAMS / "tectl", *words]), capture_output=True, text=True, check=False,
                              timeout=30, env=self.environment)

    def certs(self, *words):
        done = self.tectl("certs", *words, "--dir", self.authority)
        if done.returncode != 0:
            raise AssertionError(f"tectl certs {words}: {done.stderr}")
        return done.stdout.strip()

    def issue(self, name):
        self.certs("issue", name, "--out", self.directory)

    def remote(self, *words, user=None):
        """tectl over TCP, with the certificate of `user`."""
        shown = ["--cert", self.directory / f"{user}.pem", "--key", self.directory / f"{user}.key"] if user else []
        return self.tectl("--api", f"127.0.0.1:{API}", "--ca", self.authority / "ca.pem", *shown, *words)

    def enrol(self, node, token):
        out = self.directory / f"enrolled-{node}"
        out.mkdir(exist_ok=True)
        return self.remote("enrol", "--node", node, "--token", token, "--out", out), out

    def agent(self, certificate, key, node, ca=None):
        """A connection of an agent that has said Hello, and whether it was accepted."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.load_verify_locations(ca or self.authority / "ca.pem")
        context.load_cert_chain(certificate, key)
        with self.namespace.inside():
            connection = context.wrap_socket(socket.create_connection(("127.0.0.1", AGENTS), timeout=10))
        try:
            connection.sendall(hello(node))
            reply = connection.recv(4096)
        except OSError:  # refused in the handshake, which the client's end of TLS 1.3 learns later
            reply = b""
        return connection, reply[4:5] == b"\x0a" and reply[6:8] == b"\x08\x01"  # hello_reply {accepted: true}

    def page(self, path):
        with self.namespace.inside():
            connection = http.client.HTTPConnection("127.0.0.1", METRICS, timeout=10)
            connection.request("GET", path)
        with contextlib.closing(connection):
            return connection.getresponse().read().decode()

    def metric(self, name):
        found = re.search(rf"^{re.escape(name)} (\S+)$", self.page("/metrics"), re.MULTILINE)
        return float(found[1]) if found else 0


class Identity(unittest.TestCase):
    def setUp(self):
        self.site = Site()
        self.addCleanup(self.site.end)
        self.site.start()

    def assert_logged(self, *words):
        def logged():
            return any(all(word in line for word in words) for line in self.site.logged().splitlines())

        with contextlib.suppress(LabError):
            wait_for(logged, 5, "")
        self.assertTrue(logged(), f"{words} not in\n{self.site.logged()}")

    def test_a_node_enrols_once_and_its_agent_is_accepted(self):
        site = self.site
        token = site.certs("token", "h1", "--ttl", "10m")
        done, out = site.enrol("h1", token)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((out / "h1.key").stat().st_mode & 0o777, 0o600)
        self.assert_logged("enrolled h1 at 127.0.0.1")
        connection, accepted = site.agent(out / "h1.pem", out / "h1.key", "h1", out / "ca.pem")
        with connection:
            self.assertTrue(accepted, site.logged())
            self.assertEqual(json.loads(site.tectl("--api", f"unix:{site.socket}", "-o", "json", "status").stdout)["agents_connected"], 1)
        again, _ = site.enrol("h1", token)
        self.assertEqual(again.returncode, 1)
        self.assertIn("used token", again.stderr)
        self.assert_logged("refused to enrol 'h1' at 127.0.0.1: used token")
        self.assertEqual(site.metric('te_controller_enrolments_refused_total{reason="used_token"}'), 1)
        self.assertEqual(site.metric("te_controller_enrolments_total"), 1)

    def test_tokens_of_other_nodes_and_old_ones_are_refused(self):
        site = self.site
        other, _ = site.enrol("h2", site.certs("token", "h1"))
        self.assertIn("token of another node", other.stderr)
        short = site.certs("token", "h1", "--ttl", "1s")
        made = time.time()
        wait_for(lambda: time.time() > made + 1.1, 5, "time stands still")
        old, out = site.enrol("h1", short)
        self.assertIn("expired token", old.stderr)
        self.assertEqual(list(out.iterdir()), [])
        self.assertEqual(site.metric('te_controller_enrolments_refused_total{reason="other_node"}'), 1)
        self.assertEqual(site.metric('te_controller_enrolments_refused_total{reason="expired_token"}'), 1)
        self.assert_logged("refused to enrol 'h2' at 127.0.0.1: token of another node")

    def test_an_agent_with_a_wrong_certificate_is_refused(self):
        site = self.site
        site.issue("h1")
        connection, accepted = site.agent(site.directory / "h1.pem", site.directory / "h1.key", "h2")
        connection.close()
        self.assertFalse(accepted)
        self.assert_logged("refused agent", "certificate of 'h1' but Hello of 'h2'")
        elsewhere = site.directory / "elsewhere"
        site.tectl("certs", "init", "--dir", elsewhere)
        site.tectl("certs", "issue", "h2", "--dir", elsewhere, "--out", site.directory)
        connection, accepted = site.agent(site.directory / "h2.pem", site.directory / "h2.key", "h2")
        connection.close()
        self.assertFalse(accepted)
        self.assert_logged("refused agent", "certificate of 'h2', serial")
        self.assertEqual(site.metric("te_controller_sessions_refused_total"), 2)

    def test_a_revoked_node_loses_its_session_and_gets_no_other(self):
        site = self.site
        site.issue("h1")
        files = site.directory / "h1.pem", site.directory / "h1.key"
        connection, accepted = site.agent(*files, "h1")
        self.assertTrue(accepted, site.logged())
        revoked = site.certs("revoke", "h1")
        serial = re.search(r"serial ([0-9A-F]+)", revoked)[1]
        site.process.send_signal(signal.SIGHUP)
        begin = time.monotonic()
        connection.settimeout(10)
        with connection:
            self.assertEqual(connection.recv(1), b"")
        self.assertLess(time.monotonic() - begin, 2)
        self.assert_logged("agent h1 disconnected", f"serial {serial}: certificate revoked")
        connection, accepted = site.agent(*files, "h1")
        connection.close()
        self.assertFalse(accepted)
        self.assert_logged("refused agent", f"certificate of 'h1', serial {serial}: certificate revoked")
        self.assertEqual(site.metric("te_controller_sessions_revoked_total"), 2)

    def test_each_role_may_do_its_part_and_no_more(self):
        site = self.site
        for user in ("alice", "bob", "h1"):
            site.issue(user)
        self.assertEqual(site.remote("status", user="bob").returncode, 0)
        refused = site.remote("pause", user="bob")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("needs the role 'operate', and certificate bob at 127.0.0.1 has 'view'", refused.stderr)
        self.assert_logged("refused certificate bob at 127.0.0.1: POST /v1/pause")
        self.assertEqual(site.metric('te_controller_api_refused_total{reason="role"}'), 1)
        self.assertEqual(site.remote("pause", user="alice").returncode, 0)
        self.assert_logged("certificate alice at 127.0.0.1 asked for POST /v1/pause: done")
        self.assertIn("has 'none'", site.remote("status", user="h1").stderr)
        self.assertIn("show a client certificate, or a token", site.remote("status").stderr)
        self.assertEqual(site.metric('te_controller_api_refused_total{reason="unauthenticated"}'), 1)
        site.certs("revoke", "alice")
        wait_for(lambda: site.remote("status", user="alice").returncode == 3, 10, "a revoked user is let in")
        wait_for(lambda: site.metric('te_controller_api_refused_total{reason="revoked"}') >= 1, 5, "the refusal is not counted")
        self.assertEqual(site.tectl("--api", f"unix:{site.socket}", "resume").returncode, 0)
        self.assert_logged("uid 0 asked for POST /v1/resume: done")

    def test_tokens_of_the_api_are_read_again_when_their_file_changes(self):
        site = self.site
        secret = site.directory / "secret"
        secret.write_text("not-so-secret\n")
        self.assertEqual(site.remote("--token-file", secret, "status").returncode, 1)
        digest = hashlib.sha256(b"not-so-secret").hexdigest()
        site.tokens.write_text(f"tokens:\n  - {{name: grafana, role: view, sha256: {digest}}}\n")
        wait_for(lambda: site.remote("--token-file", secret, "status").returncode == 0, 10, "the new token is not taken")
        site.tokens.write_text("tokens: broken\n")
        wait_for(lambda: "tokens of the API: the files on disk cannot be used" in site.logged(), 10, "no warning")
        self.assertEqual(site.remote("--token-file", secret, "status").returncode, 0)
        self.assertIn("token grafana at 127.0.0.1 has 'view'", site.remote("--token-file", secret, "pause").stderr)

    def test_connections_that_say_nothing_keep_nobody_out(self):
        site = self.site
        site.issue("bob")
        with contextlib.ExitStack() as idle:
            for _ in range(100):
                local = idle.enter_context(socket.socket(socket.AF_UNIX))
                local.connect(str(site.socket))
                local.sendall(b"GET /v1/status HTTP/1.1\r\nX-Half:")
                with site.namespace.inside():
                    idle.enter_context(socket.create_connection(("127.0.0.1", API), timeout=10))
            self.assertEqual(site.tectl("--api", f"unix:{site.socket}", "status").returncode, 0)
            self.assertEqual(site.remote("status", user="bob").returncode, 0)

    def test_events_tell_what_happened_and_by_whom(self):
        site = self.site
        site.tectl("--api", f"unix:{site.socket}", "pause")
        shown = site.tectl("--api", f"unix:{site.socket}", "events")
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn("uid 0 asked for POST /v1/pause: done", shown.stdout)
        follow = subprocess.Popen(site.namespace.command([PROGRAMS / "tectl", "--api", f"unix:{site.socket}", "events", "-f"]),
                                  stdout=subprocess.PIPE, text=True, env=site.environment)
        try:
            site.tectl("--api", f"unix:{site.socket}", "resume")
            for line in follow.stdout:
                if "POST /v1/resume: done" in line:
                    break
            else:
                self.fail("the event did not come")
        finally:
            follow.terminate()
            follow.wait(10)
            follow.stdout.close()

    def test_health_and_configuration_can_be_asked_for(self):
        site = self.site
        self.assertEqual(site.page("/healthz"), "ok\n")
        good = site.tectl("config", "check", site.config)
        self.assertEqual((good.returncode, good.stderr), (0, ""))
        bad = site.directory / "bad.yaml"
        bad.write_text(site.config.read_text().replace(f"crl: {site.authority}/crl.pem", "crl: /nonexistent/crl.pem"))
        found = site.tectl("config", "check", bad)
        self.assertEqual(found.returncode, 2)
        self.assertEqual(found.stderr.count("/nonexistent/crl.pem"), 2)
        wrong = site.tectl("bogus")
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("'bogus' is no command of tectl", wrong.stderr)
        for script in ("bash", "zsh"):
            self.assertIn("complete -F _tectl tectl", site.tectl("completion", script).stdout)


if __name__ == "__main__":
    unittest.main()
