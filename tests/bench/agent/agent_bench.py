# SPDX-License-Identifier: Apache-2.0
"""What a host-agent costs that reports 1,000 flows every second: CPU time and memory of the process, from /proc.

The agent runs in a host of a lab, with its tc programs on the host's interface. Each flow carries real packets through
it, several times a second, from outside. Its controller is the fabric tests': TLS 1.3, another process than the agent.
Prints a list of {name, value, unit, compared_with, ratio}.
"""
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOP = HERE.parents[2]
os.environ["TE_BUILD"] = str(Path(sys.argv[1]).resolve())
sys.path[:0] = [str(TOP / "tests" / "fabric"), str(TOP / "lab" / "demo")]

from agent_stage import HOST, stage  # noqa: E402
from agent_wire import FLOWS  # noqa: E402
from te_lab import wait_for  # noqa: E402

FLOW_COUNT = 1000
INTERVAL_MS = 1000
WINDOW_S = 4
WINDOWS = 5
SENDER = TOP / "tests" / "fabric" / "roce_sender.py"


def cpu_seconds(pid):
    """Of all its threads, by the scheduler's clock: `stat` counts in ticks, of which a window has one or none."""
    return sum(int((task / "schedstat").read_text().split()[0]) for task in Path(f"/proc/{pid}/task").iterdir()) / 1e9


def resident_mb(pid):
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / (1 << 20)


def pid_of(program):
    """`ip netns exec` becomes the program that it is given."""
    command = Path(f"/proc/{program.process.pid}/cmdline").read_bytes().split(b"\0")
    if not command[0].endswith(b"host-agent"):
        raise SystemExit(f"not the agent: {command}")
    return program.process.pid


class Packets:
    """Sends each flow from h1 to h2, again and again, until it is closed."""

    def __init__(self, lab):
        self.lab = lab
        self.target = lab.attachment("h2")[2]
        self.flows = json.dumps({"flows": [[0xC000 + number, 0x100 + number] for number in range(FLOW_COUNT)]}).encode()
        self.open = True
        self.thread = threading.Thread(target=self._send)
        self.thread.start()

    def _send(self):
        while self.open:
            begin = time.monotonic()
            sender = self.lab.popen("h1", ["python3", SENDER, "send", self.target, "1"], stdin=subprocess.PIPE)
            sender.communicate(self.flows)
            time.sleep(max(0.0, begin + 0.4 - time.monotonic()))

    def close(self):
        self.open = False
        self.thread.join()


def reported(session, since):
    """Flows in each report that came after a time."""
    return [len(message.get(2, [])) for when, message in session.of_kind(FLOWS) if when > since]


def measure(session, pid):
    shares = []
    for _ in range(WINDOWS):
        begin, begin_cpu = time.monotonic(), cpu_seconds(pid)
        time.sleep(WINDOW_S)
        shares.append(100 * (cpu_seconds(pid) - begin_cpu) / (time.monotonic() - begin))
        counts = reported(session, begin)
        if sum(counts) < 0.9 * FLOW_COUNT * (WINDOW_S - 1):
            raise SystemExit(f"not {FLOW_COUNT} flows in each of {WINDOW_S} reports: {counts}")
    print("CPU % in each window:", [round(share, 2) for share in shares], file=sys.stderr)
    return sorted(shares)[WINDOWS // 2], resident_mb(pid)


def main():
    with stage() as one:
        one.controller.interval_ms = INTERVAL_MS
        agent, session = one.session_of("h2", extra=HOST)
        packets = Packets(one.lab)
        try:
            wait_for(lambda: any(count >= 0.9 * FLOW_COUNT for count in reported(session, time.monotonic() - 2)), 20,
                     "the agent did not report the flows")
            share, memory = measure(session, pid_of(agent))
        finally:
            packets.close()
    entries = [("agent_cpu_percent_1k_flows", share, "%"), ("agent_rss_mb_1k_flows", memory, "MB")]
    print(json.dumps([{"name": name, "value": round(value, 3), "unit": unit, "compared_with": None, "ratio": None}
                      for name, value, unit in entries]))


if __name__ == "__main__":
    main()
