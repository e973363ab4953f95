"""deploy/kubernetes: rendered by kubectl, field by field, and its daemons started with exactly these arguments."""

import json
import os
import pathlib
import re
import shutil
import ssl
import subprocess
import unittest
import urllib.request

from tests.e2e import harness

FOLDER = "deploy/kubernetes"
OVERLAYS = ("local", "gpu")
# Of the candidate's plain path, measured (tests/gpu/RESULTS.md); other compositions take several times as long.
RELEASED_STEP_SECONDS = 13
# What a worker may take after its grace time: to stop within a step, hand back, sign off.
HAND_BACK_SECONDS = 10
# Of the image, not of a volume: the dashboard's files.
IMAGE_FOLDER = "/usr/share/plumbline"
PROGRAMS = {"plumbline-server": harness.SERVER, "plumbline-worker": harness.WORKER}
# Debian's own, which has python3-yaml.
PYTHON = "/usr/bin/python3"


def has_yaml():
    return os.path.exists(PYTHON) and not subprocess.run(
        [PYTHON, "-c", "import yaml"], stderr=subprocess.DEVNULL, check=False
    ).returncode


def read_yaml(text):
    """The documents."""
    script = "import json,sys,yaml; print(json.dumps(list(yaml.safe_load_all(sys.stdin))))"
    ended = subprocess.run(
        [PYTHON, "-c", script], input=text, stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(ended.stdout)


def value_of(arguments, flag):
    (value,) = [each.split("=", 1)[1] for each in arguments if each.startswith(f"--{flag}=")]
    return value


@unittest.skipUnless(shutil.which("kubectl"), "kubectl (Debian: kubernetes-client) is not installed")
@unittest.skipUnless(has_yaml(), "python3-yaml is not installed")
class KubernetesTest(harness.Case):
    def setUp(self):
        super().setUp()
        # As an operator has it: a copy, with the secrets that the overlays are to have.
        self.manifests = self.path("kubernetes")
        shutil.copytree(FOLDER, self.manifests)
        programs = self.path("bin")
        os.mkdir(programs)
        os.symlink(harness.CLIENT, os.path.join(programs, "plumbline"))
        for overlay in OVERLAYS:
            ended = subprocess.run(
                ["./make_secrets.sh", f"{overlay}/secrets", "localhost", "127.0.0.1"],
                cwd=self.manifests,
                env=dict(self.environment, PATH=f"{programs}:{os.environ['PATH']}"),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            self.assertEqual(ended.returncode, 0, ended.stdout)
            # Where each token is, and nothing that says it stands beneath.
            names = ("admin", "submitter", "worker")
            said = [f"{overlay}/secrets/{name}.token: the token of {name}, kept nowhere else" for name in names]
            self.assertEqual(ended.stdout.splitlines(), said)

    def render(self, overlay):
        """{(kind, name): object}"""
        ended = subprocess.run(
            ["kubectl", "kustomize", os.path.join(self.manifests, overlay)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=dict(self.environment, HOME=self.folder, KUBECONFIG="/nonexistent"),
            check=False,
        )
        self.assertEqual(ended.returncode, 0, ended.stderr)
        objects = read_yaml(ended.stdout)
        found = {(each["kind"], each["metadata"]["name"]): each for each in objects}
        self.assertEqual(len(found), len(objects))
        return found

    @staticmethod
    def pod_specs(objects):
        return {
            name: each["spec"]["template"]["spec"]
            for (_, name), each in objects.items()
            if "template" in each.get("spec", {})
        }

    def assert_confined(self, name, pod):
        self.assertTrue(pod["securityContext"]["runAsNonRoot"], name)
        self.assertGreater(pod["securityContext"]["runAsUser"], 0, name)
        self.assertEqual(pod["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"}, name)
        self.assertFalse(pod["automountServiceAccountToken"], name)
        # A Service called plumbline-server would set variables that the daemons read.
        self.assertFalse(pod["enableServiceLinks"], name)
        for container in pod.get("initContainers", []) + pod["containers"]:
            context = container["securityContext"]
            self.assertFalse(context["allowPrivilegeEscalation"], name)
            self.assertTrue(context["readOnlyRootFilesystem"], name)
            self.assertEqual(context["capabilities"], {"drop": ["ALL"]}, name)
            self.assertNotIn("privileged", context)
            resources = container["resources"]
            self.assertIn("memory", resources["requests"], name)
            self.assertIn("memory", resources["limits"], name)

    def assert_flags_exist(self, container):
        (command,) = container["command"]
        program = harness.Ended(
            subprocess.run(
                [PROGRAMS[command], "--help"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
        )
        self.assertEqual(program.status, 0, program)
        for argument in container["args"]:
            flag = argument.split("=", 1)[0]
            self.assertRegex(program.out, rf"(?m)(^|[\s,]){re.escape(flag)}([\s,=]|$)", argument)
            for variable in re.findall(r"\$\((\w+)\)", argument):
                self.assertIn(variable, [each["name"] for each in container["env"]])
        for variable in container.get("env", []):
            if variable["name"].startswith("PLUMBLINE_"):
                self.assertIn(variable["name"], program.out)

    def assert_volumes_fit(self, pod, claims=()):
        """Every file that an argument names lies on a volume; secrets whole, read-only, for the pod's group."""
        volumes = {each["name"]: each for each in pod.get("volumes", [])}
        for container in pod.get("initContainers", []) + pod["containers"]:
            mounts = {each["mountPath"]: each for each in container["volumeMounts"]}
            for argument in container["args"]:
                value = argument.split("=", 1)[-1]
                if value.startswith("/") and not value.startswith(IMAGE_FOLDER + "/"):
                    within = [path for path in mounts if (value + "/").startswith(path + "/")]
                    self.assertTrue(within, argument)
            for mount in mounts.values():
                self.assertNotIn("subPath", mount)
                volume = volumes.get(mount["name"])
                if volume is None:
                    self.assertIn(mount["name"], claims)
                elif "secret" in volume:
                    self.assertTrue(mount["readOnly"])
                    self.assertEqual(volume["secret"]["defaultMode"], 0o440)
        if any("secret" in volume for volume in volumes.values()):
            self.assertIn("fsGroup", pod["securityContext"])

    def test_fields_of_the_overlays(self):
        for overlay in OVERLAYS:
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
        (shipped,) = read_yaml(pathlib.Path("deploy/prometheus/plumbline.rules.yml").read_text())
        self.assertEqual(objects[("PrometheusRule", "plumbline")]["spec"], shipped)

    def test_no_secret_is_committed(self):
        for path in pathlib.Path(FOLDER).rglob("*"):
            if path.is_file():
                text = path.read_text()
                self.assertNotRegex(text, r"BEGIN [A-Z ]*PRIVATE KEY|plumbline_[0-9a-f]{16}_", path)
                self.assertNotIn("kind: Secret\n", text, path)

    def arguments(self, container, places):
        """As the kubelet would pass them, here: mounted folders are `places`', ports are free ones."""
        environment = {each["name"]: each.get("value", each["name"]) for each in container.get("env", [])}
        found = []
        for argument in container["args"]:
            argument = re.sub(r"\$\((\w+)\)", lambda match: environment[match[1]], argument)
            argument = re.sub(r"=0\.0\.0\.0:\d+$", "=0.0.0.0:0", argument)
            for mount, place in places.items():
                argument = argument.replace(f"={mount}/", f"={place}/")
            found.append(argument)
        return found

    def mount_secret(self, name, objects, folder):
        """As a kubelet does: files are links to links, and all are replaced at once."""
        files = objects[("Secret", name)]["data"]
        version = f"..{len(os.listdir(folder)) if os.path.exists(folder) else 0}"
        os.makedirs(os.path.join(folder, version))
        script = "import base64,sys; sys.stdout.buffer.write(base64.b64decode(sys.stdin.read()))"
        for file, content in files.items():
            decoded = subprocess.run(
                [PYTHON, "-c", script], input=content.encode(), stdout=subprocess.PIPE, check=True
            )
            pathlib.Path(folder, version, file).write_bytes(decoded.stdout)
            if not os.path.lexists(os.path.join(folder, file)):
                os.symlink(os.path.join("..data", file), os.path.join(folder, file))
        os.symlink(version, os.path.join(folder, "..new"))
        os.rename(os.path.join(folder, "..new"), os.path.join(folder, "..data"))

    def probe(self, address, service):
        ended = subprocess.run(
            ["node", "tests/e2e/grpc_probe.mjs", address.replace("0.0.0.0", "127.0.0.1"), service],
            stdout=subprocess.PIPE,
            text=True,
            timeout=harness.DEADLINE_SECONDS,
            check=True,
        )
        return ended.stdout.strip()

    def client(self, token, *words):
        secrets = os.path.join(self.manifests, "local", "secrets")
        return self.run_client(
            *words, f"--ca={secrets}/ca.pem", f"--token-file={secrets}/{token}.token"
        )

    @unittest.skipUnless(shutil.which("node"), "node is not installed")
    def test_the_daemons_run_with_these_arguments(self):
        objects = self.render("local")
        pods = self.pod_specs(objects)
        (server,) = pods["plumbline-server"]["containers"]
        (worker,) = pods["plumbline-worker"]["containers"]
        places = {each["mountPath"]: self.path(each["name"]) for each in server["volumeMounts"]}
        for volume in pods["plumbline-server"]["volumes"]:
            self.mount_secret(volume["secret"]["secretName"], objects, self.path(volume["name"]))
        places[IMAGE_FOLDER] = self.path("image")
        os.makedirs(self.path("image/web"))
        pathlib.Path(self.path("image/web/index.html")).write_text("the dashboard")
        for name in ("data", "backups"):
            os.mkdir(self.path(name))
        process, ready = self.start_and_await(
            self.path("server.json"), harness.SERVER, *self.arguments(server, places)
        )
        self.server = ready["listen"].replace("0.0.0.0", "localhost")
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            service = server[probe]["grpc"]["service"]
            harness.wait_until(
                lambda: self.probe(ready["health"], service) == "SERVING", f"{service} serves"
            )

        places = {each["mountPath"]: self.path(f"w-{each['name']}") for each in worker["volumeMounts"]}
        self.mount_secret("plumbline-worker", objects, self.path("w-credentials"))
        os.mkdir(self.path("w-state"))
        arguments = [
            argument.replace("=plumbline-server:7433", f"={self.server}")
            for argument in self.arguments(worker, places)
        ]
        working, known = self.start_and_await(
            self.path("worker.json"),
            harness.WORKER,
            *arguments,
            f"--checkpoint-root={harness.GOLDEN}",
            environment={"PLUMBLINE_DEVICE": "cpu", "HOME": self.path("w-state")},
        )
        harness.wait_until(
            lambda: self.probe(known["grpc"], "readiness") == "SERVING", "the worker is ready"
        )
        self.assertEqual(self.probe(known["grpc"], "liveness"), "SERVING")

        ended = self.client(
            "submitter", "submit", "block-replay", "--checkpoint=checkpoint", "--layouts=tiny", "--wait"
        )
        self.assertEqual(ended.status, 0, ended)
        context = ssl.create_default_context(
            cafile=os.path.join(self.manifests, "local", "secrets", "ca.pem")
        )
        address = ready["http"].replace("0.0.0.0", "localhost")
        with urllib.request.urlopen(f"https://{address}/metrics", context=context) as answer:
            self.assertIn("plumbline_attempts_total 1", answer.read().decode())
        with urllib.request.urlopen(f"https://{address}/", context=context) as answer:
            self.assertEqual(answer.read().decode(), "the dashboard")
        self.assertEqual(self.client("admin", "runs", "backup").status, 0)

        # A token is revoked: the secret changes, the pod stays.
        secrets = os.path.join(self.manifests, "local", "secrets")
        revoked = self.run_local("token", "revoke", f"--file={secrets}/access.json", "submitter")
        self.assertEqual(revoked.status, 0, revoked)
        self.mount_secret("plumbline-access", self.render("local"), self.path("access"))
        harness.wait_until(
            lambda: self.client("submitter", "jobs", "list").status != 0,
            "the revoked token is refused",
        )
        self.assertEqual(self.client("admin", "jobs", "list").status, 0)

        # Told to end, as a kubelet does.
        for each in (working, process):
            each.terminate()
            self.assertEqual(self.await_end(each), 0, self.log_of(each))
        self.restore(objects)

    def run_local(self, *words):
        """A command that needs no coordinator."""
        server, self.server = self.server, None
        try:
            return self.run_client(*words)
        finally:
            self.server = server

    def restore(self, objects):
        """The job's containers, one after the other, on an empty volume."""
        job = self.render("restore")[("Job", "plumbline-restore")]["spec"]["template"]["spec"]
        self.assert_confined("restore", job)
        claims = {each["name"]: each["persistentVolumeClaim"]["claimName"] for each in job["volumes"]}
        for name in ("data", "backups"):
            self.assertEqual(claims[name], f"{name}-plumbline-server-0")
        (server,) = self.pod_specs(objects)["plumbline-server"]["containers"]
        shutil.rmtree(self.path("data"))
        os.mkdir(self.path("data"))
        (restoring,), (checking,) = job["initContainers"], job["containers"]
        self.assert_volumes_fit(job)
        for container in (restoring, checking):
            self.assert_flags_exist(container)
            self.assertEqual(container["image"].split("/")[-1], "plumbline-server:latest")
            self.assertEqual(
                value_of(container["args"], "data-dir"), value_of(server["args"], "data-dir")
            )
            places = {
                each["mountPath"]: self.path(each["name"]) for each in container["volumeMounts"]
            }
            ended = subprocess.run(
                [harness.SERVER, *self.arguments(container, places)],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            self.assertEqual(ended.returncode, 0, ended.stdout)
        self.assertIn("1 jobs", ended.stdout)


if __name__ == "__main__":
    unittest.main()
