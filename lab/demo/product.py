# SPDX-License-Identifier: Apache-2.0
"""The product in a lab: te-controller in the management namespace, one host-agent a host, and the controller's API."""
import http.client
import json
import socket
import subprocess
import time

from certificates import Authority
from te_lab import LabError, wait_for


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path):
        super().__init__("localhost", timeout=5)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Program:
    """A program of ours in a node's management namespace, with a log file."""

    def __init__(self, lab, node, command, log):
        self.name = f"{command[0].name} on {node}"
        self.log = log
        with open(log, "wb") as output:
            self.process = lab.popen(node, command, management=True, stdin=subprocess.DEVNULL, stdout=output, stderr=output)

    def is_ready(self):
        if self.process.poll() is not None:
            raise LabError(f"{self.name} ended with code {self.process.returncode}:\n{self.log_end()}")
        return "ready" in self.log.read_text(errors="replace")

    def log_end(self, lines=12):
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def end(self, seconds=5):
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Product:
    """Use it in a `with` inside that of its lab: leaving ends every program."""

    def __init__(self, lab, programs, qp_source="file", attach="auto", log="info", extra="", switch_agents=False, state=None):
        """`programs`: directory of te-controller and host-agent; `qp_source`: file, none or netlink; `extra`: YAML that is
        added to the controller's configuration; `switch_agents`: the switches have agents too; `state`: file of the controller's
        memory."""
        self.lab = lab
        self.directory = lab.directory / "product"
        self.directory.mkdir(exist_ok=True)
        self.programs = programs
        self.api_socket = self.directory / "api.sock"
        self.qp_source = qp_source
        self.attach = attach
        self.log_level = log
        self.extra = extra
        self.state = state or self.directory / "state.db"
        self.switch_agents = switch_agents
        self.authority = Authority(self.directory / "certificates")
        self.issued = {}        # name -> (certificate, key): a program that comes back has what it had
        self.controller = None
        self.agents = {}

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *_):
        self.end()

    def start(self):
        self.start_controller()
        for host in self.lab.names("host"):
            self.agents[host] = self.start_agent(host)
        if self.switch_agents:
            self.start_switch_agents()
        for agent in self.agents.values():
            wait_for(agent.is_ready, 15, f"{agent.name} did not get ready")

    def switches(self):
        return self.lab.names("leaf") + self.lab.names("spine")

    def start_switch_agents(self):
        self.switch_agents = True
        for switch in self.switches():
            self.agents[switch] = self.start_agent(switch)

    def wait_for_switch_agents(self, seconds=15):
        """Until each is connected and has told of its links."""
        def all_told():
            self.check_alive()
            nodes = {node["name"]: node for node in self.get("/v1/nodes")["nodes"]}
            links = self.get("/v1/links")["links"]
            switches = set(self.switches())
            between = [link for link in links if {link["from"].split(":")[0], link["to"].split(":")[0]} <= switches]
            return (all(nodes[switch].get("agent_connected") for switch in switches) and
                    all(link["state"] == "healthy" for link in between))

        wait_for(all_told, seconds, "not every switch's agent told of its links in time")

    def end_switch_agents(self):
        self.switch_agents = False
        ending = [self.agents.pop(switch) for switch in self.switches() if switch in self.agents]
        for agent in ending:
            agent.process.terminate()
        for agent in ending:
            agent.end()

    def end(self):
        running = [program for program in [*self.agents.values(), self.controller] if program]
        for program in running:
            if program.process.poll() is None:
                program.process.terminate()
        for program in running:
            program.end()

    def credentials(self, name):
        if name not in self.issued:
            self.issued[name] = self.authority.issue(name)
        return self.issued[name]

    def start_controller(self):
        certificate, key = self.credentials("te-controller")
        config = self.directory / "controller.yaml"
        config.write_text(f"""topology: {self.lab.directory}/topology.yaml
state: {self.state}
agents: {{listen: "{self.lab.controller_endpoint()}", certificate: {certificate}, key: {key}, ca: {self.authority.certificate}}}
api: {{unix: {self.api_socket}}}
metrics: {{listen: "127.0.0.1:7412"}}
mode: observe
log: {self.log_level}
{self.extra}""")
        self.controller = Program(self.lab, "mgmt", [self.programs / "te-controller", "--config", config],
                                  self.directory / "controller.log")
        wait_for(self.controller.is_ready, 15, f"{self.controller.name} did not get ready")

    def start_agent(self, node):
        certificate, key = self.credentials(node)
        config = self.directory / f"{node}.yaml"
        config.write_text(f"""node: {node}
controllers: ["{self.lab.controller_endpoint()}"]
certificate: {certificate}
key: {key}
ca: {self.authority.certificate}
log: {self.log_level}
""" + (self.host_part(node) if node in self.lab.names("host") else "role: switch\n"))
        return Program(self.lab, node, [self.programs / "host-agent", "run", "--config", config], self.directory / f"{node}.log")

    def host_part(self, host):
        source = f"file:{self.lab.directory}/qp/{host}.json" if self.qp_source == "file" else self.qp_source
        names = [f"eth{nic}" for nic in range(self.lab.spec.get("nics", 1))]
        if self.lab.spec.get("nic_netns"):
            names = [f"{{name: {name}, netns: /run/netns/{self.lab.netns(host)}}}" for name in names]
        interfaces = ", ".join(names)
        return f"""interfaces: [{interfaces}]
bpffs: {self.lab.directory}/bpffs
qp_source: "{source}"
attach: {self.attach}
"""

    def call(self, method, path):
        connection = UnixConnection(self.api_socket)
        try:
            connection.request(method, path)
            reply = connection.getresponse()
            body = json.loads(reply.read() or b"{}")
        except (OSError, http.client.HTTPException, ValueError) as problem:
            raise LabError(f"{method} {path} of te-controller: {problem}\n{self.controller.log_end()}") from problem
        finally:
            connection.close()
        if reply.status != 200:
            raise LabError(f"{method} {path} of te-controller: {reply.status} {body.get('error', '')}")
        return body

    def get(self, path):
        return self.call("GET", path)

    def act(self, on=True):
        return self.call("POST", f"/v1/act?on={'true' if on else 'false'}")

    def check_alive(self):
        """LabError when one of the programs has ended."""
        for program in [self.controller, *self.agents.values()]:
            program.is_ready()

    def wait_for_first_reports(self, flows, seconds=20):
        """Waits until every agent is connected and has reported, and the controller knows of `flows` flows. Returns when
        that was, in seconds of the monotonic clock."""

        def all_reported():
            self.check_alive()
            agents = [node for node in self.get("/v1/nodes").get("nodes", []) if node.get("kind") == "host"]
            return (all(node.get("agent_connected") and node.get("flows", 0) > 0 for node in agents) and
                    self.get("/v1/status").get("elastic_flows", 0) >= flows)

        wait_for(all_reported, seconds, "not every agent reported its flows in time")
        return time.monotonic()
