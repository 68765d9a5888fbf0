# SPDX-License-Identifier: Apache-2.0
"""The Kubernetes manifests, without a cluster: fields and values by a schema, and what the parts say of each other."""
import copy
import json
import re
import unittest
from pathlib import Path

import jsonschema
import yaml

from deployment import DEPLOY, VERSION, capabilities, unit

FOLDER = DEPLOY / "kubernetes"
SCHEMA = json.loads((Path(__file__).resolve().parent / "kubernetes_schema.json").read_text())
WORKLOADS = ("DaemonSet", "StatefulSet")
# What an operator makes, by the commands of deploy/README.md.
OPERATORS = {("ConfigMap", "te-controller-topology"), ("Secret", "te-controller-certificates"),
             ("Secret", "roce-te-agent-certificates")}


def manifests():
    return [document for path in sorted(FOLDER.glob("*.yaml")) for document in yaml.safe_load_all(path.read_text())]


def of(kind, name):
    return next(document for document in manifests() if (document["kind"], document["metadata"]["name"]) == (kind, name))


def pod(workload):
    return workload["spec"]["template"]["spec"]


def problems(document):
    return [error.json_path + ": " + error.message
            for error in jsonschema.Draft202012Validator(SCHEMA).iter_errors(document)]


class Schema(unittest.TestCase):
    def test_is_itself_sound(self):
        jsonschema.Draft202012Validator.check_schema(SCHEMA)

    def test_takes_every_manifest(self):
        documents = manifests()
        self.assertEqual({document["kind"] for document in documents},
                         {"Namespace", "ConfigMap", "Service", *WORKLOADS})
        for document in documents:
            with self.subTest(kind=document["kind"], name=document["metadata"]["name"]):
                self.assertEqual(problems(document), [])

    def test_refuses_what_kubernetes_refuses(self):
        def set_at(path, value):
            def change(document):
                *way, last = path
                for step in way:
                    document = document[step]
                document[last] = value
            return change

        template = ("spec", "template", "spec")
        for change in (set_at((*template, "hostNetwrok"), True), set_at((*template, "hostNetwork"), "yes"),
                       set_at((*template, "containers", 0, "securityContext", "capabilities", "add"), ["CAP_BPF"]),
                       set_at((*template, "volumes", 0), {"name": "x"}), set_at(("apiVersion",), "apps/v1beta1"),
                       set_at((*template, "containers", 0, "volumeMounts", 0, "mountPath"), "config"),
                       set_at(("metadata", "name"), "Agent"), set_at((*template, "containers"), []),
                       set_at((*template, "containers", 0, "resources", "limits", "memory"), "512MB")):
            document = copy.deepcopy(of("DaemonSet", "roce-te-agent"))
            change(document)
            self.assertTrue(problems(document))


class References(unittest.TestCase):
    def workloads(self):
        return [document for document in manifests() if document["kind"] in WORKLOADS]

    def test_selectors_find_their_pods(self):
        for workload in self.workloads():
            labels = workload["spec"]["template"]["metadata"]["labels"].items()
            self.assertLessEqual(workload["spec"]["selector"]["matchLabels"].items(), labels)
        service = of("Service", "te-controller")["spec"]
        controller = of("StatefulSet", "te-controller")["spec"]
        self.assertLessEqual(service["selector"].items(), controller["template"]["metadata"]["labels"].items())
        self.assertEqual({port["targetPort"] for port in service["ports"]},
                         {port["name"] for port in controller["template"]["spec"]["containers"][0]["ports"]})
        self.assertEqual(controller["serviceName"], "te-controller")

    def test_every_mount_has_its_volume_and_every_volume_its_source(self):
        made = {(document["kind"], document["metadata"]["name"]) for document in manifests()} | OPERATORS
        for workload in self.workloads():
            volumes = pod(workload).get("volumes", [])
            claims = {claim["metadata"]["name"] for claim in workload["spec"].get("volumeClaimTemplates", [])}
            mounted = {mount["name"] for container in pod(workload)["containers"] + pod(workload).get("initContainers", [])
                       for mount in container["volumeMounts"]}
            self.assertEqual(mounted, {volume["name"] for volume in volumes} | claims)
            for volume in volumes:
                if "configMap" in volume:
                    self.assertIn(("ConfigMap", volume["configMap"]["name"]), made)
                if "secret" in volume:
                    self.assertIn(("Secret", volume["secret"]["secretName"]), made)

    def test_variables_in_mounts_are_set(self):
        for workload in self.workloads():
            for container in pod(workload)["containers"]:
                used = {name for mount in container["volumeMounts"]
                        for name in re.findall(r"\$\((\w+)\)", mount.get("subPathExpr", ""))}
                self.assertLessEqual(used, {entry["name"] for entry in container.get("env", [])})

    def test_all_are_in_the_namespace_and_of_this_version(self):
        for document in manifests():
            if document["kind"] != "Namespace":
                self.assertEqual(document["metadata"]["namespace"], of("Namespace", "roce-te")["metadata"]["name"])
        images = {container["image"] for workload in self.workloads()
                  for container in pod(workload)["containers"] + pod(workload).get("initContainers", [])}
        self.assertEqual(images, {f"roce-te:{VERSION}"})

    def test_files_that_a_configuration_names_are_mounted(self):
        for workload, config in ((of("StatefulSet", "te-controller"), of("ConfigMap", "te-controller")),
                                 (of("DaemonSet", "roce-te-agent"), of("ConfigMap", "roce-te-agent"))):
            mounts = {mount["mountPath"] for mount in pod(workload)["containers"][0]["volumeMounts"]}
            text = "\n".join(config["data"].values())
            named = set(re.findall(r"(?<![\w.])/[\w./-]+", text))
            self.assertTrue(named)
            for path in named:
                self.assertTrue(any(path == mount or path.startswith(mount + "/") for mount in mounts), path)


class Privileges(unittest.TestCase):
    def test_the_agent_has_the_capabilities_of_its_unit_and_is_not_privileged(self):
        security = pod(of("DaemonSet", "roce-te-agent"))["containers"][0]["securityContext"]
        self.assertEqual(set(security["capabilities"]["add"]), capabilities(unit("roce-te-agent")))
        self.assertEqual(security["capabilities"]["drop"], ["ALL"])
        self.assertFalse(security["privileged"])

    def test_the_controller_has_none_and_is_not_root(self):
        template = pod(of("StatefulSet", "te-controller"))
        security = template["containers"][0]["securityContext"]
        self.assertEqual(security["capabilities"], {"drop": ["ALL"]})
        self.assertFalse(security["allowPrivilegeEscalation"])
        self.assertTrue(template["securityContext"]["runAsNonRoot"])


if __name__ == "__main__":
    unittest.main()
