# SPDX-License-Identifier: Apache-2.0
"""The Debian packages: built, examined by lintian, installed into a fresh Debian 12, run there, and purged."""
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from certificates import Authority
from chroot import Chroot
from deployment import BUILD, TOP, UNITS, VERSION

PACKAGES = ("roce-te-agent", "roce-te-controller", "roce-te-tools")
PROGRAMS = {"te-controller": "roce-te-controller", "host-agent": "roce-te-agent", "tectl": "roce-te-tools"}
CONFFILES = {"etc/roce-te/te-controller.yaml", "etc/roce-te/host-agent.yaml"}
# What dpkg and apt themselves write, whatever package comes or goes.
WRITTEN_BY_DPKG = re.compile(r"^\./var/(log|cache)/|^\./var/lib/(dpkg|apt)/|^\./etc/(passwd|group|shadow|gshadow)-$|"
                             r"^\./var/lib/systemd/deb-systemd-helper")


def build_packages(folder):
    done = subprocess.run(["cpack", "--config", BUILD / "CPackConfig.cmake", "-B", folder], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(done.stdout + done.stderr)
    return {name: next(folder.glob(f"{name}_{VERSION}_*.deb")) for name in PACKAGES}


class Built(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp(prefix="te-packages-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.packages = build_packages(cls.folder)

    def field(self, package, name):
        return subprocess.run(["dpkg-deb", "-f", self.packages[package], name], stdout=subprocess.PIPE, text=True,
                              check=True).stdout.strip()

    def test_lintian_has_neither_errors_nor_warnings(self):
        done = subprocess.run(["lintian", "--allow-root", "--tag-display-limit", "0", *self.packages.values()], capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.stdout + done.stderr, "")

    def test_versions_agree(self):
        self.assertEqual({self.field(name, "Version") for name in PACKAGES}, {VERSION})
        self.assertIn(f"roce-te ({VERSION})", (TOP / "deploy/debian/changelog").read_text().splitlines()[0])

    def test_libraries_are_dependencies(self):
        for package, library in (("roce-te-agent", "libbpf1"), ("roce-te-controller", "libsqlite3-0"), ("roce-te-tools", "libprotobuf32")):
            self.assertRegex(self.field(package, "Depends"), rf"(^|, ){library}\b")


class Installed(unittest.TestCase):
    """In one chroot for all cases. A case that changes it puts the packages back: a chroot for each would take minutes."""

    @classmethod
    def setUpClass(cls):
        cls.chroot = Chroot()
        cls.addClassCleanup(cls.chroot.remove)
        folder = cls.chroot.path / "packages"
        folder.mkdir()
        cls.packages = build_packages(folder)
        shutil.rmtree(folder / "_CPack_Packages")
        depends = [subprocess.run(["dpkg-deb", "-f", file, "Depends"], stdout=subprocess.PIPE, text=True, check=True).stdout
                   for file in cls.packages.values()]
        cls.chroot.run(["apt-get", "satisfy", "-y", "-qq", "--no-install-recommends", *depends], network=True)
        cls.before = cls.chroot.files()
        cls.chroot.run(["apt-get", "install", "-y", "-qq", *cls.in_chroot()])

    @classmethod
    def in_chroot(cls):
        return [f"/packages/{file.name}" for file in cls.packages.values()]

    def will_change(self):
        """At the end of this case, all is installed again."""
        self.addCleanup(self.chroot.run, ["dpkg", "-i", *self.in_chroot()])
        self.addCleanup(self.chroot.run, ["dpkg", "--purge", *PACKAGES])

    def exists(self, path):
        return (self.chroot.path / path).exists()

    def owner(self, path):
        status = (self.chroot.path / path).stat()
        return status.st_uid, status.st_gid, oct(status.st_mode & 0o7777)

    def test_programs_answer(self):
        for program in PROGRAMS:
            self.assertEqual(self.chroot.run([program, "--version"]).stdout.strip(), VERSION)
            self.assertIn("Usage: ", self.chroot.run([program, "--help"]).stdout)

    def test_units_are_there_and_good_but_not_enabled(self):
        units = [path.name for path in UNITS]
        for name in units:
            self.assertTrue(self.exists(f"lib/systemd/system/{name}"))
            self.assertEqual(self.chroot.run(["systemctl", "is-enabled", name], check=False).stdout.strip(), "disabled")
        self.assertEqual(self.chroot.run(["systemd-analyze", "verify", "--man=no", *units]).stdout, "")

    def test_manuals_and_examples_are_there(self):
        for path in ("share/man/man8/te-controller.8.gz", "share/man/man8/host-agent.8.gz", "share/man/man1/tectl.1.gz",
                     "share/doc/roce-te-controller/examples/topology.yaml", "share/doc/roce-te-agent/examples/switch-agent.yaml"):
            self.assertTrue(self.exists("usr/" + path), path)

    def test_the_controller_starts_as_its_user_with_the_configuration_as_shipped(self):
        self.provide_certificates("te-controller")
        self.chroot.run(["sh", "-ec", """
            cp /usr/share/doc/roce-te-controller/examples/topology.yaml /etc/roce-te/
            install -d -o roce-te -g roce-te -m 750 /run/roce-te /var/lib/roce-te
            chown root:roce-te /etc/roce-te/te-controller.key
            chmod 640 /etc/roce-te/te-controller.key"""])
        told = self.chroot.run(["sh", "-ec", """
            as="setpriv --reuid roce-te --regid roce-te --clear-groups --bounding-set -all --no-new-privs"
            $as te-controller --config /etc/roce-te/te-controller.yaml --check
            $as te-controller --config /etc/roce-te/te-controller.yaml &
            until [ -S /run/roce-te/api.sock ]; do kill -0 $!; done
            tectl -o json status
            kill $!
            wait $!"""], timeout=60).stdout
        self.assertIn("no fault found", told)
        self.assertRegex(told, r'"mode": ?"observe"')

    def test_the_agent_takes_its_configurations_as_shipped(self):
        for path in ("/etc/roce-te/host-agent.yaml", "/usr/share/doc/roce-te-agent/examples/switch-agent.yaml"):
            done = self.chroot.run(["host-agent", "doctor", "--config", path], check=False)
            self.assertEqual(done.returncode, 1, done.stdout)  # there are no certificates; 2: it does not like the file
            self.assertIn("certificate", done.stdout)

    def test_a_changed_configuration_survives_removal_and_upgrade_and_not_a_purge(self):
        self.will_change()
        config = self.chroot.path / "etc/roce-te/host-agent.yaml"
        config.write_text(config.read_text().replace("gpu001", "gpu007"))
        self.chroot.run(["dpkg", "-i", "/packages/" + self.packages["roce-te-agent"].name])
        self.assertIn("node: gpu007", config.read_text())
        self.chroot.run(["dpkg", "--remove", "roce-te-agent"])
        self.assertIn("node: gpu007", config.read_text())
        self.chroot.run(["dpkg", "--purge", "roce-te-agent"])
        self.assertFalse(config.exists())

    def test_a_purge_leaves_nothing_but_what_is_the_operators(self):
        self.will_change()
        self.provide_certificates("te-controller")
        self.chroot.run(["sh", "-ec", """
            systemctl enable te-controller.service roce-te-agent.service
            install -d -o roce-te -g roce-te /run/roce-te /var/lib/roce-te /run/roce-te-agent
            touch /var/lib/roce-te/state.db /run/roce-te-agent/gpu001.lock"""])
        self.assertGreater(len(self.chroot.files() - self.before), 20)
        self.chroot.run(["apt-get", "purge", "-y", "-qq", *PACKAGES])
        left = {path for path in self.chroot.files() - self.before if not WRITTEN_BY_DPKG.match(path)}
        folder = "./etc/roce-te"
        self.assertEqual(left, {folder, *(f"{folder}/{name}" for name in ("ca.pem", "te-controller.pem", "te-controller.key"))})
        shutil.rmtree(self.chroot.path / "etc/roce-te")
        named = [path for path in self.chroot.files() if "roce-te" in path and not path.startswith(("./packages", "./var/log"))]
        self.assertEqual(named, [])
        listed = self.chroot.run(["dpkg-query", "-W", "-f", "${Package}\\n"]).stdout.split()
        self.assertEqual(set(PACKAGES) & set(listed), set())

    def test_files_belong_to_root_and_the_system_users_can_do_nothing(self):
        for path in [*CONFFILES, "usr/sbin/te-controller", "usr/sbin/host-agent", "usr/bin/tectl"]:
            self.assertEqual(self.owner(path), (0, 0, "0o644" if path in CONFFILES else "0o755"), path)
        for user in ("roce-te", "roce-te-agent"):
            entry = self.chroot.run(["getent", "passwd", user]).stdout.strip().split(":")
            self.assertLess(int(entry[2]), 1000)
            self.assertEqual(entry[6], "/usr/sbin/nologin")
            self.assertRegex(self.chroot.run(["getent", "shadow", user]).stdout, rf"^{user}:!")

    def provide_certificates(self, name):
        with tempfile.TemporaryDirectory() as directory:
            authority = Authority(Path(directory) / "certificates")
            certificate, key = authority.issue(name)
            for source, target in ((certificate, f"{name}.pem"), (key, f"{name}.key"), (authority.certificate, "ca.pem")):
                shutil.copy(source, self.chroot.path / "etc/roce-te" / target)
            for target in (f"{name}.pem", f"{name}.key", "ca.pem"):
                self.addCleanup((self.chroot.path / "etc/roce-te" / target).unlink, missing_ok=True)


if __name__ == "__main__":
    unittest.main()
