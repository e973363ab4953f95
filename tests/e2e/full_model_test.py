"""Full models, their rules, bundles and sweeps, from the command line."""

import json
import pathlib
import unittest

from tests.e2e import harness

LAYOUT = "--layout=7,2,6,8,5,first"
LONG_LAYOUT = "--layout=400,10,20,24,40,first"
TENSORS = 92


class FullModelTest(harness.Case):
    def full_model(self, *flags, checkpoint="checkpoint", layout=LAYOUT):
        return self.run_client(
            "submit", "full-model", f"--checkpoint={checkpoint}", layout, "--wait", *flags
        )

    def report(self, name="report.json"):
        return json.loads(pathlib.Path(self.path(name)).read_text())

    def freeze(self):
        rule = self.path("rule.json")
        ended = self.full_model(f"--freeze-rule={rule}")
        self.assertEqual(ended.status, 0, ended)
        self.assertIn("NOT JUDGED", ended.out)
        return rule

    def start_all(self, *server_flags):
        self.start_server(*server_flags)
        return self.start_worker("a")

    def test_the_captures_of_the_real_model(self):
        self.start_all()
        ended = self.run_client(
            "submit", "full-model", "--checkpoint=checkpoint", "--composition=golden",
            "--inputs=worker:transformer_inputs.safetensors", "--providers=default",
            "--golden=worker:transformer_fp32_cpu.safetensors",
            f"--report={self.path('report.json')}",
        )
        self.assertEqual(ended.status, 0, ended)
        tensors = self.report()["tasks"][0]["full_model"]["tensors"]
        self.assertEqual(len(tensors), TENSORS)
        for tensor in tensors:
            name = tensor["name"]
            gradient = name.endswith(".grad") or name.startswith(("parameter.", "input_gradients."))
            self.assertLessEqual(
                tensor["candidate_error"]["relative_l2"], 5e-5 if gradient else 1e-5, name
            )

    def test_a_rule_is_made_edited_sealed_and_refused(self):
        self.start_all()
        rule = self.freeze()
        ended = self.full_model(f"--rule={rule}", f"--report={self.path('report.json')}")
        self.assertEqual(ended.status, 0, ended)
        self.assertIn("PASSED", ended.out)
        (error,) = [
            tensor["candidate_error"]["relative_l2"]
            for tensor in self.report()["tasks"][0]["full_model"]["tensors"]
            if tensor["name"] == "nodes.block.1"
        ]

        edited = self.path("edited.json")
        content = json.loads(pathlib.Path(rule).read_text())
        content["tensors"]["nodes.block.1"]["bound"] = error / 2
        pathlib.Path(edited).write_text(json.dumps(content))
        refused = self.full_model(f"--rule={edited}")
        self.assertEqual(refused.status, 2, refused)
        self.assertIn("--rule", refused.error)
        sealed = self.run_client("rule", "seal", edited)
        self.assertEqual(sealed.status, 0, sealed)
        failed = self.full_model(f"--rule={edited}", f"--report={self.path('failed.json')}")
        self.assertEqual(failed.status, 1, failed)
        self.assertIn("first_failure: nodes.block.1 (ensemble)", failed.out)
        self.assertIn("manual rule", failed.out)
        self.assertEqual(
            self.report("failed.json")["tasks"][0]["full_model"]["failing"], ["nodes.block.1"]
        )

        compared = self.run_client("rule", "compare", rule, edited)
        self.assertEqual(compared.status, 0, compared)
        self.assertIn("nodes.block.1", compared.out)
        shown = self.run_client("rule", "show", rule)
        self.assertEqual(shown.status, 0, shown)
        self.assertIn("provider/sdpa-math", shown.out)

        other = self.full_model(f"--rule={rule}", checkpoint="synthetic:tiny:2")
        self.assertEqual(other.status, 2, other)
        self.assertIn("checkpoint", other.error)
        other = self.full_model(f"--rule={rule}", layout="--layout=8,2,6,8,5,first")
        self.assertEqual(other.status, 2, other)
        self.assertIn("inputs", other.error)

    def test_controls_fail_where_they_were_put_and_bundles_prove_it(self):
        self.start_all()
        listed = self.run_client("faults", "--job=full-model").out.splitlines()
        self.assertEqual(len(listed), 7)
        for line in listed:
            fault, place, _ = line.split("\t")
            bundle = self.path("bundle-" + fault)
            ended = self.full_model(f"--inject={fault}", f"--bundle={bundle}")
            self.assertEqual(ended.status, 1, ended)
            self.assertIn(f"first_failure: {place} (", ended.out)
            self.assertIn("caught at", ended.out)
        again = self.run_client("verdict", bundle)
        self.assertEqual(again.status, 1, again)
        self.assertIn(f"first_failure: {place} (", again.out)

        report = pathlib.Path(bundle, "report.json")
        report.write_text(report.read_text().replace("OUTCOME_FAILED", "OUTCOME_PASSED"))
        forged = self.run_client("verdict", bundle)
        self.assertEqual(forged.status, 1, forged)
        self.assertIn("not as SHA256SUMS says: report.json", forged.out)

    def test_ablation_kept_tensors_and_saved_ones(self):
        self.start_all()
        saved = self.path("tensors.safetensors")
        ended = self.full_model(
            "--ablation", "--inject=last-keys", "--keep=nodes.block.*.grad",
            f"--save-tensors={saved}",
        )
        self.assertEqual(ended.status, 1, ended)
        self.assertIn("every tensor is the provider's, bit for bit", ended.out)
        self.assertEqual(len(harness.read_safetensors(saved)), TENSORS)
        kept = harness.read_safetensors(self.path("tensors-kept_golden.safetensors"))
        self.assertEqual(sorted(kept), ["nodes.block.0.grad", "nodes.block.1.grad"])

    def test_a_sweep(self):
        self.start_all()
        ended = self.run_client(
            "submit", "sweep", "--checkpoint=checkpoint", LAYOUT, "--layouts=tiny",
            "--seeds=0..1,5", "--swap=each-node", f"--report={self.path('report.json')}",
        )
        self.assertEqual(ended.status, 0, ended)
        tasks = self.report()["tasks"]
        self.assertEqual(len(tasks), 2)
        for task in tasks:
            self.assertEqual(len(task["sweep"]["samples"]), 3 * 14 * (1 + 2 * 17))
            self.assertEqual(len(task["sweep"]["distributions"]), 14 * (1 + 2 * 17))

    def test_bad_requests(self):
        self.start_all()
        for flag, says in (
            ("--providers=default,sdpa-flsh", "sdpa-flash"),
            ("--inject=split-by-rows", "zero-gradient"),
            ("--keep=nodes.nothing", "nodes.proj_in"),
            ("--composition=candidate+provider:block.7/swiglu", "block.7/swiglu"),
            ("--allow-other-device", "with a rule"),
        ):
            refused = self.full_model(flag)
            self.assertEqual(refused.status, 2, refused)
            self.assertIn(flag.split("=")[0], refused.error)
            self.assertIn(says, refused.error)
        self.assertEqual(self.job_names(), [])

    def test_another_worker_runs_a_killed_one_again_with_equal_digests(self):
        first = self.start_all("--lease-duration=2s")
        submitted = self.run_client(
            "submit", "full-model", "--checkpoint=checkpoint", LONG_LAYOUT
        )
        self.assertEqual(submitted.status, 0, submitted)
        name = submitted.out.strip()
        watch = self.start_client("jobs", "watch", name, "--format=json")
        harness.wait_until(lambda: '"progress"' in self.log_of(watch), "the worker is at work")
        self.kill(first)
        self.start_worker("b")
        self.assertEqual(self.await_end(watch), 0, self.log_of(watch))

        events = [json.loads(line) for line in self.log_of(watch).splitlines() if line[:1] == "{"]
        self.assertEqual([int(e["sequence"]) for e in events], list(range(1, len(events) + 1)))
        superseded = [e["attempt_superseded"] for e in events if "attempt_superseded" in e]
        self.assertEqual([s["superseded_attempt"] for s in superseded], [1])
        alive = [e for e in events if e.get("attempt") != 1]
        nodes = [e["node"]["entry"] for e in alive if "node" in e]
        self.assertEqual(len(nodes), TENSORS)
        self.assertEqual(len(set(nodes)), TENSORS)
        # The rule was there before any figure of the candidate.
        frozen = [i for i, e in enumerate(alive) if "rule_frozen" in e]
        self.assertEqual(len(frozen), 1)
        self.assertLess(frozen[0], min(i for i, e in enumerate(alive) if "node" in e))

        again = self.full_model(f"--report={self.path('again.json')}", layout=LONG_LAYOUT)
        self.assertEqual(again.status, 0, again)
        compared = json.loads(
            self.run_client("jobs", "compare", name, self.job_names()[0], "--format=json").out
        )
        self.assertEqual(len(compared["rows"]), 3 * TENSORS)
        self.assertTrue(all(row["bytes_equal"] for row in compared["rows"]))
        reported = self.run_client("report", name, "--format=json")
        self.assertEqual(reported.status, 0)
        reports = [json.loads(reported.out), self.report("again.json")]
        digests = [
            [
                (t["name"], t["golden_sha256"], t["candidate_error"]["sha256"])
                for t in report["tasks"][0]["full_model"]["tensors"]
            ]
            for report in reports
        ]
        self.assertEqual(digests[0], digests[1])


if __name__ == "__main__":
    unittest.main()
