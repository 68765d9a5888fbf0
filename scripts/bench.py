#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the release benchmarks, runs them, compares each figure with its limit and writes out/bench.json."""

import argparse
import json
import pathlib
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
BUILD = TOP / "out" / "build" / "release"
PROGRAMS = ["te-bench-bpf", "te-bench-plan"]

# Largest value that still meets the project's promise.
LIMITS = {
    "bpf_count_vs_empty": 3.0,
    "bpf_steer_vs_empty": 5.5,
    "bpf_other_vs_empty": 1.3,
    "plan_cycle_10k_ms": 100.0,
}


def run(build: pathlib.Path, program: str) -> list[dict]:
    """Figures of one program, which prints its table to stderr and JSON to stdout."""
    print(f"bench: {program}", file=sys.stderr, flush=True)
    output = subprocess.run([build / "bench" / program, "--json"], check=True, stdout=subprocess.PIPE).stdout
    return json.loads(output)


def verdict(entry: dict, factor: float) -> str:
    limit = LIMITS.get(entry["name"])
    if limit is None:
        return ""
    return "ok" if entry["value"] <= limit * factor else "TOO SLOW"


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out/bench.json"), help="file to write")
    parser.add_argument("--factor", type=float, default=1.0, help="how far above its limit a figure may be (default 1)")
    options = parser.parse_args()

    subprocess.run(["scripts/install-deps", "all"], cwd=TOP, check=True, stdout=sys.stderr)
    subprocess.run(["cmake", "--preset", "release"], cwd=TOP, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", "--preset", "release", "--target", *PROGRAMS], cwd=TOP, check=True, stdout=sys.stderr)
    entries = [entry for program in PROGRAMS for entry in run(BUILD, program)]
    missing = sorted(set(LIMITS) - {entry["name"] for entry in entries})
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(entries, indent=2) + "\n")

    print(f"{'name':32} {'value':>12} {'unit':6} {'limit':>8}  verdict")
    for entry in entries:
        limit = LIMITS.get(entry["name"])
        print(f"{entry['name']:32} {entry['value']:12.3f} {entry['unit']:6} {limit if limit else '':>8}  "
              f"{verdict(entry, options.factor)}")
    for name in missing:
        print(f"{name:32} not measured")
    print(f"written to {options.out}")
    return 1 if missing or any(verdict(entry, options.factor) == "TOO SLOW" for entry in entries) else 0


if __name__ == "__main__":
    sys.exit(main())
