# SPDX-License-Identifier: Apache-2.0
"""The Debian packages: built, examined by lintian, installed into a fresh Debian 12, run there, and purged."""
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from contextlib import contextmanager
from pathlib import Path

import yaml

from certificates import Authority
from chroot import Chroot
from deployment import BUILD, DEPLOY, TOP, UNITS, VERSION

CAP_NET_ADMIN, CAP_BPF = 12, 39
PACKAGES = ("roce-te-agent", "roce-te-controller", "roce-te-tools")
PROGRAMS = {"te-controller": "roce-te-controller", "host-agent": "roce-te-agent", "tectl": "roce-te-tools"}
CONFFILES = {"etc/roce-te/te-controller.yaml", "etc/roce-te/host-agent.yaml"}
# What dpkg and apt themselves write, whatever package comes or goes.
WRITTEN_BY_DPKG = re.compile(r"^\./var/(log|cache)/|^\./var/lib/(dpkg|apt)/|^\./etc/(passwd|group|shadow|gshadow)-$|"
                             r"^\./var/lib/systemd/deb-systemd-helper")


def build_packages(folder):
    done = subprocess.run(["cpack", "--config", BUILD / "CPackConfig.cmake", "-B", folder], capture_output=True,
                          text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(done.stdout + done.stderr)
    return {name: next(folder.glob(f"{name}_{VERSION}_*.deb")) for name in PACKAGES}


class Stage:
    """The packages, and one chroot for all cases: another for each would take minutes."""
    chroot = None
    packages = {}
    before = set()  # paths in the chroot before the packages were installed, their dependencies having been


def in_chroot():
    return [f"/packages/{file.name}" for file in Stage.packages.values()]


def setUpModule():
    Stage.chroot = Chroot()
    unittest.addModuleCleanup(Stage.chroot.remove)
    folder = Stage.chroot.path / "packages"
    folder.mkdir()
    Stage.packages = build_packages(folder)
    shutil.rmtree(folder / "_CPack_Packages")
    depends = [field(name, "Depends") for name in PACKAGES]
    Stage.chroot.run(["apt-get", "satisfy", "-y", "-qq", "--no-install-recommends", *depends], network=True)
    Stage.before = Stage.chroot.files()
    Stage.chroot.run(["apt-get", "install", "-y", "-qq", *in_chroot()])


def field(package, name):
    return subprocess.run(["dpkg-deb", "-f", Stage.packages[package], name], stdout=subprocess.PIPE, text=True,
                          check=True).stdout.strip()


def provide_certificates(case, *names):
    """Until the case ends, /etc/roce-te has certificates and the topology of the examples."""
    folder = Stage.chroot.path / "etc/roce-te"
    with tempfile.TemporaryDirectory() as directory:
        authority = Authority(Path(directory) / "certificates")
        files = [(authority.certificate, "ca.pem")]
        for name in names:
            certificate, key = authority.issue(name)
            files += [(certificate, f"{name}.pem"), (key, f"{name}.key")]
        files.append((Stage.chroot.path / "usr/share/doc/roce-te-controller/examples/topology.yaml", "topology.yaml"))
        for source, target in files:
            shutil.copy(source, folder / target)
            case.addCleanup((folder / target).unlink, missing_ok=True)
    Stage.chroot.run(["sh", "-ec", "chown root:roce-te /etc/roce-te/te-controller.key; chmod 640 /etc/roce-te/te-controller.key"])


def user_namespaces():
    return subprocess.run(["unshare", "--user", "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0


def will_change(case):
    """At the end of the case, all is installed again."""
    case.addCleanup(Stage.chroot.run, ["dpkg", "-i", *in_chroot()])
    case.addCleanup(Stage.chroot.run, ["dpkg", "--purge", *PACKAGES])


class Built(unittest.TestCase):
    def test_lintian_has_neither_errors_nor_warnings(self):
        done = subprocess.run(["lintian", "--allow-root", "--tag-display-limit", "0", *Stage.packages.values()],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.stdout + done.stderr, "")

    def test_versions_agree(self):
        self.assertEqual({field(name, "Version") for name in PACKAGES}, {VERSION})
        self.assertIn(f"roce-te ({VERSION})", (TOP / "deploy/debian/changelog").read_text().splitlines()[0])

    def test_libraries_are_dependencies(self):
        for package, library in (("roce-te-agent", "libbpf1"), ("roce-te-controller", "libsqlite3-0"),
                                 ("roce-te-tools", "libprotobuf32")):
            self.assertRegex(field(package, "Depends"), rf"(^|, ){library}\b")


class Installed(unittest.TestCase):
    def setUp(self):
        self.chroot = Stage.chroot

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
        provide_certificates(self, "te-controller")
        told = self.chroot.run(["sh", "-ec", """
            install -d -o roce-te -g roce-te -m 750 /run/roce-te /var/lib/roce-te
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

    def test_the_programs_take_the_configurations_of_the_kubernetes_manifests(self):
        folder = DEPLOY / "kubernetes"
        documents = [document for name in ("agent.yaml", "controller.yaml")
                     for document in yaml.safe_load_all((folder / name).read_text())]
        texts = {name: text for document in documents for name, text in document.get("data", {}).items()}
        pod = next(document for document in documents if document["kind"] == "DaemonSet")["spec"]["template"]["spec"]
        for place in ("template", "config"):
            (self.chroot.path / place).mkdir()
            self.addCleanup(shutil.rmtree, self.chroot.path / place)
        (self.chroot.path / "template/host-agent.yaml").write_text(texts["host-agent.yaml"])
        (self.chroot.path / "config/te-controller.yaml").write_text(texts["te-controller.yaml"])
        self.chroot.run(["NODE_NAME=gpu042", *pod["initContainers"][0]["command"]])
        told = self.chroot.run(["host-agent", "doctor", "--config", "/config/host-agent.yaml"], check=False)
        self.assertEqual(told.returncode, 1, told.stdout)  # 2: it does not like the file
        self.assertIn("node: gpu042", (self.chroot.path / "config/host-agent.yaml").read_text())
        told = self.chroot.run(["te-controller", "--config", "/config/te-controller.yaml", "--check"], check=False).stdout
        self.assertIn("/etc/roce-te/topology/topology.yaml: No such file", told)  # read after the configuration was taken

    def test_a_changed_configuration_survives_removal_and_upgrade_and_not_a_purge(self):
        will_change(self)
        config = self.chroot.path / "etc/roce-te/host-agent.yaml"
        config.write_text(config.read_text().replace("gpu001", "gpu007"))
        self.chroot.run(["dpkg", "-i", "/packages/" + Stage.packages["roce-te-agent"].name])
        self.assertIn("node: gpu007", config.read_text())
        self.chroot.run(["dpkg", "--remove", "roce-te-agent"])
        self.assertIn("node: gpu007", config.read_text())
        self.chroot.run(["dpkg", "--purge", "roce-te-agent"])
        self.assertFalse(config.exists())

    def test_a_purge_leaves_nothing_but_what_is_the_operators(self):
        will_change(self)
        provide_certificates(self, "te-controller")
        self.chroot.run(["sh", "-ec", """
            systemctl enable te-controller.service roce-te-agent.service
            install -d -o roce-te -g roce-te /run/roce-te /var/lib/roce-te /run/roce-te-agent
            touch /var/lib/roce-te/state.db /run/roce-te-agent/gpu001.lock"""])
        self.assertGreater(len(self.chroot.files() - Stage.before), 20)
        self.chroot.run(["apt-get", "purge", "-y", "-qq", *PACKAGES])
        left = {path for path in self.chroot.files() - Stage.before if not WRITTEN_BY_DPKG.match(path)}
        provided = ("ca.pem", "te-controller.pem", "te-controller.key", "topology.yaml")
        self.assertEqual(left, {"./etc/roce-te", *(f"./etc/roce-te/{name}" for name in provided)})
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


class Booted(unittest.TestCase):
    """systemd of a copy of the chroot as the first process of a container: here the units' sandboxes are in force."""

    # Each part begins with a line "== NAME"; the container ends with the script. Nothing in it listens to the outside.
    SCRIPT = r"""#!/bin/sh
exec >/root/report 2>&1
await() {
  tries=0
  until "$@" >/dev/null 2>&1; do
    tries=$((tries + 1))
    if [ $tries = 300 ]; then echo "waited in vain for: $*"; return; fi
    sleep 0.1
  done
}
connected() { tectl nodes | grep -E "^$1 +[a-z]+ +connected "; }
logged() { journalctl -o cat -u roce-te-agent | grep "$1"; }
restarted() { [ "$(systemctl show -P MainPID roce-te-agent)" != "$before" ] && connected gpu001; }
status_of() { cat "/proc/$(systemctl show -P MainPID "$1")/status"; }
await connected gpu001
echo "== nodes"; tectl -o json nodes
echo "== agent"; status_of roce-te-agent
echo "== controller"; status_of te-controller
echo "== pins"; ls /sys/fs/bpf/roce-te/gpu001
echo "== writable"; nsenter -t "$(systemctl show -P MainPID roce-te-agent)" --mount --root \
  sh -c 'touch /etc/x /usr/x /sys/kernel/x /proc/sys/vm/swappiness /root/x'
echo "== reload"; systemctl reload roce-te-agent
await logged "certificate files read again"
before=$(systemctl show -P MainPID roce-te-agent)
echo "== upgrade"; dpkg -i /packages/roce-te-agent_*.deb
await restarted
cp /etc/roce-te/host-agent.yaml /root
sed s/10.0.0.5/127.0.0.1/ /usr/share/doc/roce-te-agent/examples/switch-agent.yaml >/etc/roce-te/host-agent.yaml
chown root:roce-te-agent /etc/roce-te/leaf1.key
chmod 640 /etc/roce-te/leaf1.key
systemctl start roce-te-switch-agent
await connected leaf1
echo "== switch"; status_of roce-te-switch-agent
echo "== alone"; systemctl is-active roce-te-agent
cp /root/host-agent.yaml /etc/roce-te
systemctl start roce-te-agent
await connected gpu001
echo "== denied"; journalctl -o cat -u roce-te-agent -u te-controller -u roce-te-switch-agent |
  grep -E 'not permitted|Permission denied|Read-only file system|Bad system call|SIGSYS'
echo "== removal"; dpkg --purge roce-te-agent
echo "== left"; ls /sys/fs/bpf
echo "== after"; systemctl is-active te-controller roce-te-agent
echo "== end"
systemctl poweroff --force
"""
    UNIT = """[Unit]
After=te-controller.service roce-te-agent.service
[Service]
ExecStart=/root/look
[Install]
WantedBy=multi-user.target
"""

    def boot(self, root, bpffs):
        machine = f"te-packages-{os.getpid()}"
        command = ["systemd-nspawn", "--directory", root, "--boot", "--private-network", "--register=no", "--keep-unit",
                   "--capability=all", "--system-call-filter=bpf perf_event_open", f"--machine={machine}",
                   f"--bind={bpffs}:/sys/fs/bpf"]
        done = subprocess.run(list(map(str, command)), env={**os.environ, "SYSTEMD_NSPAWN_API_VFS_WRITABLE": "yes"}, check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=150)
        report = root / "root/report"
        self.assertTrue(report.exists(), done.stdout)
        text = report.read_text()
        self.assertIn("== end", text)
        self.assertNotIn("waited in vain", text)
        return {name: body for name, _, body in (part.partition("\n") for part in ("\n" + text).split("\n== ")[1:])}

    @contextmanager
    def bpffs(self):
        with tempfile.TemporaryDirectory(prefix="te-bpffs-") as folder:
            subprocess.run(["mount", "-t", "bpf", "bpf", folder], check=True)
            try:
                yield folder
            finally:
                subprocess.run(["umount", folder], check=True)

    @contextmanager
    def prepared_root(self):
        provide_certificates(self, "te-controller", "gpu001", "leaf1")
        with tempfile.TemporaryDirectory(prefix="te-chroot-") as folder:
            root = Path(folder) / "root"
            subprocess.run(["cp", "-a", Stage.chroot.path, root], check=True)
            config = root / "etc/roce-te/host-agent.yaml"
            config.write_text(config.read_text().replace("10.0.0.5", "127.0.0.1").replace("[eth2]", "[lo]"))
            (root / "root/look").write_text(self.SCRIPT)
            (root / "root/look").chmod(0o755)
            (root / "etc/systemd/system/look.service").write_text(self.UNIT)
            if not user_namespaces():
                print("no user namespaces here (as in a chroot): te-controller runs without PrivateUsers=", flush=True)
                drop_in = root / "etc/systemd/system/te-controller.service.d/here.conf"
                drop_in.parent.mkdir()
                drop_in.write_text("[Service]\nPrivateUsers=no\n")
            subprocess.run(["systemctl", "--root", root, "enable", "te-controller", "roce-te-agent", "look"], check=True,
                           capture_output=True)
            yield root

    def test_the_units_work_in_their_sandboxes_through_reload_upgrade_and_removal(self):
        with self.bpffs() as folder, self.prepared_root() as root:
            parts = self.boot(root, folder)
        nodes = {node["name"]: node for node in json.loads(parts["nodes"])["nodes"]}
        self.assertTrue(nodes["gpu001"]["agent_connected"])
        sources = {source["name"]: source["state"] for source in nodes["gpu001"]["sources"]}
        self.assertEqual((sources["tc"], sources["probe"], sources["links"]), ("on", "on", "on"))
        for part, kept in (("agent", 1 << CAP_NET_ADMIN | 1 << CAP_BPF), ("controller", 0), ("switch", 0)):
            status = dict(line.split(":\t", 1) for line in parts[part].splitlines() if ":\t" in line)
            self.assertEqual((int(status["CapEff"], 16), status["NoNewPrivs"], status["Seccomp"]), (kept, "1", "2"), part)
        self.assertIn("program_egress", parts["pins"])
        self.assertEqual(len(re.findall("Read-only file system|Permission denied", parts["writable"])), 5, parts["writable"])
        self.assertEqual(parts["alone"].split(), ["inactive"])
        self.assertNotIn("roce-te", parts["left"])
        self.assertEqual(parts["after"].split(), ["active", "inactive"])
        self.assertEqual(parts["denied"], "")


if __name__ == "__main__":
    unittest.main()
