"""The gRPC-Web clients of npm, unary and streaming, against a real coordinator, plain and over TLS."""

import json
import os
import pathlib
import shutil
import subprocess
import unittest
import urllib.request

from tests.e2e import harness

# The folder of the tree itself, where npm has put the clients: ./dev does it before the tests.
WEB = os.path.dirname(os.path.realpath("tests/e2e/web/package.json"))


class WebClientsTest(harness.Case):
    def setUp(self):
        super().setUp()
        modules = os.path.join(WEB, "node_modules")
        self.assertTrue(os.path.isdir(modules), f"npm ci --prefix {WEB}")
        os.symlink(modules, self.path("node_modules"))
        shutil.copy(os.path.join(WEB, "client.mjs"), self.path("client.mjs"))
        os.mkdir(self.path("gen"))
        protos = sorted(str(path) for path in pathlib.Path("proto").rglob("*.proto"))
        subprocess.run(
            [
                "protoc",
                "-I.",
                "-I/usr/include",
                f"--plugin=protoc-gen-es={modules}/.bin/protoc-gen-es",
                f"--es_out={self.path('gen')}",
                "--es_opt=target=js,import_extension=js",
                *protos,
            ],
            check=True,
        )

    def token_of(self, name, role):
        ended = harness.Ended(
            subprocess.run(
                [
                    harness.CLIENT,
                    "token",
                    "create",
                    f"--file={self.path('access.json')}",
                    f"--name={name}",
                    f"--role={role}",
                ],
                capture_output=True,
                text=True,
                check=False,
            )
        )
        self.assertEqual(ended.status, 0, ended)
        path = self.path(f"{name}.token")
        pathlib.Path(path).write_text(ended.out)
        return path

    def make_certificates(self):
        """An authority, and a certificate of it for localhost."""

        def openssl(*words):
            subprocess.run(
                ["openssl", *words], cwd=self.folder, check=True, capture_output=True
            )

        curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        openssl(
            *["req", "-x509", *curve, "-keyout", "ca.key", "-out", "ca.pem"],
            *["-subj", "/CN=authority", "-days", "2"],
        )
        openssl(
            *["req", *curve, "-keyout", "server.key", "-out", "server.csr"],
            *["-subj", "/CN=server"],
        )
        pathlib.Path(self.path("names")).write_text(
            "subjectAltName=DNS:localhost,IP:127.0.0.1\n"
        )
        openssl(
            *["x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key"],
            *["-CAcreateserial", "-out", "server.pem", "-days", "2", "-extfile", "names"],
        )

    def calls(self, url, token, job):
        ended = subprocess.run(
            ["node", "client.mjs", url, token, job],
            cwd=self.folder,
            env=dict(self.environment, NODE_EXTRA_CA_CERTS=self.path("ca.pem")),
            capture_output=True,
            text=True,
            timeout=harness.DEADLINE_SECONDS,
            check=False,
        )
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return json.loads(ended.stdout)

    def check(self, results, job, events):
        self.assertEqual(results["connect"]["name"], job)
        self.assertEqual(results["connect"]["events"], events)
        self.assertEqual(
            results["connect"]["refused"],
            {
                "code": "InvalidArgument",
                "reason": "INVALID_FIELD",
                "field": "spec.block_replay.layouts[0].name",
            },
        )
        self.assertEqual(results["connect"]["left"], "Canceled")
        self.assertEqual(results["connect"]["late"], "DeadlineExceeded")
        for form in ["text", "binary"]:
            self.assertEqual(results[form]["name"], job)
            self.assertEqual(results[form]["refused"], 3)
        self.assertEqual(results["text"]["events"], events)
        self.assertEqual(results["text"].get("status", 0), 0)

    def test_without_tls(self):
        self.start_server()
        self.start_worker("one")
        submitted = self.run_client(
            "submit",
            "block-replay",
            "--checkpoint=synthetic:tiny",
            "--layouts=tiny",
            "--wait",
        )
        self.assertEqual(submitted.status, 0, submitted)
        (job,) = self.job_names()
        events = [int(event["sequence"]) for event in self.events_of(job)]
        self.assertGreater(len(events), 3)
        http = json.loads(pathlib.Path(self.path("server.json")).read_text())["http"]
        self.check(self.calls(f"http://{http}", "", job), job, events)

    def test_over_tls_with_tokens(self):
        self.make_certificates()
        admin = self.token_of("alice", "admin")
        node = self.token_of("node", "worker")
        viewer = self.token_of("bob", "submitter")
        self.start_server(
            f"--tls-cert={self.path('server.pem')}",
            f"--tls-key={self.path('server.key')}",
            f"--access-file={self.path('access.json')}",
            listen="127.0.0.1:0",
        )
        ca = f"--ca={self.path('ca.pem')}"
        self.start_worker("one", ca, f"--token-file={node}")
        as_admin = [ca, f"--token-file={admin}"]
        submitted = self.run_client(
            "submit",
            "block-replay",
            "--checkpoint=synthetic:tiny",
            "--layouts=tiny",
            "--wait",
            *as_admin,
        )
        self.assertEqual(submitted.status, 0, submitted)
        (job,) = [
            line.split()[0]
            for line in self.run_client("jobs", "list", *as_admin).out.splitlines()
            if line.strip().startswith("jobs/")
        ]
        watched = self.run_client("jobs", "watch", job, "--format=json", *as_admin)
        events = [int(json.loads(line)["sequence"]) for line in watched.out.splitlines()]
        http = json.loads(pathlib.Path(self.path("server.json")).read_text())["http"]
        url = f"https://localhost:{http.rsplit(':', 1)[1]}"
        token = pathlib.Path(viewer).read_text().strip()
        self.check(self.calls(url, token, job), job, events)
        # Nobody without a token, and nobody in plain text.
        refused = self.run_client("jobs", "list", ca)
        self.assertNotEqual(refused.status, 0)
        self.assertIn("token", refused.error)
        with self.assertRaises(OSError) as refused:
            urllib.request.urlopen(f"http://{http}/healthz", timeout=harness.DEADLINE_SECONDS)
        # Told so, and not left waiting.
        self.assertNotIsInstance(refused.exception, TimeoutError)


if __name__ == "__main__":
    unittest.main()
