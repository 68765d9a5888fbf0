#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Builds and tests roce-te: formatting, unit, BPF, deployment and fabric tests, sanitizer builds, fuzzers, lint,
quickstart, benchmarks.

Exit status 0 when nothing failed and nothing was skipped. The last line is 'N passed, N failed, N skipped'.
"""

import argparse
import concurrent.futures
import dataclasses
import os
import pathlib
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as xml

TOP = pathlib.Path(__file__).resolve().parent.parent
LOGS = TOP / "out" / "check"
JOBS = "2"
SUMMARY = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) skipped$")


@dataclasses.dataclass
class Counts:
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped)

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def log_of(name: str) -> pathlib.Path:
    return LOGS / (name.replace(" ", "-") + ".log")


def run(name: str, command: list, timeout_s: int, **keywords) -> tuple[int, str]:
    """Runs a command with its output in a log file; returns exit status and output."""
    path = log_of(name)
    with path.open("w") as log:
        try:
            status = subprocess.run(command, cwd=TOP, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                    timeout=timeout_s, **keywords).returncode
        except subprocess.TimeoutExpired:
            log.write(f"\ncheck: ended after {timeout_s} s\n")
            status = 124
    return status, path.read_text(errors="replace")


def single(name: str, command: list, timeout_s: int) -> Counts:
    """A step that passes or fails as a whole."""
    status, output = run(name, command, timeout_s)
    if status == 0:
        return Counts(passed=1)
    print(tail(output), flush=True)
    return Counts(failed=1)


def timed(name: str, command: list, timeout_s: int) -> Counts:
    """A step with time limits: repeated once when it fails, and both outcomes are printed."""
    counts = single(name, command, timeout_s)
    if counts.failed:
        counts = single(f"{name} again", command, timeout_s)
        print(f"{name}: failed, and then {'failed again' if counts.failed else 'passed'}", flush=True)
    return counts


def tail(output: str, lines: int = 60) -> str:
    return "\n".join(output.splitlines()[-lines:])


class BuildFailed(Exception):
    """Nothing that follows could say more than this."""


def build(preset: str, targets: list[str] = ()) -> None:
    name = f"build {preset}"
    status, output = run(name + " configure", ["cmake", "--preset", preset], 300)
    if status == 0:
        command = ["cmake", "--build", "--preset", preset, "-j", JOBS]
        if targets:
            command += ["--target", *targets]
        status, output = run(name, command, 1800)
    if status != 0:
        print(tail(output), flush=True)
        raise BuildFailed(f"{name} failed")


def ctest(preset: str, labels: str | None = None, targets: list[str] = ()) -> Counts:
    """Builds a preset (or some targets) and runs its ctests; counts come from the JUnit file that ctest writes."""
    build(preset, targets)
    junit = LOGS / f"{preset}.xml"
    junit.unlink(missing_ok=True)
    command = ["ctest", "--test-dir", f"out/build/{preset}", "-j", JOBS, "--output-on-failure", "--output-junit", str(junit)]
    if labels:
        command += ["-L", labels]
    status, output = run(f"ctest {preset}", command, 1800)
    if not junit.exists():
        print(tail(output), flush=True)
        return Counts(failed=1)
    counts = Counts()
    for case in xml.parse(junit).getroot().iter("testcase"):
        kind = case.get("status")
        if kind == "run":
            counts.passed += 1
            continue
        print(f"  {kind}: {case.get('name')}", flush=True)
        if kind in ("notrun", "disabled", "skipped"):
            counts.skipped += 1
        else:
            counts.failed += 1
    if status != 0:
        print(tail(output), flush=True)
        counts.failed = max(counts.failed, 1)
    if counts.passed == 0:
        counts.failed += 1
    return counts


def counted(name: str, command: list, timeout_s: int) -> Counts:
    """A step whose last line is 'N passed, N failed, N skipped'."""
    status, output = run(name, command, timeout_s)
    last = next((SUMMARY.match(line) for line in reversed(output.splitlines()) if SUMMARY.match(line)), None)
    counts = Counts(*map(int, last.groups())) if last else Counts(failed=1)
    if status != 0 and counts.failed == 0:
        counts.failed = 1
    if counts.failed or counts.skipped:
        print(tail(output, 120), flush=True)
    else:
        print(*(line + "\n" for line in output.splitlines() if line.endswith(": failed, and then passed")), end="", sep="")
    return counts


def check_format() -> Counts:
    files = subprocess.run(["git", "ls-files", "*.cc", "*.h", "*.c"], cwd=TOP, check=True, stdout=subprocess.PIPE,
                           text=True).stdout.split()
    return single("format", ["clang-format-16", "--dry-run", "-Werror", *files], 120)


def check_tidy() -> Counts:
    """clang-tidy over every source of ours, with the commands of the one build that compiles each file by itself."""
    build("dev")
    files = subprocess.run(["git", "ls-files", "*.cc"], cwd=TOP, check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    sources = [f"^{re.escape(str(TOP / name))}$" for name in files]
    return single("tidy", ["run-clang-tidy-16", "-quiet", "-j", JOBS, "-p", "out/build/dev", *sources], 1500)


def check_fuzz(seconds: int) -> Counts:
    """Each fuzz target of the sanitizer build for a while, a few at a time, from its kept corpus; a crash is left in
    out/check."""

    def fuzz(target: pathlib.Path) -> Counts:
        name = target.name.removeprefix("te-fuzz-")
        corpus = LOGS / "corpus" / name
        corpus.mkdir(parents=True, exist_ok=True)
        return single(f"fuzz {name}", [target, f"-max_total_time={seconds}", "-max_len=4096", "-timeout=10",
                                       f"-artifact_prefix={LOGS}/{name}-", corpus, f"tests/fuzz/corpus/{name}"],
                      seconds + 120)

    with concurrent.futures.ThreadPoolExecutor(int(JOBS)) as pool:
        counts = sum(pool.map(fuzz, sorted((TOP / "out/build/asan-ubsan/fuzz").glob("te-fuzz-*"))), Counts())
    return counts if counts.passed + counts.failed else Counts(failed=1)


def check_bench(factor: float) -> Counts:
    return timed("bench", ["./bench", "--factor", str(factor)], 900)


def check_deploy() -> Counts:
    build("release", ["te-controller", "host-agent", "tectl"])
    return counted("deploy", ["tests/deploy/run", "out/build/release"], 600)


STEPS = {
    "format": lambda options: check_format(),
    "docs": lambda options: single("docs", ["scripts/metrics_doc.py", "--check"], 60),
    "release": lambda options: ctest("release"),
    "fabric": lambda options: counted("fabric", ["tests/fabric/run", "out/build/release"], 5400 if options.full else 1800),
    "asan-ubsan": lambda options: ctest("asan-ubsan"),
    "deploy": lambda options: check_deploy(),
    "fuzz": lambda options: check_fuzz(600 if options.full else 20),
    "tsan": lambda options: ctest("tsan", "threads", ["te_thread_tests"]),
    "quickstart": lambda options: timed("quickstart", ["./quickstart", "--seed", "1", "--out", "out/check/quickstart",
                                                       "--factor", "1" if options.full else "2"], 600),
    "bench": lambda options: check_bench(1.0 if options.full else 2.0),
}

# Too long for every change: only with --full, or by name.
LONG_STEPS = {
    "tidy": lambda options: check_tidy(),
    "seeds": lambda options: counted("seeds", ["tests/fabric/seeds", "out/build/release"], 3600),
}

# Runs beside the one after it: deploy waits for disk and network, fuzzers run for a fixed time.
BESIDE = {"deploy": "fuzz"}


def install() -> bool:
    status, output = run("install", ["scripts/install-deps", "all"], 1800)
    print(output.strip() if status == 0 else tail(output), flush=True)
    return status == 0


def take_step(name: str, options) -> tuple[Counts, bool]:
    """What it counted, and whether the next step makes sense."""
    started = time.monotonic()
    try:
        counts = (STEPS | LONG_STEPS)[name](options)
    except BuildFailed as failure:
        print(f"check: {name}: {failure}; the steps after it did not run (log: {log_of(name).parent})", flush=True)
        return Counts(failed=1), False
    print(f"check: {name}: {counts} in {time.monotonic() - started:.0f} s (log: {log_of(name).parent})", flush=True)
    return counts, True


def main() -> int:
    parser = argparse.ArgumentParser(prog="check", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="the long ones too: clang-tidy, all seeds, ten minutes a fuzzer, limits unrelaxed")
    parser.add_argument("--only", nargs="+", choices=[*STEPS, *LONG_STEPS], metavar="STEP",
                        help="only these steps: " + ", ".join([*STEPS, *LONG_STEPS]))
    options = parser.parse_args()
    if options.full:
        for name, value in (("TE_KILLS", "200"), ("TE_PLACES", "5"), ("TE_FACTOR", "1")):
            os.environ.setdefault(name, value)
    os.environ["PATH"] = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    LOGS.mkdir(parents=True, exist_ok=True)

    begin = time.monotonic()
    if not install():
        print(Counts(failed=1))
        return 1
    total = Counts()
    names = list(options.only or (STEPS | LONG_STEPS if options.full else STEPS))
    while names:
        together = [names.pop(0)]
        if names and BESIDE.get(together[0]) == names[0]:
            together.append(names.pop(0))
        print(f"check: {' and '.join(together)} ...", flush=True)
        with concurrent.futures.ThreadPoolExecutor(len(together)) as pool:
            outcomes = list(pool.map(lambda name: take_step(name, options), together))
        total = sum((counts for counts, _ in outcomes), total)
        if not all(sensible for _, sensible in outcomes):
            print(total, flush=True)
            return 1
    print(f"check: took {time.monotonic() - begin:.0f} s")
    print(total, flush=True)
    return 1 if total.failed or total.skipped or not total.passed else 0


if __name__ == "__main__":
    sys.exit(main())
