"""Bundles that are made, signed, carried away, verified and tampered with; sweeps; the self-test."""

import csv
import getpass
import io
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import unittest

from tests.e2e import harness

LAYOUT = "--layout=7,2,6,8,5,first"
SECRET = "planted-secret"
GENERATION = {
    "seeds": [42], "num_frames": 5, "height": 96, "width": 128, "num_inference_steps": 4,
    "num_audio_latents": 5, "rng": "torch-cpu",
}  # fmt: skip


class EvidenceTest(harness.Case):
    def elsewhere(self, *words):
        """A command on another machine, as far as one machine can play it: it shares nothing."""
        environment = dict(self.environment, PLUMBLINE_STATE_DIR=self.path("other-state"))
        environment.update(HOME=self.path("other-home"), USER="somebody", HOSTNAME="else")
        done = subprocess.run(
            [harness.CLIENT, *words], capture_output=True, text=True, check=False, cwd="/",
            env=environment, timeout=harness.DEADLINE_SECONDS,
        )  # fmt: skip
        return harness.Ended(done)

    def carried(self, bundle):
        """A copy in another place."""
        copy = os.path.join(tempfile.mkdtemp(dir=self.folder), "bundle")
        shutil.copytree(bundle, copy)
        return copy

    def test_bundle_is_verified_elsewhere_and_every_changed_byte_is_named(self):
        bundle = self.path("bundle")
        made = self.run_client(
            "submit", "full-model", "--checkpoint=synthetic:tiny", LAYOUT, f"--bundle={bundle}",
            "--providers=default,sdpa-flash,sdpa-math",
        )
        self.assertEqual(made.status, 0, made)
        sentence = json.loads(pathlib.Path(bundle, "verdict.json").read_text())["verdict"]["sentence"]
        verified = self.elsewhere("verify", self.carried(bundle))
        self.assertEqual(verified.status, 0, verified)
        self.assertIn(sentence, verified.out)
        self.assertEqual(self.elsewhere("verdict", self.carried(bundle)).status, 0)
        summed = subprocess.run(
            ["sha256sum", "--quiet", "-c", "SHA256SUMS"], cwd=bundle, check=False, capture_output=True
        )
        self.assertEqual(summed.returncode, 0, summed)
        self.assertEqual(
            sorted(os.listdir(bundle)),
            ["SHA256SUMS", "bound_ratio_by_block.svg", "error_by_block.svg", "errors.csv",
             "identity.json", "report.json", "rule.json", "verdict.json"],
        )  # fmt: skip
        for name in sorted(os.listdir(bundle)):
            copy = self.carried(bundle)
            file = pathlib.Path(copy, name)
            data = bytearray(file.read_bytes())
            data[len(data) * 2 // 3] ^= 1
            file.write_bytes(data)
            ended = self.elsewhere("verify", copy)
            self.assertEqual(ended.status, 1, (name, ended))
            self.assertIn(name, ended.out.splitlines()[-2], ended)
            file.write_bytes(b"")
            ended = self.elsewhere("verify", copy)
            self.assertEqual(ended.status, 1, (name, ended))
            self.assertIn(name, ended.out.splitlines()[-2], ended)
            file.unlink()
            ended = self.elsewhere("verify", copy)
            self.assertEqual(ended.status, 1, (name, ended))
            self.assertIn(name, ended.out.splitlines()[-2], ended)
        copy = self.carried(bundle)
        pathlib.Path(copy, "extra").touch()
        ended = self.elsewhere("verify", copy)
        self.assertEqual(ended.status, 1, ended)
        self.assertIn("not as SHA256SUMS says: extra", ended.out)

    def test_signatures(self):
        key, other = self.path("key.pem"), self.path("other.pem")
        for path in (key, other):
            subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", path], check=True)
        bundle = self.path("bundle")
        made = self.run_client(
            "submit", "block-replay", "--checkpoint=synthetic:tiny", LAYOUT, f"--bundle={bundle}",
            f"--signing-key={key}",
        )
        self.assertEqual(made.status, 0, made)
        public = {}
        for path in (key, other):
            public[path] = path + ".pub"
            subprocess.run(["openssl", "pkey", "-in", path, "-pubout", "-out", public[path]], check=True)
        checked = subprocess.run(
            ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", public[key], "-rawin", "-in",
             f"{bundle}/SHA256SUMS", "-sigfile", f"{bundle}/SHA256SUMS.sig"],
            check=False, capture_output=True,
        )  # fmt: skip
        self.assertEqual(checked.returncode, 0, checked)
        self.assertEqual(self.elsewhere("verify", bundle).status, 0)
        self.assertEqual(self.elsewhere("verify", bundle, f"--public-key={public[key]}").status, 0)
        forged = self.elsewhere("verify", bundle, f"--public-key={public[other]}")
        self.assertEqual(forged.status, 1, forged)
        self.assertIn("SHA256SUMS.sig", forged.out)
        refused = self.elsewhere("verify", bundle, f"--public-key={key}")
        self.assertEqual(refused.status, 2, refused)
        refused = self.run_client(
            "submit", "block-replay", "--checkpoint=synthetic:tiny", LAYOUT,
            f"--bundle={self.path('none')}", f"--signing-key={public[key]}",
        )
        self.assertEqual(refused.status, 2, refused)
        self.assertIn("--signing-key", refused.error)

    def test_nothing_of_where_it_was_made_gets_out(self):
        """Planted in every place that a name could come from, and looked for in every file."""
        folder = self.path(SECRET)
        shutil.copytree(os.path.join(harness.GOLDEN, "checkpoint"), os.path.join(folder, "checkpoint"))
        for name in ("block0_fp32_cpu", "block0_bf16_cuda"):
            shutil.copy(os.path.join(harness.GOLDEN, name + ".safetensors"), folder)
        planted = {"USER": SECRET, "LOGNAME": SECRET, "HOSTNAME": SECRET, "SLURM_NODELIST": SECRET,
                   "SLURM_JOB_ID": SECRET, "SLURMD_NODENAME": SECRET}  # fmt: skip
        self.environment.update(planted)
        self.start_server()
        state = self.path("worker-" + SECRET)
        os.mkdir(state, 0o700)
        pathlib.Path(state, "worker-id").write_text(SECRET + "\n")
        self.start_worker(SECRET, f"--label=host={SECRET}", root=folder)
        self.assertIn(SECRET, self.run_client("workers", "list").out)
        bundles = []
        captures = ["--golden=worker:block0_fp32_cpu.safetensors",
                    f"--provider=h200={folder}/block0_bf16_cuda.safetensors"]  # fmt: skip
        for name, flags in {
            "block": ["block-replay", LAYOUT, "--backward", *captures],
            "failed": ["block-replay", LAYOUT, "--inject=qk-heads"],
            "full": ["full-model", LAYOUT, "--providers=default,sdpa-flash,sdpa-math"],
        }.items():
            bundles.append(self.path("bundle-" + name))
            ended = self.run_client(
                "submit", *flags, "--checkpoint=checkpoint", f"--label=owner={SECRET}",
                f"--bundle={bundles[-1]}",
            )
            self.assertIn(ended.status, (0, 1), ended)
        names = {SECRET, socket.gethostname(), self.folder, self.server, "/tmp/"}
        if len(getpass.getuser()) > 4:
            names.add(getpass.getuser())
        for bundle in bundles:
            self.assertIn("report.json", os.listdir(bundle))
            for file in pathlib.Path(bundle).iterdir():
                text = file.read_text()
                for name in names:
                    # A short name is part of a random identifier now and then: it counts alone.
                    short = len(name) < 5 and name.isalnum()
                    ends = "(?![A-Za-z0-9])" if short else ""
                    begins = "(?<![A-Za-z0-9])" if short else ""
                    found = re.search(begins + re.escape(name) + ends, text)
                    self.assertIsNone(found, f"{name} in {file}")
        report = json.loads(pathlib.Path(bundles[0], "report.json").read_text())
        self.assertEqual(report["spec"]["checkpoint"], "")
        self.assertEqual(report["tasks"][0]["attempts"][0]["worker"], "")

    def test_generations_have_bundles(self):
        harness.write_conditioning(self.path("prompt.safetensors"))
        pathlib.Path(self.path("contract.json")).write_text(json.dumps(GENERATION))
        common = ["submit", "generation", "--checkpoint=synthetic:tiny", "--contract=contract.json",
                  "--conditioning=prompt.safetensors", "--latents-only", "--wait"]  # fmt: skip
        provider = self.run_client(*common, "--composition=provider")
        self.assertEqual(provider.status, 0, provider)
        reference = self.job_names()[0]
        bundle = self.path("bundle")
        ended = self.run_client(*common, "--preflight", f"--against={reference}", f"--bundle={bundle}")
        self.assertEqual(ended.status, 0, ended)
        rows = list(csv.DictReader(io.StringIO(pathlib.Path(bundle, "latent_drift.csv").read_text())))
        self.assertEqual([row["step"] for row in rows], ["0", "1", "2"])
        for name in ("latent_drift_by_step.svg", "timings.svg", "timings.csv", "identity.json"):
            self.assertIn(name, os.listdir(bundle))
        verified = self.elsewhere("verify", self.carried(bundle))
        self.assertEqual(verified.status, 0, verified)
        self.assertIn("preflight: not citable", verified.out)
        copy = self.carried(bundle)
        report = pathlib.Path(copy, "report.json")
        report.write_text(report.read_text().replace('"step": 1', '"step": 2', 1))
        self.assertEqual(self.elsewhere("verify", copy).status, 1)

    def test_saved_tensors_of_two_layouts_are_two_files(self):
        ended = self.run_client(
            "submit", "block-replay", "--checkpoint=synthetic:tiny", "--layouts=tiny", LAYOUT,
            "--save-tensors=t.safetensors",
        )
        self.assertEqual(ended.status, 0, ended)
        sizes = LAYOUT.split("=")[1].replace(",", "_")
        self.assertTrue(os.path.exists(self.path("t-tiny.safetensors")))
        self.assertTrue(os.path.exists(self.path(f"t-{sizes}.safetensors")))


