# SPDX-License-Identifier: Apache-2.0
"""Hosts as they are in clusters: the quickstart's ring with several NICs a host, and without IPv4."""
import json
import os
import re
import subprocess
import time
import unittest
from pathlib import Path

import path_map
from agent_stage import stage
from agent_wire import SOURCES, decode
from product_test import scene
from support import PROGRAMS
from te_lab import wait_for


class Ring(unittest.TestCase):
    def converge(self, spec, look_at_wire=lambda here: None, **options):
        """The ring gets its share, nothing is lost, and what is shown is what is on the wire."""
        with scene(spec=spec, **options) as here:
            here.product.wait_for_first_reports(len(here.flows))
            begin = time.monotonic()
            here.product.act(True)
            took = here.wait_converged(begin)
            here.wait_settled()
            self.assertLessEqual(took, 10)
            look_at_wire(here)
            shown = {(flow["source"], flow["destination"], flow["destination_qpn"]): flow
                     for flow in here.shown_flows() if flow["kind"] == "data"}
            self.assertEqual(len(shown), len(here.flows))
            taken = path_map.observe(here.lab, here.flows)
            for flow, spine in taken.items():
                path = [each["path"] for key, each in shown.items() if key[2] == flow.destination_qpn
                        and each["source_node"] == flow.source]
                self.assertEqual(len(path), 1, flow)
                self.assertIn(spine, path[0], flow)
            self.assertEqual(len(taken), len(here.flows))
            here.traffic.stop()
            here.endpoints.update()
            self.assertEqual(here.endpoints.count("messages_lost"), 0)
            return here.status()["moves_total"]

    def test_two_nics_a_host(self):
        self.assertGreater(self.converge({"nics": 2, "leaves": 4}), 0)

    def test_two_nics_a_host_over_ipv6(self):
        self.assertGreater(self.converge({"nics": 2, "leaves": 4, "family": 6}), 0)

    def test_nothing_but_ipv6(self):
        """Neither the fabric nor the controller's session has an IPv4 address to fall back to."""
        def look(lab):
            for node in (*lab.nodes, "mgmt"):
                addresses = json.loads(lab.exec(node, ["ip", "-json", "-4", "address", "show"]))
                self.assertEqual([each["ifname"] for each in addresses if each.get("addr_info")], ["lo"], node)
            self.assertIn(":", lab.controller)

        self.assertGreater(self.converge({"family": 6}, prepare=look), 0)

    def converge_tagged(self, vlan, tags, **spec):
        """The agents are told of the NICs alone; addresses, and so probes, are on their VLANs."""
        def look(lab):
            interface = "eth0." + vlan.replace(",", ".")
            for host in lab.names("host"):
                links = json.loads(lab.exec(host, ["ip", "-json", "address", "show"]))
                addressed = {link["ifname"] for link in links if any(each["scope"] == "global" for each in link["addr_info"])}
                self.assertEqual(addressed - {"mgmt0"}, {interface.replace("eth0", f"eth{nic}") for nic in range(spec.get("nics", 1))}, host)

        def look_at_wire(here):
            fields = [word for name in ("frame.protocols", "vlan.id") for word in ("-e", name)]
            seen = here.lab.exec("h1", ["timeout", "20", "tshark", "-i", "eth0", "-c", "20", "-f", "vlan", "-T", "fields", *fields])
            frames = [line.split("\t") for line in seen.splitlines()]
            self.assertEqual(len(frames), 20, seen)
            for protocols, innermost in frames:
                self.assertRegex(protocols, rf"^eth:ethertype:{tags}:ethertype:ip")
                self.assertEqual(innermost, vlan.split(",")[-1])

        self.assertGreater(self.converge({"vlan": vlan, **spec}, prepare=look, look_at_wire=look_at_wire), 0)

    def test_behind_a_vlan_tag(self):
        self.converge_tagged("100", "vlan")

    def test_behind_two_vlan_tags(self):
        self.converge_tagged("100,200", "ieee8021ad:ethertype:vlan")

    def test_two_nics_a_host_behind_a_vlan_tag_over_ipv6(self):
        self.converge_tagged("4094", "vlan", nics=2, leaves=4, family=6)

    def test_nics_in_another_namespace_than_the_agent(self):
        def look(lab):
            for host in lab.names("host"):
                def names(management):
                    links = json.loads(subprocess.run(["ip", "-n", lab.netns(host, management), "-j", "link"], check=True,
                                                      capture_output=True, text=True).stdout)
                    return {link["ifname"] for link in links} - {"lo"}
                self.assertEqual((names(True), names(False)), ({"mgmt0"}, {"eth0"}), host)

        self.assertGreater(self.converge({"nic_netns": True}, prepare=look), 0)

    def test_nics_in_another_namespace_by_clsact(self):
        self.assertGreater(self.converge({"nic_netns": True}, attach="clsact"), 0)

    def test_two_nics_in_another_namespace_than_the_agent(self):
        self.assertGreater(self.converge({"nic_netns": True, "nics": 2, "leaves": 4}), 0)


