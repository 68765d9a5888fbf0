# SPDX-License-Identifier: Apache-2.0
"""What ./quickstart runs: ECMP, then steering, on a lab of two leaves x four hosts and four spines."""
import argparse
import json
import os
import signal
import sys
import time
from math import ceil
from pathlib import Path

import ideal
import path_map
import picture
from link_failure import LinkFailure, shortcomings
from measure import ConvergenceWatch, Endpoints, Series
from product import Product
from te_lab import Lab, LabError, Traffic

MESSAGE_BYTES = 65536
QPS = 2
ACK_EVERY = 4
WINDOW_PACKETS = 16
WARM_UP_S = 1.5
ECMP_S = 5.0
HOLD_S = 5.0
BAR = 0.95
GIVE_UP_S = 25.0
TOLERANCE = 0.03
# A dead link must not break a connection before its flows are put elsewhere: like NICs with adaptive retransmission.
TIMEOUT_MS = 100
RETRIES = 60
MEGA = 1e6


def parse_arguments():
    parser = argparse.ArgumentParser(prog="quickstart", description="Builds the product, runs it on a lab of network namespaces "
                                     "on this machine, and shows what it does to colliding RoCEv2 flows. Needs root.")
    parser.add_argument("--seed", type=int, default=1, help="decides ECMP hashes and QPNs (default 1)")
    parser.add_argument("--out", type=Path, default=Path("out"),
                        help="where quickstart.json and quickstart.svg go (default out)")
    parser.add_argument("--qp-source", choices=("file", "none"), default="file",
                        help="none: withhold the QP table from the agents (default file)")
    parser.add_argument("--family", type=int, choices=(4, 6), default=4, help="IP version of the fabric (default 4)")
    parser.add_argument("--attach", choices=("auto", "tcx", "clsact"), default="auto", help="how the agents attach their programs")
    parser.add_argument("--no-failures", action="store_true", help="leave out the part in which a link is cut")
    parser.add_argument("--keep", action="store_true", help="leave everything running until Ctrl-C, to look around with tectl")
    parser.add_argument("--factor", type=float, default=1.0, help=argparse.SUPPRESS)    # how far beyond its limit a figure may be
    parser.add_argument("--programs", type=Path, required=True, help=argparse.SUPPRESS)
    return parser.parse_args()


class LinkLog:
    """Samples of the switches' link counters, to hold the endpoints' own figures against."""

    def __init__(self, lab):
        self.lab = lab
        self.ports = {}     # (switch, port) -> Series of bytes

    def take(self):
        for port, (time_s, sent_bytes) in self.lab.link_bytes().items():
            self.ports.setdefault(port, Series()).add(time_s, sent_bytes)

    def rate_mbps(self, port, begin_s, end_s):
        """(rate, begin, end) between the samples closest to both ends."""
        (first_s, first), (last_s, last) = (self.ports[port].nearest(time_s) for time_s in (begin_s, end_s))
        return (last - first) * 8 / (last_s - first_s) / MEGA, first_s, last_s


class Phase:
    """Figures of one stretch of time."""

    def __init__(self, lab, flows, endpoints, links, begin_s, end_s):
        self.rates = {flow: endpoints.goodput_bps(flow, begin_s, end_s) / MEGA for flow in flows}
        self.min_flow_mbps = min(self.rates.values())
        self.sum_mbps = sum(self.rates.values())
        between_switches = {port: links.rate_mbps(port, begin_s, end_s)[0] for port in links.ports
                            if port[1] not in lab.names("host")}
        self.busiest_link = max(between_switches, key=between_switches.get)
        self.busiest_mbps = between_switches[self.busiest_link]
        self.largest_difference = max(self._difference(lab, flows, endpoints, links, host, begin_s, end_s)
                                      for host in lab.names("host"))

    @staticmethod
    def _difference(lab, flows, endpoints, links, host, begin_s, end_s):
        """Relative difference of what the leaf's port towards a host sent and what endpoints say arrived there."""
        family, mtu = lab.spec["family"], lab.spec["mtu"]
        leaf, port, _ = lab.attachment(host)
        counted, first_s, last_s = links.rate_mbps((leaf, port), begin_s, end_s)
        data = sum(endpoints.goodput_bps(flow, first_s, last_s) for flow in flows if flow.destination == host)
        acknowledged = sum(endpoints.goodput_bps(flow, first_s, last_s) for flow in flows if flow.source == host)
        answers = acknowledged / (ideal.path_mtu(mtu) * ACK_EVERY) * ideal.answer_wire_bytes(family)
        expected = (data * ideal.message_wire_bytes(MESSAGE_BYTES, mtu, family) / MESSAGE_BYTES + answers) / MEGA
        return abs(counted - expected) / max(expected, 1e-9)


