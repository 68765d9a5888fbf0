# SPDX-License-Identifier: Apache-2.0
"""What tests of one agent share: a lab with a controller of the test's own, and agents that the test starts."""
import fcntl
import socket
import struct
import time
from contextlib import contextmanager

from agent_wire import FakeController, encode, in_netns
from capture import capture
from certificates import Authority
from icrc import destination_qpn, roce_packets, source_port
from product import Program
from support import PROGRAMS, make_lab
from te_lab import wait_for

SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1


class Interface:
    """Sets an interface up and down without starting a program: the time of the change is known."""

    def __init__(self, lab, node, name):
        self.name = name.encode()
        self.socket = in_netns(lab.netns(node), lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))

    def set_up(self, up):
        """Returns when the change began, in seconds of the monotonic clock."""
        flags = struct.unpack("16sh", fcntl.ioctl(self.socket, SIOCGIFFLAGS, struct.pack("16sh", self.name, 0)))[1]
        request = struct.pack("16sh", self.name, flags | IFF_UP if up else flags & ~IFF_UP)
        begin = time.monotonic()
        fcntl.ioctl(self.socket, SIOCSIFFLAGS, request)
        return begin


class Stage:
    """A lab with a controller of the test's own, and agents that the test starts."""

    def __init__(self, lab):
        self.lab = lab
        self.directory = lab.directory / "agents"
        self.directory.mkdir()
        self.authority = Authority(self.directory / "certificates")
        self.controller = FakeController(lab.netns("mgmt"), lab.controller, self.authority)
        self.agents = []

    def config(self, node, role="host", extra=""):
        certificate, key = self.authority.issue(node)
        path = self.directory / f"{node}.yaml"
        path.write_text(f"""node: {node}
role: {role}
controllers: ["{self.lab.controller_endpoint()}"]
certificate: {certificate}
key: {key}
ca: {self.authority.certificate}
bpffs: {self.lab.directory}/bpffs
{extra}
""")
        return path

    def start(self, node, config, command=()):
        """Starts an agent, without waiting for it."""
        log = self.directory / f"{node}-{len(self.agents)}.log"
        self.agents.append(Program(self.lab, node, [*command, PROGRAMS / "host-agent", "run", "--config", config], log))
        return self.agents[-1]

    def session_of(self, node, role="host", extra="", command=()):
        """Starts an agent; returns it and its first session."""
        sessions = len(self.controller.sessions)
        agent = self.start(node, self.config(node, role, extra), command)
        wait_for(agent.is_ready, 15, f"{agent.name} did not get ready")
        return agent, self.controller.wait_session(sessions + 1)

    def end(self):
        for agent in self.agents:
            agent.end()


@contextmanager
def stage(**spec):
    with make_lab(**{"hosts": 2, "leaves": 1, "spines": 2, **spec}) as lab:
        made = Stage(lab)
        with made.controller:
            try:
                yield made
            finally:
                made.end()


HOST = "interfaces: [eth0]\nqp_source: none"


def flow_key(lab, source, destination, qpn):
    """An encoded FlowKey of a flow that leaves host `source` by eth0."""
    ifindex = int(lab.exec(source, ["cat", "/sys/class/net/eth0/ifindex"]))
    addresses = [socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)
                 for address in (lab.attachment(source)[2], lab.attachment(destination)[2])]
    return encode((1, ifindex), (2, addresses[0]), (3, addresses[1]), (4, qpn))


def ports_on_wire(lab, host, seconds=0.5):
    """{destination QPN: source ports} of the RoCE packets that leave `host`, seen at its leaf."""
    leaf, port, _ = lab.attachment(host)
    path = lab.directory / f"wire-{host}.pcap"
    capture(lab, leaf, port, path, seconds=seconds).wait(15)
    ports = {}
    for packet in roce_packets(path):
        ports.setdefault(destination_qpn(packet), set()).add(source_port(packet))
    return ports
