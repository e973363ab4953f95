"""deploy/kubernetes as an operator has it, and what holds for every pod of it."""

import json
import os
import re
import shutil
import subprocess
import unittest

from tests.e2e import harness

FOLDER = "deploy/kubernetes"
OVERLAYS = ("local", "gpu")
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
class Case(harness.Case):
    """Renders the overlays with kubectl, from a copy with secrets."""

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
