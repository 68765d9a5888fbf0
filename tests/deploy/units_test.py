# SPDX-License-Identifier: Apache-2.0
"""The systemd units: they are well-formed, and as closed as is claimed."""
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

from deployment import DEPLOY, PROGRAMS, TOP, UNITS, capabilities, settings, unit

# As `systemd-analyze security` of systemd 252 weighs them, from 0 (closed) to 10. Half of the agent's 2.8 are root with its
# five capabilities and the bpf() call, the other half the host's network and sockets: its work. The two others run as
# users of their own with no capability: of them the network is left. ProtectKernelTunables= counts 0.2, which the agent has by paths that are
# not weighed. Another version may weigh a little differently.
EXPOSURE_LIMITS = {"te-controller": 1.5, "roce-te-agent": 3.0, "roce-te-switch-agent": 1.8}


class WellFormed(unittest.TestCase):
    def test_systemd_takes_them_without_a_word(self):
        for path in UNITS:
            with self.subTest(unit=path.name), tempfile.TemporaryDirectory() as directory:
                copy = Path(directory) / path.name
                copy.write_text(path.read_text().replace("ExecStart=/usr/sbin/", f"ExecStart={PROGRAMS}/"))
                done = subprocess.run(["systemd-analyze", "verify", "--man=no", copy], capture_output=True, text=True, check=False)
                self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))

    def test_a_mistake_in_one_would_be_found(self):
        with tempfile.TemporaryDirectory() as directory:
            copy = Path(directory) / "wrong.service"
            copy.write_text(f"[Service]\nExecStart={PROGRAMS}/host-agent\nProtectSysten=strict\n")
            done = subprocess.run(["systemd-analyze", "verify", "--man=no", copy], capture_output=True, text=True, check=False)
            self.assertIn("ProtectSysten", done.stderr)

    def test_the_controllers_user_is_the_one_that_sysusers_makes(self):
        for name, users in (("te-controller", "roce-te-controller"), ("roce-te-switch-agent", "roce-te-agent")):
            made = re.findall(r"^u (\S+)", (DEPLOY / "sysusers" / f"{users}.conf").read_text(), re.M)
            self.assertEqual(settings(unit(name), "User"), made)
            self.assertEqual(settings(unit(name), "Group"), made)


class Sandbox(unittest.TestCase):
    def test_exposure_stays_within_its_limits(self):
        for path in UNITS:
            done = subprocess.run(["systemd-analyze", "security", "--offline=true", path], capture_output=True, text=True,
                                  check=True)
            score = float(re.search(r"Overall exposure level for \S+: ([0-9.]+)", done.stdout).group(1))
            print(f"{path.name}: exposure {score}, limit {EXPOSURE_LIMITS[path.stem]}", flush=True)
            with self.subTest(unit=path.name):
                self.assertLessEqual(score, EXPOSURE_LIMITS[path.stem])

    def test_the_agents_capabilities_are_those_that_the_manual_names(self):
        text = (TOP / "docs" / "running.md").read_text()
        paragraph = re.search(r"^To start, the agent needs .*?\.", text, re.M | re.S).group(0)
        self.assertEqual(capabilities(unit("roce-te-agent")), set(re.findall(r"CAP_([A-Z_]+)", paragraph)))

    def test_the_others_have_none(self):
        for name in ("te-controller", "roce-te-switch-agent"):
            self.assertEqual(settings(unit(name), "CapabilityBoundingSet"), [""], name)
            self.assertEqual(settings(unit(name), "AmbientCapabilities"), [""], name)


if __name__ == "__main__":
    unittest.main()