class AgentOfAnotherNamespace(unittest.TestCase):
    def test_killed_leaves_its_programs_to_the_next_one_and_cleanup_removes_them(self):
        for attach in ("tcx", "clsact"):
            with self.subTest(attach=attach), scene(spec={"nic_netns": True}, attach=attach) as here:
                here.act_until_converged()
                here.wait_settled()
                host, flow = next((flow["source_node"], flow) for flow in here.steered().values() if flow["kind"] == "data")
                port, qpn = flow["wire_port"], flow["destination_qpn"]
                sent_from = next(each.source_port for each in here.flows if each.destination_qpn == qpn)
                agent = here.product.agents[host]
                agent.process.kill()
                agent.process.wait()
                self.assertEqual(here.ports_on_wire(host)[qpn], {port})
                agent = here.product.agents[host] = here.product.start_agent(host)
                wait_for(agent.is_ready, 15, "the new agent did not get ready")
                here.product.wait_for_first_reports(len(here.flows))
                self.assertEqual(here.ports_on_wire(host)[qpn], {port})
                self.assertEqual(here.endpoints.update().count("messages_lost"), 0)
                agent.end()
                cleanup = [PROGRAMS / "host-agent", "cleanup", "--config", here.product.directory / f"{host}.yaml"]
                self.assertEqual(here.lab.popen(host, cleanup, management=True).wait(15), 0)
                self.assertFalse((here.lab.directory / "bpffs" / "roce-te" / host).exists())
                self.assertEqual(here.ports_on_wire(host)[qpn], {sent_from})
                self.assertNotIn("clsact", here.lab.exec(host, ["tc", "qdisc", "show"]))

    def test_attaches_to_a_nic_made_later_and_goes_on_without_a_namespace_that_is_not_there(self):
        for attach in ("tcx", "clsact"):
            with self.subTest(attach=attach), stage(nic_netns=True) as here:
                pod = f"/run/netns/{here.lab.netns('h1')}"
                nics = (f"{{name: eth0, netns: {pod}}}, {{name: late0, netns: {pod}}}, "
                        f"{{name: eth0, netns: {pod}-none, port: eth9}}")
                _, session = here.session_of("h1", extra=f"interfaces: [{nics}]\nqp_source: none\nattach: {attach}")
                here.lab.exec("h1", ["ip", "link", "add", "late0", "type", "veth", "peer", "name", "late1"])
                session.wait(SOURCES, lambda update: any(
                    f"late0 in {pod}: {attach}".encode() in reason and f"open network namespace {pod}-none".encode() in reason
                    for reason in (decode(source).get(3, [b""])[0] for source in update[1])))
                doctor = [PROGRAMS / "host-agent", "doctor", "--config", here.directory / "h1.yaml"]
                with here.lab.popen("h1", doctor, management=True, stdout=subprocess.PIPE, text=True) as asked:
                    told = asked.communicate(timeout=15)[0]
                self.assertRegex(told, rf"links +on +2 watched.*open network namespace {pod}-none")
                self.assertRegex(told, rf"tc +off +interface eth0 in {pod}-none: open network namespace")
                self.assertEqual(asked.returncode, 1)


class EndOfANamespace(unittest.TestCase):
    @staticmethod
    def cables(lab):
        """Names of the cables whose ends are there; that of the first host's first NIC is c1."""
        return {link["ifname"] for link in json.loads(lab.exec("cables", ["ip", "-j", "link"]))}

    def test_agent_lives_and_reports_the_nic_as_gone(self):
        with scene(spec={"nic_netns": True}) as here:
            here.product.wait_for_first_reports(len(here.flows))
            here.traffic.stop()
            agent = here.product.agents["h1"]
            pod = here.lab.netns("h1")
            number = os.stat(f"/run/netns/{pod}").st_ino
            self.assertIn("c1", self.cables(here.lab))
            subprocess.run(["ip", "netns", "del", pod], check=True)
            wait_for(lambda: f"network namespace /run/netns/{pod} ended" in agent.log.read_text(), 10,
                     "the agent did not say that the namespace ended")

            def told():
                here.product.check_alive()
                node = next(node for node in here.product.get("/v1/nodes")["nodes"] if node["name"] == "h1")
                links = here.product.get("/v1/links")["links"]
                down = {link["state"] for link in links if "h1:eth0" in (link["from"], link["to"])}
                return node.get("agent_connected") and down and "healthy" not in down

            wait_for(told, 10, "the controller was not told that the NIC is gone")
            reason = rf"\bh1\b.*\btc off \(.*/run/netns/{pod} ended; restart the agent"
            tectl = [PROGRAMS / "tectl", "--api", f"unix:{here.product.api_socket}", "nodes"]
            wait_for(lambda: re.search(reason, subprocess.run(tectl, check=True, capture_output=True, text=True).stdout), 10,
                     "tectl does not say why h1 sees nothing")
            threads = Path(f"/proc/{agent.process.pid}/task").glob("*/ns/net")
            self.assertNotIn(number, {thread.stat().st_ino for thread in threads})
            # The kernel ends a namespace, and the veth in it with its peer, once nobody holds it.
            wait_for(lambda: "c1" not in self.cables(here.lab), 10, "something holds the namespace still")


if __name__ == "__main__":
    unittest.main()
