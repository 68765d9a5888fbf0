# SPDX-License-Identifier: Apache-2.0
"""A lab from Python: starts and stops te-lab, names its parts, and reads what its switches count."""
import ctypes
import json
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG = 1
ETHERNET_BYTES = 14


class LabError(Exception):
    """What went wrong, in words for the person at the terminal."""


def die_with_parent():
    """For preexec_fn: a program started by us ends when we end, however we end."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def run(command, **options):
    """Runs a command to its end; LabError with what it wrote to standard error when it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        raise LabError(f"{' '.join(map(str, command))} failed: {(done.stderr or done.stdout).strip()}")
    return done.stdout


@dataclass(frozen=True)
class Flow:
    """One direction of a QP pair that carries messages."""

    source: str
    destination: str
    qp: int
    source_qpn: int
    destination_qpn: int
    source_port: int
    answer_source_port: int
    nic: int = 0

    @property
    def name(self):
        return f"{self.source} \u2192 {self.destination} #{self.qp + 1}" + (f" on eth{self.nic}" if self.nic else "")


class Lab:
    """A lab that this program made. Use it in a `with`: leaving takes it down, whatever happened."""

    def __init__(self, program, lab_id="", **spec):
        self.program = str(program)
        command = [self.program, "up"] + (["--id", lab_id] if lab_id else [])
        for key, value in spec.items():
            option = "--" + key.replace("_", "-")
            command += [option, str(value)] if not isinstance(value, bool) else [option] * value
        self.guard = None
        self.id = self._bring_up(command)
        self.directory = Path("/run/te-lab") / self.id
        self.guard = self._start_guard()
        description = json.loads((self.directory / "lab.json").read_text())
        self.spec = description["spec"]
        self.nodes = {node["name"]: node for node in description["nodes"]}
        self.links = description["links"]
        self.controller = description["controller"]
        self.rate_bps = float(self.spec["rate"].removesuffix("bit"))

    @staticmethod
    def _bring_up(command):
        """A build that we are told to leave is ended such that it undoes itself."""
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              preexec_fn=die_with_parent) as building:
            try:
                out, err = building.communicate()
            except BaseException:
                building.terminate()
                out, _ = building.communicate()
                if out.strip():  # it was done already
                    run([command[0], "down", "--id", out.strip()])
                raise
        if building.returncode != 0:
            raise LabError(f"{' '.join(command)} failed: {err.strip()}")
        return out.strip()

    def _start_guard(self):
        """A process that takes the lab down when we end without doing so: then its standard input is closed."""
        return subprocess.Popen(["sh", "-c", 'read -r _; exec "$0" down --id "$1"', self.program, self.id],
                                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                start_new_session=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.down()

    def down(self):
        if os.path.exists(self.directory):
            run([self.program, "down", "--id", self.id])
        if self.guard:
            self.guard.kill()
            self.guard.communicate()
            self.guard = None

    def names(self, kind):
        return [name for name, node in self.nodes.items() if node["kind"] == kind]

    def controller_endpoint(self, port=7411):
        """What an agent's configuration calls the controller."""
        return f"[{self.controller}]:{port}" if ":" in self.controller else f"{self.controller}:{port}"

    def netns(self, node, management=False):
        """Where the node's fabric ports are; `management`: where its agent runs, which is the same but with --nic-netns."""
        if node in self.nodes:
            return self.nodes[node]["netns" if management else "fabric_netns"]
        return f"te-{self.id}-{node}"

    def attachment(self, host, nic=0):
        """(leaf, its port towards the host's NIC, the NIC's address)"""
        for link in self.links:
            if (link["a"]["node"], link["a"]["port"]) == (host, f"eth{nic}"):
                return link["b"]["node"], link["b"]["port"], link["a"]["address"]
        raise LabError(f"lab {self.id} has no host {host} with NIC eth{nic}")

    def popen(self, node, command, management=False, **options):
        """Starts a program in a node's namespace; it ends with us."""
        return subprocess.Popen(["ip", "netns", "exec", self.netns(node, management), *map(str, command)],
                                preexec_fn=die_with_parent, **options)

    def exec(self, node, command, **options):
        return run(["ip", "netns", "exec", self.netns(node), *map(str, command)], **options)

    def fail(self, port):
        """Cuts the cable at `port` (NODE:PORT, either end); returns the time of the cut (time.monotonic())."""
        return json.loads(run([self.program, "fail", "--id", self.id, port, "-o", "json"]))["cut_ns"] / 1e9

    def restore(self, port):
        """Makes the cable at `port` as new; returns the time at which both ends had their carrier again."""
        return json.loads(run([self.program, "restore", "--id", self.id, port, "-o", "json"]))["restored_ns"] / 1e9

    def degrade(self, port, loss=None, rate=None):
        """Lets packets that `port` sends get lost (`loss`, a share of 1) or gives it another rate ("10mbit")."""
        options = (["--loss", f"{100 * loss:.10g}%"] if loss else []) + (["--rate", rate] if rate else [])
        run([self.program, "degrade", "--id", self.id, port, *options])

    def switch(self, node, mode):
        """normal, qpn-hash, spray, loopback-answers or silent."""
        run([self.program, "switch", "--id", self.id, node, "--mode", mode])

    def status(self):
        return json.loads(run([self.program, "status", "--id", self.id, "-o", "json"]))[0]

    def link_bytes(self):
        """What every port of every switch has sent so far, by its own interface counter, Ethernet header counted:
        {(switch, port): (time, bytes)}."""
        counted = {}
        for switch in self.names("leaf") + self.names("spine"):
            begin_s = time.monotonic()
            entries = json.loads(run(["ip", "-n", self.netns(switch), "-s", "-j", "link", "show"]))
            middle_s = (begin_s + time.monotonic()) / 2
            for entry in entries:
                if entry["ifname"] not in ("lo", "mgmt0"):
                    counted[switch, entry["ifname"]] = (middle_s, entry["stats64"]["tx"]["bytes"])
        return counted

    def queue_drops(self):
        """Packets that any switch's queue dropped so far."""
        return sum(qdisc.get("drops", 0)
                   for switch in self.names("leaf") + self.names("spine")
                   for qdisc in json.loads(run(["tc", "-n", self.netns(switch), "-s", "-j", "qdisc", "show"])))

    def flows(self):
        return [Flow(**entry) for entry in json.loads((self.directory / "traffic.json").read_text())]

    def next_hops(self, source, destination, ports, nic=0):
        """Spines that packets with these source ports take: the source leaf's own routing answers."""
        leaf, port, address = self.attachment(source, nic)
        target = self.attachment(destination, nic)[2]
        batch = "".join(f"route get {target} from {address} iif {port} ipproto udp sport {number} dport 4791\n"
                        for number in ports)
        lines = run(["ip", "-n", self.netns(leaf), "-batch", "-"], input=batch).splitlines()
        return [line.split(" dev ")[1].split()[0] for line in lines if " dev " in line]


class Traffic:
    """`te-lab traffic` in the background."""

    def __init__(self, lab, **options):
        command = [lab.program, "traffic", "--id", lab.id]
        for key, value in options.items():
            for one in value if isinstance(value, list) else [value]:
                command += ["--" + key.replace("_", "-"), str(one)]
        self.lab = lab
        stats = [lab.directory / "stats" / f"{host}.jsonl" for host in lab.names("host")]
        for path in [lab.directory / "traffic.json", *stats, *(path.with_suffix(".jsonl.1") for path in stats)]:
            path.unlink(missing_ok=True)
        self.process = subprocess.Popen(command, preexec_fn=die_with_parent, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True)
        wait_for(lambda: self.check() and (lab.directory / "traffic.json").exists() and
                 all(path.exists() and path.stat().st_size for path in stats), 10, "traffic did not start")

    def check(self):
        if self.process.poll() not in (None, 0):
            raise LabError("te-lab traffic failed: " + self.process.stderr.read().strip())
        return True

    def wait(self, timeout=None):
        self.process.wait(timeout)
        self.check()

    def stop(self):
        """Lets every message that was begun finish."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.wait(15)


def wait_for(condition, seconds, otherwise):
    """Waits until `condition()` is true; LabError `otherwise` when that takes too long."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise LabError(otherwise)
        time.sleep(0.02)
