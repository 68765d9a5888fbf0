# SPDX-License-Identifier: Apache-2.0
"""What the endpoints count, as rates over any stretch of time."""
import bisect
import json
import os
from contextlib import suppress


class Series:
    """Samples of a growing counter; between two samples it grows evenly."""

    def __init__(self):
        self.times = []
        self.values = []

    def add(self, time_s, value):
        self.times.append(time_s)
        self.values.append(value)

    def at(self, time_s):
        if not self.times or time_s <= self.times[0]:
            return self.values[0] if self.values else 0
        place = bisect.bisect_left(self.times, time_s)
        if place == len(self.times):
            return self.values[-1]
        before, after = self.times[place - 1], self.times[place]
        share = (time_s - before) / (after - before)
        return self.values[place - 1] + share * (self.values[place] - self.values[place - 1])

    def before(self, time_s):
        """The newest sample that is not after `time_s`: for events, which do not grow evenly."""
        place = bisect.bisect_right(self.times, time_s)
        return self.values[place - 1] if place else 0

    def nearest(self, time_s):
        """(time, value) of the sample closest to `time_s`."""
        return min(zip(self.times, self.values), key=lambda sample: abs(sample[0] - time_s))

    def rate(self, begin_s, end_s):
        """Units a second over the stretch."""
        return (self.at(end_s) - self.at(begin_s)) / (end_s - begin_s)


class Endpoints:
    """Follows the stats files of all hosts of a lab."""

    COUNTERS = ("packets_sent", "retransmitted", "naks_sent", "naks_received", "duplicates", "timeouts", "ce_marks", "cnps_sent",
                "messages_completed", "messages_lost", "messages_received", "goodput_bytes")

    def __init__(self, lab):
        self.hosts = lab.names("host")
        self.paths = {host: lab.directory / "stats" / f"{host}.jsonl" for host in self.hosts}
        self.offsets = dict.fromkeys(self.hosts, 0)
        self.inodes = {}
        self.series = {}        # (host, QPN, counter) -> Series
        self.last_s = {}        # host -> time of its newest sample
        self.trouble = {}       # host -> packets that were no good

    def update(self):
        """Reads what has been written since the last call."""
        for host, path in self.paths.items():
            with suppress(FileNotFoundError):    # for an instant, while it is rotated
                with open(path, "rb") as file:
                    found = os.fstat(file.fileno())
                    is_new = self.inodes.setdefault(host, found.st_ino) != found.st_ino or found.st_size < self.offsets[host]
                    if is_new:
                        self._read_rotated(host, path.with_suffix(path.suffix + ".1"))
                        self.offsets[host], self.inodes[host] = 0, found.st_ino
                    self._read(host, file)
        return self

    def _read_rotated(self, host, path):
        """What the file that was read before had last, if that is the one."""
        with suppress(FileNotFoundError), open(path, "rb") as file:
            if os.fstat(file.fileno()).st_ino == self.inodes[host]:
                self._read(host, file)

    def _read(self, host, file):
        file.seek(self.offsets[host])
        text = file.read()
        whole = text[:text.rfind(b"\n") + 1]
        self.offsets[host] += len(whole)
        for line in whole.splitlines():
            self._take(host, json.loads(line))

    def _take(self, host, sample):
        time_s = sample["t_ns"] / 1e9
        self.last_s[host] = time_s
        self.trouble[host] = {key: sample[key] for key in ("icrc_errors", "malformed", "receive_drops")}
        for qp in sample["qps"]:
            for counter in self.COUNTERS:
                self.series.setdefault((host, qp["qpn"], counter), Series()).add(time_s, qp[counter])

    def known_until_s(self):
        return min(self.last_s.values(), default=0.0)

    def goodput_bps(self, flow, begin_s, end_s):
        return 8 * self.series[flow.destination, flow.destination_qpn, "goodput_bytes"].rate(begin_s, end_s)

    def slowest_bps(self, flows, begin_s, end_s):
        return min(self.goodput_bps(flow, begin_s, end_s) for flow in flows)

    def count(self, counter, begin_s=None, end_s=None, hosts=None):
        """Of all QPs together, over a stretch of time (None: from the start, to the end)."""
        total = 0
        for (host, _, name), series in self.series.items():
            if name == counter and (hosts is None or host in hosts):
                total += series.values[-1] if end_s is None else series.before(end_s)
                total -= 0 if begin_s is None else series.before(begin_s)
        return total


class ConvergenceWatch:
    """Looks for the first window of `window_s`, from `from_s` on, from which the slowest flow of every window stays at `bar_bps`
    for `hold_s`. Looks at each window once."""

    def __init__(self, endpoints, flows, from_s, bar_bps, hold_s=5.0, window_s=1.0, step_s=0.1):
        self.endpoints, self.flows, self.bar_bps = endpoints, flows, bar_bps
        self.hold_s, self.window_s, self.step_s = hold_s, window_s, step_s
        self.next_s = from_s        # where the next window begins
        self.good_since_s = None

    def look(self):
        """Its start, as far as the endpoints' samples go; None: not yet."""
        known_s = self.endpoints.known_until_s()
        while self.next_s + self.window_s <= known_s:
            end_s = self.next_s + self.window_s
            if self.endpoints.slowest_bps(self.flows, self.next_s, end_s) < self.bar_bps:
                self.good_since_s = None
            elif self.good_since_s is None:
                self.good_since_s = self.next_s
            if self.good_since_s is not None and end_s >= self.good_since_s + self.hold_s - 1e-9:
                return self.good_since_s
            self.next_s += self.step_s
        return None
