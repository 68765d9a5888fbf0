# SPDX-License-Identifier: Apache-2.0
"""What tests of the deployment share: where its files are, and how to read a unit file."""
import os
import re
import subprocess
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
DEPLOY = TOP / "deploy"
BUILD = Path(os.environ["TE_BUILD"])
PROGRAMS = BUILD / "bin"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
VERSION = re.search(r"project\(roce_te VERSION ([0-9.]+)", (TOP / "CMakeLists.txt").read_text()).group(1)


def unit(name):
    return DEPLOY / "systemd" / f"{name}.service"


def settings(path, key):
    """Values of `key` in a unit file, in order."""
    return [line.split("=", 1)[1] for line in path.read_text().splitlines() if line.startswith(key + "=")]


def capabilities(path):
    """Names in CapabilityBoundingSet=, without CAP_."""
    return {name.removeprefix("CAP_") for value in settings(path, "CapabilityBoundingSet") for name in value.split()}


def allowed_system_calls(path):
    """Names of what SystemCallFilter= lets through: lines that allow, less those that begin with ~."""
    allowed = expand("@default")
    for value in settings(path, "SystemCallFilter"):
        for name in value.removeprefix("~").split():
            allowed = allowed - expand(name) if value.startswith("~") else allowed | expand(name)
    return allowed


def expand(name):
    """The system calls of a set of systemd's, which may name other sets."""
    if not name.startswith("@"):
        return {name}
    text = subprocess.run(["systemd-analyze", "syscall-filter", name], capture_output=True, text=True, check=True).stdout
    members = {line.strip() for line in text.splitlines()[1:] if line.strip() and not line.strip().startswith("#")}
    return set().union(*map(expand, members))
