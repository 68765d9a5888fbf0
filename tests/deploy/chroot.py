# SPDX-License-Identifier: Apache-2.0
"""A fresh Debian in a folder, made with debootstrap from where this machine's apt fetches its packages."""
import shutil
import subprocess
import tempfile
from pathlib import Path

PART_OF_APT = ("sources.list", "sources.list.d", "apt.conf.d", "auth.conf.d", "preferences.d", "keyrings", "trusted.gpg.d")
# Of its own mount, process and network namespaces: nothing is left mounted, running or listening when the command ends.
ENTER = ["unshare", "--mount", "--pid", "--net", "--fork", "--kill-child", "sh", "-ec",
         'ip link set lo up; mount -t proc proc "$1/proc"; cd /; exec chroot "$@"', "sh"]
WITH_NETWORK = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-ec",
                'mount -t proc proc "$1/proc"; cd /; exec chroot "$@"', "sh"]


class Chroot:
    """Use it in a `with`: leaving removes it."""

    def __init__(self, suite="bookworm"):
        self.path = Path(tempfile.mkdtemp(prefix="te-chroot-"))
        try:
            self._fill(suite)
        except BaseException:
            self.remove()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()

    def remove(self):
        shutil.rmtree(self.path)

    def _fill(self, suite):
        self.path.chmod(0o755)  # its users are others than ours
        self._checked(["debootstrap", "--variant=minbase", suite, self.path, archive_of(suite)], 300)
        for name in PART_OF_APT:
            source, target = Path("/etc/apt") / name, self.path / "etc/apt" / name
            if target.is_dir():
                shutil.rmtree(target)
            target.unlink(missing_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, symlinks=True)
            elif source.exists():
                shutil.copy(source, target)
        shutil.copy("/etc/resolv.conf", self.path / "etc/resolv.conf")
        (self.path / "etc/dpkg/dpkg.cfg.d/unsafe-io").write_text("force-unsafe-io\n")
        self.run(["apt-get", "update", "-qq"], network=True)

    def run(self, command, network=False, check=True, timeout=300):
        """Runs a command in it; returns what subprocess.run does. Its network is a loopback of its own, or this machine's."""
        enter = WITH_NETWORK if network else ENTER
        environment = ["env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8"]
        return self._checked([*enter, self.path, *environment, *command], timeout, check)

    @staticmethod
    def _checked(command, timeout, check=True):
        done = subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False, timeout=timeout)
        if check and done.returncode != 0:
            raise AssertionError(f"{command} ended with {done.returncode}:\n" + "\n".join(done.stdout.splitlines()[-30:]))
        return done

    def files(self):
        """Every path in it, without what the kernel shows in /proc and /sys."""
        hidden = ["(", "-path", "./proc", "-o", "-path", "./sys", ")", "-prune"]
        listed = subprocess.run(["find", ".", "-xdev", *hidden, "-o", "-print"], cwd=self.path, stdout=subprocess.PIPE, text=True,
                                check=True).stdout
        return set(listed.split("\n"))


def archive_of(suite):
    """Where this machine's apt fetches a suite's main component."""
    targets = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME) $(COMPONENT) $(CREATED_BY)"],
                             stdout=subprocess.PIPE, text=True, check=True).stdout
    for line in targets.splitlines():
        uri, *what = line.split()
        if what == [suite, "main", "Packages"]:
            return uri
    raise AssertionError(f"apt has no source for {suite} main")
