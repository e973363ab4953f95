"""Bad input: status 2, the flag and what is accepted named, no job left behind."""

import json
import os
import pathlib
import shutil
import unittest

from tests.e2e import harness

CAPTURE = os.path.join(harness.GOLDEN, "block0_bf16_cuda.safetensors")
LAYOUT = "--layout=7,2,6,8,5,first"  # of the capture


class BadInputTest(harness.Case):
    def setUp(self):
        super().setUp()
        # A copy, so that a test can damage it.
        self.checkpoint = self.path("roots/checkpoint")
        shutil.copytree(os.path.join(harness.GOLDEN, "checkpoint"), self.checkpoint)
        for folder, _, files in os.walk(self.path("roots")):
            os.chmod(folder, 0o755)
            for name in files:
                os.chmod(os.path.join(folder, name), 0o644)
        self.start_server()
        self.start_worker("a", "--memory=2000000000", root=self.path("roots"))

    def refuse(self, *flags, flag, says):
        flags = list(flags)
        if not any(each.startswith("--checkpoint=") for each in flags):
            flags.append("--checkpoint=synthetic:tiny")
        ended = self.run_client("submit", "block-replay", "--wait", *flags)
        self.assertEqual(ended.status, 2, ended)
        self.assertEqual(ended.out, "")
        self.assertIn(flag, ended.error)
        for words in [says] if isinstance(says, str) else says:
            self.assertIn(words, ended.error)
        self.assertEqual(self.job_names(), [], ended)

    def shard(self):
        return sorted(pathlib.Path(self.checkpoint, "transformer").glob("*.safetensors"))[-1]

    def test_unknown_names(self):
        self.refuse("--layouts=tinny", flag="--layouts", says=["tiny, small, medium", '"tiny"?'])
        self.refuse("--layouts=tiny,big", flag="--layouts", says="tiny, small, medium")
        self.refuse("--composition=candidat", flag="--composition", says=["golden", '"candidate"?'])
        self.refuse("--composition=candidate+provider:atention", flag="--composition", says='"attention"?')
        self.refuse("--inject=qk-head", flag="--inject", says=["swiglu-halves", '"qk-heads"?'])

    def test_sizes(self):
        self.refuse("--layout=0,2,6,8,5,first", flag="--layout", says="1 to")
        self.refuse("--layout=7,-2,6,8,5,first", flag="--layout", says="1 to")
        self.refuse("--layout=7,2,5,8,5,first", flag="--layout", says="even")
        self.refuse("--layout=7,2,6,8,5", flag="--layout", says="TEXT,FRAMES,HEIGHT,WIDTH")
        self.refuse("--block=-1", flag="--block", says="0 to")
        self.refuse("--block=2", flag="--block", says="0 to 1")
        self.refuse("--priority=101", flag="--priority", says="-100 to 100")
        self.refuse("--label=nothing", flag="--label", says="K=V")

    def test_errors_name_the_argument_that_was_given(self):
        for flag, *words in [
            ("JOB", "jobs", "get", "a/b"),
            ("JOB", "jobs", "watch", "a/b"),
            ("JOB", "jobs", "cancel", "a/b"),
            ("JOB", "jobs", "delete", "a/b"),
            ("JOB", "report", "a/b"),
            ("WORKER", "workers", "drain", "a/b"),
            ("RUN", "runs", "show", "a/b"),
            ("RUN", "runs", "verify", "a/b"),
            ("RUN", "runs", "delete", "a/b"),
            ("A", "runs", "compare", "a/b", "c"),
            ("--job", "runs", "list", "--job=a/b"),
            ("--run", "submit", "diagnostic", "--run=a/b"),
        ]:
            ended = self.run_client(*words)
            self.assertEqual(ended.status, 2, (words, ended))
            self.assertIn(f"\n  {flag}: ", ended.error, words)

    def test_the_same_twice(self):
        tiny = "--layout=104,2,12,16,8,first"
        self.refuse("--layouts=tiny,tiny", flag="--layouts", says="tiny is there twice; accepted: each")
        self.refuse("--layouts=tiny", tiny, flag="--layout (", says="twice, as tiny too")
        self.refuse(tiny, tiny, flag="--layout (", says="104,2,12,16,8,first is there twice;")
        self.refuse("--layouts=sweep,sweep", flag="--layouts", says="is there twice")
        self.refuse("--label=a=1", "--label=a=2", flag="--label", says="twice")
        listed = self.run_client("jobs", "list", "--label=a=1", "--label=a=2")
        self.assertEqual(listed.status, 2, listed)
        self.assertIn("--label", listed.error)

    def test_a_layout_above_the_workers_memory(self):
        self.refuse(
            "--checkpoint=synthetic:released",
            "--layouts=released",
            flag="--layouts",
            says=["needs", "of device memory"],
        )

    def test_checkpoints(self):
        self.refuse("--checkpoint=nothing", flag="--checkpoint", says="does not exist")
        self.refuse("--checkpoint=../checkpoint", flag="--checkpoint", says="..")
        self.refuse("--checkpoint=/etc", flag="--checkpoint", says="/etc")
        self.refuse("--checkpoint=synthetic:huge", flag="--checkpoint", says="released, tiny")

    def test_a_missing_shard(self):
        shard = self.shard()
        shard.unlink()
        self.refuse("--checkpoint=checkpoint", flag="--checkpoint", says=shard.name)

    def test_a_truncated_shard(self):
        shard = self.shard()
        shard.write_bytes(shard.read_bytes()[:-100])
        self.refuse("--checkpoint=checkpoint", flag="--checkpoint", says=shard.name)

    def test_a_corrupt_shard(self):
        shard = self.shard()
        shard.write_bytes(b"\xff" * 8 + shard.read_bytes()[8:])
        self.refuse("--checkpoint=checkpoint", flag="--checkpoint", says=shard.name)

    def test_a_configuration_that_disagrees_with_the_tensors(self):
        path = pathlib.Path(self.checkpoint, "transformer", "config.json")
        config = json.loads(path.read_text())
        config["num_layers"] += 1
        path.write_text(json.dumps(config))
        self.refuse("--checkpoint=checkpoint", flag="--checkpoint", says="transformer_blocks.2")

    def test_captures(self):
        tensors = harness.read_safetensors(CAPTURE)
        lacking = dict(tensors)
        del lacking["node.q_proj"]
        extra = dict(tensors)
        extra["node.other"] = tensors["node.q_proj"]
        harness.write_safetensors(self.path("lacking.safetensors"), lacking)
        harness.write_safetensors(self.path("extra.safetensors"), extra)
        truncated = pathlib.Path(CAPTURE).read_bytes()[:-1000]
        pathlib.Path(self.path("truncated.safetensors")).write_bytes(truncated)
        arguments = ("--checkpoint=checkpoint", LAYOUT, "--backward")
        self.refuse(*arguments, "--golden=lacking.safetensors", flag="--golden", says="node.q_proj")
        self.refuse(*arguments, "--candidate=extra.safetensors", flag="--candidate", says="node.other")
        self.refuse(
            *arguments,
            "--provider=provider/default=truncated.safetensors",
            flag="--provider",
            says="truncated or corrupt",
        )
        self.refuse(*arguments, "--inputs=nowhere.safetensors", flag="--inputs", says="nowhere")
        self.refuse(*arguments, "--golden=worker:nowhere", flag="--golden", says="does not exist")
        self.refuse(*arguments, "--provider=nofile", flag="--provider", says="NAME=FILE")

    def test_outputs_are_checked_before_the_work(self):
        self.refuse("--report=/nowhere/report.json", flag="--report", says="/nowhere")
        self.refuse("--save-tensors=/nowhere/t.safetensors", flag="--save-tensors", says="/nowhere")


if __name__ == "__main__":
    unittest.main()
