# SPDX-License-Identifier: Apache-2.0
"""What fabric tests share: the built programs, labs with names of their own, placements of flows by hand."""
import itertools
import json
import os
import subprocess
from collections import Counter
from pathlib import Path

from te_lab import Lab

PROGRAMS = Path(os.environ["TE_BUILD"]) / "bin"
TE_LAB = PROGRAMS / "te-lab"
NUMBERS = itertools.count()


def lab_id(stem="t"):
    """A name that no other lab on this machine has."""
    return f"{stem}{os.getpid()}x{next(NUMBERS)}"


def make_lab(**spec):
    return Lab(TE_LAB, lab_id(), **spec)


def te_lab(*arguments, **options):
    return subprocess.run([TE_LAB, *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False, **options)


def namespaces(identifier):
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    return [line.split()[0] for line in listed.splitlines() if line.startswith(f"te-{identifier}-")]


def left_over(identifier):
    """Everything that a lab of this name still has on the machine."""
    mounts = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if f"/run/te-lab/{identifier}/" in line]
    directory = [str(Path("/run/te-lab") / identifier)] if (Path("/run/te-lab") / identifier).exists() else []
    processes = []
    for entry in Path("/proc").iterdir():
        try:
            command = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
        except OSError:
            continue
        if f"/run/te-lab/{identifier}/".encode() in b" ".join(command) or identifier.encode() in command:
            processes.append(f"{entry.name}: {b' '.join(command).decode()}")
    return namespaces(identifier) + mounts + directory + processes


def placed_on(lab, path, pattern_flows, spine_of):
    """Writes a file for `te-lab traffic --flow-labels` that puts flow number n of a leaf on spine `spine_of(n)`, and its
    acknowledgements on spines in turn. `pattern_flows`: (source, destination, QP number) of every flow."""
    ports = range(0xC001, 0xC001 + 96)
    spines = lab.names("spine")
    hops = {}

    def port_to(source, destination, spine):
        if (source, destination) not in hops:
            hops[source, destination] = lab.next_hops(source, destination, ports)
        return ports[hops[source, destination].index(spine)]

    placed = Counter()
    entries = []
    for source, destination, qp in pattern_flows:
        leaf = lab.attachment(source)[0]
        number = placed[leaf]
        placed[leaf] += 1
        entries.append({"source": source, "destination": destination, "qp": qp,
                        "flow_label": port_to(source, destination, spine_of(number)) & 0x3FFF,
                        "answer_flow_label": port_to(destination, source, spines[number % len(spines)]) & 0x3FFF})
    path.write_text(json.dumps({"flows": entries}))
    return path


def ring_flows(lab, qps=2):
    hosts = lab.names("host")
    return [(host, hosts[(place + 1) % len(hosts)], qp) for place, host in enumerate(hosts) for qp in range(qps)]
