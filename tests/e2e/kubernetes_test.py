"""deploy/kubernetes, rendered by kubectl, field by field."""

import pathlib
import unittest

from tests.e2e import kubernetes_case
from tests.e2e.kubernetes_case import value_of

# Of the candidate's plain path, measured (tests/gpu/RESULTS.md); other compositions take several times as long.
RELEASED_STEP_SECONDS = 13
# What a worker may take after its grace time: to stop within a step, hand back, sign off.
HAND_BACK_SECONDS = 10


class KubernetesTest(kubernetes_case.Case):
    def test_fields_of_the_overlays(self):
        for overlay in kubernetes_case.OVERLAYS:
            with self.subTest(overlay):
                objects = self.render(overlay)
                self.check_overlay(objects, overlay)

    def check_overlay(self, objects, overlay):
        for (kind, name), each in objects.items():
            if kind != "Namespace":
                self.assertEqual(each["metadata"]["namespace"], "plumbline", name)
        namespace = objects[("Namespace", "plumbline")]["metadata"]["labels"]
        self.assertEqual(namespace["pod-security.kubernetes.io/enforce"], "restricted")
        pods = self.pod_specs(objects)
        self.assertEqual(pods.keys(), {"plumbline-server", "plumbline-worker"})
        for name, pod in pods.items():
            self.assert_confined(name, pod)
            for container in pod["containers"]:
                self.assert_flags_exist(container)
                self.assertRegex(container["image"], r"^\S+/\S+:\S+$")

        stateful = objects[("StatefulSet", "plumbline-server")]["spec"]
        self.assertEqual(stateful["replicas"], 1)
        claims = [each["metadata"]["name"] for each in stateful["volumeClaimTemplates"]]
        self.assertEqual(claims, ["data", "backups"])
        self.assert_volumes_fit(pods["plumbline-server"], claims)
        self.assert_volumes_fit(pods["plumbline-worker"])
        for volume in pods["plumbline-server"]["volumes"] + pods["plumbline-worker"]["volumes"]:
            if "secret" in volume:
                self.assertIn(("Secret", volume["secret"]["secretName"]), objects)

        self.check_server(pods["plumbline-server"], objects)
        self.check_worker(pods["plumbline-worker"], objects, overlay)
        self.check_policies(objects)
        if overlay == "gpu":
            self.check_monitoring(objects)

    def check_probes(self, container, port):
        for probe in ("livenessProbe", "readinessProbe"):
            self.assertEqual(
                container[probe]["grpc"],
                {"port": port, "service": probe.replace("Probe", "")},
            )
        self.assertIn(port, [each["containerPort"] for each in container["ports"]])

    def check_server(self, pod, objects):
        (container,) = pod["containers"]
        arguments = container["args"]
        self.check_probes(container, int(value_of(arguments, "health").rsplit(":")[1]))
        self.assertGreater(container["startupProbe"]["failureThreshold"], 10)
        sleep = container["lifecycle"]["preStop"]["sleep"]["seconds"]
        self.assertGreater(pod["terminationGracePeriodSeconds"], sleep + 5)
        ports = {each["name"]: each["containerPort"] for each in container["ports"]}
        self.assertEqual(ports["grpc"], int(value_of(arguments, "listen").rsplit(":")[1]))
        self.assertEqual(ports["http"], int(value_of(arguments, "http").rsplit(":")[1]))
        service = objects[("Service", "plumbline-server")]["spec"]
        for port in service["ports"]:
            self.assertEqual(port["port"], ports[port["targetPort"]])
        self.assertEqual(
            objects[("StatefulSet", "plumbline-server")]["spec"]["serviceName"],
            objects[("Service", "plumbline-server-pods")]["metadata"]["name"],
        )

    def check_worker(self, pod, objects, overlay):
        (container,) = pod["containers"]
        arguments = container["args"]
        self.check_probes(container, int(value_of(arguments, "grpc").rsplit(":")[1]))
        grace = int(value_of(arguments, "grace"))
        self.assertGreater(grace, 4 * RELEASED_STEP_SECONDS)
        self.assertGreaterEqual(pod["terminationGracePeriodSeconds"], grace + HAND_BACK_SECONDS)
        host, port = value_of(arguments, "server").split(":")
        service = objects[("Service", host)]["spec"]
        self.assertIn(int(port), [each["port"] for each in service["ports"]])
        devices = {each["name"]: each.get("value") for each in container["env"]}
        gpus = container["resources"]["limits"].get("nvidia.com/gpu")
        self.assertEqual(gpus, 1 if overlay == "gpu" else None)
        self.assertEqual(devices["PLUMBLINE_DEVICE"], "cuda:0" if overlay == "gpu" else "cpu")
        budget = objects[("PodDisruptionBudget", "plumbline-worker")]["spec"]
        self.assertEqual(budget["maxUnavailable"], 1)
        self.assertEqual(
            budget["selector"], objects[("Deployment", "plumbline-worker")]["spec"]["selector"]
        )

    def check_policies(self, objects):
        everybody = objects[("NetworkPolicy", "plumbline-default-deny")]["spec"]
        self.assertEqual(everybody, {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]})
        for name in ("plumbline-server", "plumbline-worker"):
            policy = objects[("NetworkPolicy", name)]["spec"]
            self.assertEqual(
                policy["podSelector"]["matchLabels"], {"app.kubernetes.io/name": name}
            )
            for rule in policy["ingress"] + policy.get("egress", []):
                self.assertTrue(rule["ports"])
                self.assertTrue(rule.get("from") or rule.get("to"))

    def check_monitoring(self, objects):
        for name, port in (("plumbline-server", "http"), ("plumbline-worker", "metrics")):
            monitor = objects[("ServiceMonitor", name)]["spec"]
            self.assertEqual(monitor["jobLabel"], "app.kubernetes.io/name")
            chosen = [
                each
                for (kind, _), each in objects.items()
                if kind == "Service"
                and monitor["selector"]["matchLabels"].items() <= each["metadata"]["labels"].items()
            ]
            (service,) = chosen
            self.assertEqual(service["metadata"]["labels"]["app.kubernetes.io/name"], name)
            self.assertIn(port, [each["name"] for each in service["spec"]["ports"]])
            # One that is not ready is when it is wanted.
            self.assertTrue(service["spec"]["publishNotReadyAddresses"])
            (endpoint,) = monitor["endpoints"]
            self.assertEqual((endpoint["port"], endpoint["path"]), (port, "/metrics"))
        tls = objects[("ServiceMonitor", "plumbline-server")]["spec"]["endpoints"][0]["tlsConfig"]
        self.assertIn(("Secret", tls["ca"]["secret"]["name"]), objects)
        (shipped,) = kubernetes_case.read_yaml(pathlib.Path("deploy/prometheus/plumbline.rules.yml").read_text())
        self.assertEqual(objects[("PrometheusRule", "plumbline")]["spec"], shipped)

    def test_no_secret_is_committed(self):
        for path in pathlib.Path(kubernetes_case.FOLDER).rglob("*"):
            if path.is_file():
                text = path.read_text()
                self.assertNotRegex(text, r"BEGIN [A-Z ]*PRIVATE KEY|plumbline_[0-9a-f]{16}_", path)
                self.assertNotIn("kind: Secret\n", text, path)


if __name__ == "__main__":
    unittest.main()