class Quickstart:
    def __init__(self, options):
        self.options = options
        self.result = {"seed": options.seed}
        self.drops_at_convergence = None    # what the queues had dropped when the slowest flow first was fast enough

    def run(self):
        options = self.options
        with Lab(options.programs / "te-lab", f"qs{os.getpid()}", hosts=8, leaves=2, spines=4, rate="50mbit", mtu=4500,
                 seed=options.seed, family=options.family) as lab:
            print(f"lab {lab.id}: 8 hosts, 2 leaves, 4 spines, links of 50 Mbit/s; seed {options.seed}", flush=True)
            traffic = Traffic(lab, pattern="ring", qps=QPS, message_bytes=MESSAGE_BYTES, ack_every=ACK_EVERY,
                              window_packets=WINDOW_PACKETS, timeout_ms=TIMEOUT_MS, retries=RETRIES)
            with Product(lab, options.programs, options.qp_source, options.attach) as product:
                self.show(lab, traffic, product)
                if options.keep:
                    self.keep(lab)
            return self.verdict()

    def show(self, lab, traffic, product):
        flows = lab.flows()
        endpoints, links = Endpoints(lab), LinkLog(lab)
        best = ceil(len(flows) / (len(lab.names("leaf")) * len(lab.names("spine"))))
        ideal_mbps = ideal.ideal_min_flow_bps(lab, flows, MESSAGE_BYTES) / MEGA
        self.result |= {"flows": len(flows), "ideal": {"min_flow_mbps": ideal_mbps}}
        reported_s = product.wait_for_first_reports(len(flows))
        ecmp = self.observe(lab, traffic, flows, endpoints, links)
        uplinks_before = path_map.flows_on_uplinks(lab, path_map.observe(lab, flows))
        acting_s = time.monotonic()
        product.act(True)
        start_s = max(reported_s, acting_s)
        converged_s = self.steer(traffic, product, flows, endpoints, links, start_s, ideal_mbps)
        end_s = endpoints.known_until_s()
        begin_s = converged_s if converged_s is not None else end_s - HOLD_S
        steered = Phase(lab, flows, endpoints, links, begin_s, begin_s + HOLD_S)
        uplinks_after = path_map.flows_on_uplinks(lab, path_map.observe(lab, flows))
        self.take_counts(lab, product)
        self.take_endpoint_counts(endpoints, acting_s)
        if not self.options.no_failures:
            self.cut_links(lab, traffic, product, flows, endpoints)
        if not self.options.keep:
            traffic.stop()
            endpoints.update()
        self.result["messages_lost"] = endpoints.count("messages_lost")
        self.record("ecmp", ecmp)
        self.record("steered", steered)
        self.print_table(lab, ecmp, steered, ideal_mbps, len(flows), best)
        self.print_paths(uplinks_before, uplinks_after)
        self.print_failures()
        self.write(lab, flows, ecmp, steered, uplinks_before, uplinks_after, ideal_mbps, best)

    def cut_links(self, lab, traffic, product, flows, endpoints):
        """A cable is cut twice: while only hosts have agents, and while switches have some too."""
        entries = []
        for spine, switch_agents in zip(lab.names("spine"), (False, True)):
            if switch_agents:
                product.start_switch_agents()
                product.wait_for_switch_agents()
            leaf = lab.names("leaf")[0]
            print(f"cutting {leaf}:{spine} ({'with' if switch_agents else 'without'} agents on the switches) for "
                  "some 11 s", flush=True)
            failure = LinkFailure(lab, product, flows, endpoints, leaf, spine)
            entries += failure.run()
            traffic.check()
            failure.mend()
        product.end_switch_agents()
        self.result["link_failure"] = entries

    def print_failures(self):
        entries = self.result.get("link_failure", [])
        if entries:
            print(f"\n{'link cut':<12}{'switch agents':<15}{'known after':>12}{'restored after':>16}{'slowest flow':>14}{'ideal':>8}{'QPs a link':>12}")
        for entry in entries:
            print(f"{entry['kind']:<12}{'yes' if entry['switch_agents'] else 'no':<15}{entry['detect_ms']:>9} ms"
                  f"{entry['restore_ms']:>13} ms{entry['min_flow_mbps']:>14.2f}{entry['ideal_min_flow_mbps']:>8.2f}"
                  f"{entry['max_qps_per_link']:>12}")

    def observe(self, lab, traffic, flows, endpoints, links):
        """The stretch in which ECMP alone decides."""
        print(f"observing {len(flows)} flows under ECMP for {ECMP_S:.0f} s", flush=True)
        time.sleep(WARM_UP_S)
        links.take()
        begin_s = time.monotonic()
        time.sleep(ECMP_S)
        links.take()
        end_s = time.monotonic()
        while endpoints.update().known_until_s() < end_s:
            traffic.check()
            time.sleep(0.05)
        return Phase(lab, flows, endpoints, links, begin_s, end_s)

    def steer(self, traffic, product, flows, endpoints, links, start_s, ideal_mbps):
        """Waits for convergence with a progress line; when it was, or None."""
        convergence = ConvergenceWatch(endpoints, flows, start_s, BAR * ideal_mbps * MEGA, HOLD_S)
        converged_s = None
        last_line_s = last_sample_s = 0.0
        while converged_s is None and time.monotonic() < start_s + GIVE_UP_S:
            time.sleep(0.1)
            traffic.check()
            now_s = time.monotonic()
            if now_s - last_sample_s >= 0.25:
                links.take()
                last_sample_s = now_s
            endpoints.update()
            known_s = endpoints.known_until_s()
            slowest = endpoints.slowest_bps(flows, known_s - 1.0, known_s) / MEGA
            good = slowest >= BAR * ideal_mbps
            if good and self.drops_at_convergence is None:
                self.drops_at_convergence = product.lab.queue_drops()
            if now_s - last_line_s >= 0.5:
                product.check_alive()
                moves = product.get("/v1/status").get("moves_total", 0)
                self.progress(f"acting {now_s - start_s:4.1f} s: slowest flow {slowest:5.2f} of {ideal_mbps:.2f} Mbit/s over the last second, "
                              f"{moves} moves")
                last_line_s = now_s
            converged_s = convergence.look()
        links.take()
        self.progress("")
        self.result["steered"] = {"converge_ms": -1 if converged_s is None else round((converged_s - start_s) * 1000)}
        return converged_s

    @staticmethod
    def progress(words):
        if sys.stdout.isatty():
            print("\r\x1b[K" + words, end="", flush=True)
        elif words:
            print(words, flush=True)

    def take_counts(self, lab, product):
        status = product.get("/v1/status")
        self.result["steered"]["moves"] = status.get("moves_total", 0)
        self.result["steered"]["rollbacks"] = status.get("rollbacks_total", 0)
        self.result["qdisc_drops_after_convergence"] = lab.queue_drops() - (self.drops_at_convergence or 0)
        self.result["probes"] = {"sent": status.get("probes_sent", 0), "lost": status.get("probes_lost", 0)}
        self.result["qp_source"] = self.options.qp_source
        self.result["family"] = self.options.family

    def take_endpoint_counts(self, endpoints, acting_s):
        self.result["window_packets"] = WINDOW_PACKETS
        for counter in ("retransmitted", "naks_sent", "duplicates", "timeouts", "messages_lost", "messages_completed",
                        "ce_marks"):
            self.result[counter] = endpoints.count(counter, acting_s)
        trouble = endpoints.trouble.values()
        self.result |= {key: sum(each[key] for each in trouble) for key in ("icrc_errors", "malformed", "receive_drops")}

    def record(self, name, phase):
        self.result.setdefault(name, {}).update(
            min_flow_mbps=round(phase.min_flow_mbps, 3), sum_mbps=round(phase.sum_mbps, 3),
            busiest_link="-".join(phase.busiest_link), busiest_link_mbps=round(phase.busiest_mbps, 3),
            counter_difference=round(phase.largest_difference, 5))

    def print_table(self, lab, ecmp, steered, ideal_mbps, flows, best):
        share = ideal.message_wire_bytes(MESSAGE_BYTES, lab.spec["mtu"], lab.spec["family"]) / MESSAGE_BYTES
        print(f"\n{'Mbit/s':<14}{'ECMP':>10}{'steered':>10}{'ideal':>10}")
        for title, values in (("slowest flow", (ecmp.min_flow_mbps, steered.min_flow_mbps, ideal_mbps)),
                              ("sum", (ecmp.sum_mbps, steered.sum_mbps, ideal_mbps * flows)),
                              ("busiest link", (ecmp.busiest_mbps, steered.busiest_mbps, ideal_mbps * best * share))):
            print(f"{title:<14}" + "".join(f"{value:>10.2f}" for value in values))
        counts = self.result
        print(f"\nwhile acting: {counts['steered']['moves']} moves, {counts['retransmitted']} packets retransmitted, "
              f"{counts['naks_sent']} NAKs, {counts['duplicates']} duplicates, {counts['timeouts']} timeouts, "
              f"{counts['messages_lost']} messages lost; {counts['qdisc_drops_after_convergence']} drops once converged")

    @staticmethod
    def print_paths(before, after):
        print(f"\n{'uplink':<16}{'flows under ECMP':<50}{'flows steered'}")
        for uplink in before:
            cells = ["  ".join(f"{flow.source}\u2192{flow.destination}#{flow.qp + 1}" for flow in uplinks[uplink]) or "-"
                     for uplinks in (before, after)]
            print(f"{' '.join(uplink):<16}{cells[0]:<49} {cells[1]}")

    def write(self, lab, flows, ecmp, steered, uplinks_before, uplinks_after, ideal_mbps, best):
        out = self.options.out
        out.mkdir(parents=True, exist_ok=True)
        for name, uplinks in (("paths_before", uplinks_before), ("paths_after", uplinks_after)):
            self.result[name] = {"-".join(uplink): [flow.name for flow in on_it] for uplink, on_it in uplinks.items()}
        self.result["ideal"]["min_flow_mbps"] = round(ideal_mbps, 3)
        (out / "quickstart.json").write_text(json.dumps(self.result, indent=2, ensure_ascii=False) + "\n")
        (out / "quickstart.svg").write_text(picture.draw(lab, flows, ecmp.rates, steered.rates, uplinks_before, uplinks_after,
                                                         ideal_mbps, self.result, best))
        print(f"\nwrote {out}/quickstart.json and {out}/quickstart.svg", flush=True)

    def keep(self, lab):
        programs = self.options.programs
        print(f"""
everything is still running; look around in another terminal:
  export TECTL_API=unix:{lab.directory}/product/api.sock
  {programs}/tectl status
  {programs}/tectl flows
  {programs}/tectl moves
Ctrl-C takes it down.""", flush=True)
        while True:
            time.sleep(1)

    def verdict(self):
        """What is not as it should be, as lines; none: all well."""
        wrong = []
        if self.result["steered"]["converge_ms"] < 0:
            wrong.append(f"not converged: the slowest flow did not stay at {BAR:.0%} of ideal for {HOLD_S:.0f} s "
                         f"within {GIVE_UP_S:.0f} s of acting")
        for phase in ("ecmp", "steered"):
            difference = self.result[phase]["counter_difference"]
            if difference > TOLERANCE:
                wrong.append(f"goodput ({phase}) and the switches' link counters differ by {difference:.1%}")
        repeated, moves = self.result["retransmitted"], self.result["steered"]["moves"]
        if repeated > WINDOW_PACKETS * moves:
            wrong.append(f"{repeated} packets retransmitted: more than a send window of {WINDOW_PACKETS} for each of {moves} moves")
        for key, what in (("messages_lost", "messages lost"), ("timeouts", "timeouts"),
                          ("qdisc_drops_after_convergence", "packets dropped by switch queues once converged")):
            if self.result[key]:
                wrong.append(f"{self.result[key]} {what}")
        for entry in self.result.get("link_failure", []):
            wrong += shortcomings(entry, self.options.factor)
        return wrong


def interrupted(*_):
    raise KeyboardInterrupt


def obstacle(options):
    """What would stop the demo half way, in words; empty: nothing."""
    try:
        options.out.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        return f"cannot write into --out {options.out}: {problem.strerror}"
    if not os.path.ismount("/"):
        return ("the root of this chroot is no mount point, and network namespaces need one: "
                "run 'mount --bind DIR DIR' on the chroot's directory before entering it")
    return ""


def main():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupted)
    options = parse_arguments()
    if os.geteuid() != 0:
        print("quickstart: needs root, for network namespaces and eBPF", file=sys.stderr)
        return 1
    problem = obstacle(options)
    if problem:
        print(f"quickstart: {problem}", file=sys.stderr)
        return 1
    try:
        wrong = Quickstart(options).run()
    except KeyboardInterrupt:
        print("\nquickstart: stopped; the lab is taken down", file=sys.stderr)
        return 130
    except LabError as problem:
        print(f"\nquickstart: {problem}", file=sys.stderr)
        return 1
    for line in wrong:
        print(f"quickstart: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