class SweepTest(harness.Case):
    def replay(self, *flags):
        return self.run_client(
            "submit", "block-replay", "--checkpoint=synthetic:tiny", *flags,
            f"--report={self.path('report.json')}",
        )

    def tasks(self):
        return json.loads(pathlib.Path(self.path("report.json")).read_text())["tasks"]

    def test_sweep_covers_every_duration_and_finds_what_named_layouts_do_not(self):
        passed = self.replay("--layouts=sweep")
        self.assertEqual(passed.status, 0, passed)
        layouts = [task["block_replay"]["layout"] for task in self.tasks()]
        # 17 n + 5 frames of 124 to 345 are 5 n + 2 latent frames.
        self.assertEqual([layout["frames"] for layout in layouts], list(range(37, 103, 5)))
        self.assertEqual({len(layout["keyframes"]) for layout in layouts}, {0, 1, 2})
        self.assertEqual({task["block_replay"]["rows"] % 2 for task in self.tasks()}, {0, 1})
        ratios = {layout["width"] / layout["height"] for layout in layouts}
        self.assertTrue({0.25, 0.5, 1, 2, 4} <= ratios, ratios)
        for task in self.tasks():
            self.assertEqual(task["verdict"]["outcome"], "OUTCOME_PASSED")

        named = self.replay("--layouts=tiny,small,medium", "--inject=long-video")
        self.assertEqual(named.status, 0, named)
        self.assertIn("changes nothing below 56 latent frames", named.out)
        found = self.replay("--layouts=sweep", "--inject=long-video")
        self.assertEqual(found.status, 1, found)
        self.assertIn("first_failure: rope_q (", found.out)
        for task in self.tasks():
            fails = task["block_replay"]["layout"]["frames"] >= 56
            self.assertEqual(
                task["verdict"]["outcome"], "OUTCOME_FAILED" if fails else "OUTCOME_PASSED"
            )
        listed = self.run_client("faults", "--job=sweep").out.splitlines()
        self.assertEqual([line.split("\t")[:2] for line in listed],
                         [["long-video", "rope_q"]])  # fmt: skip

    def test_full_model_takes_sweeps_alone_and_refuses_what_is_of_one_layout(self):
        for flags in (["--freeze-rule=r.json"], ["--rule=worker:r.json"], ["--golden=worker:g"]):
            refused = self.run_client(
                "submit", "full-model", "--checkpoint=synthetic:tiny", "--layouts=sweep", *flags
            )
            self.assertEqual(refused.status, 2, refused)
            self.assertIn("a sweep has many", refused.error)


