#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the release benchmarks, runs them, compares each figure with its limit and writes out/bench.json."""

import argparse
import json
import pathlib
import re
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
BUILD = TOP / "out" / "build" / "release"
PROGRAMS = ["te-bench-bpf", "te-bench-plan"]
KERNEL_MEMORY_TEST = "Open.WouldTakeAtMost32MegabytesOn256CpusWith10000Flows"

# Largest value that still meets the project's promise.
LIMITS = {
    "bpf_count_vs_empty": 3.0,
    "bpf_steer_vs_empty": 5.5,
    "bpf_other_vs_empty": 1.3,
    "plan_cycle_10k_ms": 100.0,
    "agent_cpu_percent_1k_flows": 1.0,
    "agent_rss_mb_1k_flows": 40.0,
    "kernel_memory_mb_10k_flows_256_cpus": 32.0,
}
# Not met yet: shown with what is missing, and no failure.
GOALS = {
    "ingest_records_per_core_s": 500_000.0,
}


def run(build: pathlib.Path, program: str, *options: str) -> list[dict]:
    """Figures of one program, which prints its table to stderr and JSON to stdout."""
    print(f"bench: {program}", file=sys.stderr, flush=True)
    output = subprocess.run([build / "bench" / program, "--json", *options], check=True, stdout=subprocess.PIPE).stdout
    return json.loads(output)


def run_agent(build: pathlib.Path) -> list[dict]:
    """What a host-agent costs, in a lab."""
    print("bench: agent", file=sys.stderr, flush=True)
    command = [sys.executable, TOP / "tests" / "bench" / "agent" / "agent_bench.py", build]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def run_kernel_memory(build: pathlib.Path) -> list[dict]:
    """A test of the tc programs computes it and prints it."""
    print("bench: kernel memory", file=sys.stderr, flush=True)
    command = [build / "tests" / "te-bpf-datapath", f"--gtest_filter={KERNEL_MEMORY_TEST}"]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    found = re.search(r"on 256 CPUs: ([0-9.]+) MB", output)
    if found is None:
        raise SystemExit(f"bench: {KERNEL_MEMORY_TEST} says no size:\n{output}")
    return [{"name": "kernel_memory_mb_10k_flows_256_cpus", "value": float(found[1]), "unit": "MB",
             "compared_with": None, "ratio": None}]


def verdict(entry: dict, factor: float) -> str:
    name = entry["name"]
    if name in GOALS:
        return "goal met" if entry["value"] >= GOALS[name] else f"{entry['value'] / GOALS[name]:.0%} of the goal"
    if name not in LIMITS:
        return ""
    good = entry["value"] <= LIMITS[name] * factor
    return "ok" if good else "TOO LARGE" if entry["unit"] == "MB" else "TOO SLOW"


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out/bench.json"), help="file to write")
    parser.add_argument("--factor", type=float, default=1.0, help="how far beyond its limit a figure may be (default 1)")
    options = parser.parse_args()

    subprocess.run(["scripts/install-deps", "all"], cwd=TOP, check=True, stdout=sys.stderr)
    subprocess.run(["cmake", "--preset", "release"], cwd=TOP, check=True, stdout=subprocess.DEVNULL)
    targets = [*PROGRAMS, "te-bench-ingest", "te-controller", "host-agent", "te-lab", "te-bpf-datapath"]
    subprocess.run(["cmake", "--build", "--preset", "release", "--target", *targets], cwd=TOP, check=True, stdout=sys.stderr)
    entries = [entry for program in PROGRAMS for entry in run(BUILD, program)]
    # On a machine that does other things too, 2,000 agents take minutes to connect.
    entries += run(BUILD, "te-bench-ingest", "--agents", str(2000 if options.factor == 1 else 300))
    entries += run_agent(BUILD) + run_kernel_memory(BUILD)
    missing = sorted({*LIMITS, *GOALS} - {entry["name"] for entry in entries})
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(entries, indent=2) + "\n")

    print(f"{'name':36} {'value':>12} {'unit':6} {'limit':>8}  verdict")
    for entry in entries:
        limit = LIMITS.get(entry["name"], GOALS.get(entry["name"]))
        print(f"{entry['name']:36} {entry['value']:12.3f} {entry['unit']:6} {limit if limit else '':>8}  "
              f"{verdict(entry, options.factor)}")
    for name in missing:
        print(f"{name:36} not measured")
    print(f"written to {options.out}")
    return 1 if missing or any(verdict(entry, options.factor).startswith("TOO") for entry in entries) else 0


if __name__ == "__main__":
    sys.exit(main())
