"""The daemons of deploy/kubernetes, started with exactly the arguments that its containers have."""

import os
import pathlib
import re
import shutil
import ssl
import subprocess
import unittest
import urllib.request

from tests.e2e import harness
from tests.e2e import kubernetes_case
from tests.e2e.kubernetes_case import value_of


class KubernetesDaemonsTest(kubernetes_case.Case):
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
                [kubernetes_case.PYTHON, "-c", script], input=content.encode(), stdout=subprocess.PIPE, check=True
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
        places[kubernetes_case.IMAGE_FOLDER] = self.path("image")
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