class UploadsTest(harness.Case):
    def test_uploads_go_with_the_last_job_that_reads_them(self):
        self.start_server()
        self.start_worker("one")
        files = [f"{harness.GOLDEN}/{name}.safetensors" for name in ("rng", "scheduler", "layouts")]
        for a, b in ((0, 1), (0, 2)):
            self.assertEqual(self.run_client("compare", files[a], files[b]).status, 1)
        stored = pathlib.Path(self.path("server"), "artifacts")
        self.assertEqual(len(list(stored.iterdir())), 3)
        second, first = self.job_names()
        self.assertEqual(self.run_client("jobs", "delete", second).status, 0)
        self.assertEqual(len(list(stored.iterdir())), 2)
        self.assertEqual(self.run_client("jobs", "delete", first).status, 0)
        self.assertEqual(list(stored.iterdir()), [])
        # What was deleted can be brought again.
        self.assertEqual(self.run_client("compare", files[0], files[0]).status, 0)


class SelftestTest(harness.Case):
    def test_every_capture_and_every_control(self):
        ended = self.run_client("selftest", f"--report={self.path('report.json')}")
        self.assertEqual(ended.status, 0, ended)
        report = json.loads(pathlib.Path(self.path("report.json")).read_text())
        rows = report["tasks"][0]["selftest"]["rows"]
        controls = [row for row in rows if row["kind"] == "control"]
        listed = self.run_client("faults").out.splitlines()
        self.assertEqual([row["name"] for row in controls], [line.split("\t")[0] for line in listed])
        captures = {row["name"] for row in rows if row["kind"] == "capture"}
        # Inputs are what the captures were computed from.
        self.assertEqual(
            {name for name in os.listdir(harness.GOLDEN) if name.endswith(".safetensors")} - captures,
            {"transformer_inputs.safetensors"},
        )
        for row in rows:
            self.assertTrue(row["passed"], row)
            self.assertIn(row["name"], ended.out)


if __name__ == "__main__":
    unittest.main()
