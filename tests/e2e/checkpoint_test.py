"""Checkpoints verified, in both layouts and damaged, and the gate on damaged ones, from the command line."""

import json
import os
import pathlib
import shutil
import unittest

from tests.e2e import harness

HEADS, HEAD_BYTES = 2, 128 * 128 * 2  # Of the bundled checkpoint: 128 rows of 128 values.
STEM = "diffusion_pytorch_model"
LAYOUT = "--layout=7,2,6,8,5,first"
RENAMED = (
    ("token_refiner.refiner_blocks.", "token_refiner.blocks."),
    ("transformer_blocks.", "blocks."),
    ("time_embedder.linear_1.", "time_embedder.proj_in."),
    ("time_embedder.linear_2.", "time_embedder.proj_out."),
    ("audio_proj_in.", "audio_patch_proj."),
    ("audio_proj_out.", "final_layer.audio_out."),
    ("context_embedder.", "condition_proj."),
    ("norm_out.norm.", "final_layer.norm."),
    ("norm_out.linear.", "final_layer.adaln_proj.linear."),
    ("attn.norm_q.", "attn.q_norm."),
    ("attn.norm_k.", "attn.k_norm."),
    ("attn.to_out.0.", "attn.out_proj."),
    ("ff.net.0.proj.", "mlp.fc1."),
    ("ff.net.2.", "mlp.fc2."),
)


def fused(q, k, v):
    """Head by head: q, k, v."""
    parts = []
    for head in range(HEADS):
        parts += [part[head * HEAD_BYTES : (head + 1) * HEAD_BYTES] for part in (q, k, v)]
    return b"".join(parts)


def swapped(data):
    return data[len(data) // 2 :] + data[: len(data) // 2]


def native(tensors):
    """The bundled tensors as MiniMax stores them."""
    result = {}
    for name, (dtype, shape, data) in tensors.items():
        if name.endswith(("attn.to_k.weight", "attn.to_v.weight")):
            continue
        renamed = name
        if name.startswith("proj_in."):
            renamed = name.replace("proj_in.", "video_patch_proj.")
        elif name.startswith("proj_out."):
            renamed = name.replace("proj_out.", "final_layer.video_out.")
        for released, other in RENAMED:
            renamed = renamed.replace(released, other)
        if name.endswith("attn.to_q.weight"):
            rest = [tensors[name.replace("to_q", part)][2] for part in ("to_k", "to_v")]
            renamed = renamed.replace("to_q", "qkv_proj")
            shape, data = [3 * shape[0], shape[1]], fused(data, *rest)
        elif name.endswith("ff.net.0.proj.weight"):
            data = swapped(data)
        result[renamed] = (dtype, shape, data)
    result["rope.inv_freq"] = ("F32", [16], bytes(64))
    return result


def left_interleaved(tensors):
    """As a loader leaves them that cuts the fused weight into thirds."""
    result = dict(tensors)
    for name, (dtype, shape, data) in tensors.items():
        if not name.endswith("attn.to_q.weight"):
            continue
        names = [name.replace("to_q", part) for part in ("to_q", "to_k", "to_v")]
        whole = fused(*[tensors[each][2] for each in names])
        third = len(whole) // 3
        for i, each in enumerate(names):
            result[each] = (dtype, shape, whole[i * third : (i + 1) * third])
    return result


def halves_swapped(tensors):
    return {
        name: (dtype, shape, swapped(data) if name.endswith("ff.net.0.proj.weight") else data)
        for name, (dtype, shape, data) in tensors.items()
    }


class CheckpointTest(harness.Case):
    def setUp(self):
        super().setUp()
        self.source = os.path.join(harness.GOLDEN, "checkpoint")
        self.tensors = {}
        for shard in sorted(pathlib.Path(self.source, "transformer").glob("*.safetensors")):
            self.tensors.update(harness.read_safetensors(shard))

    def write(self, name, tensors):
        folder = pathlib.Path(self.path(name), "transformer")
        folder.mkdir(parents=True)
        shutil.copy(os.path.join(self.source, "transformer", "config.json"), folder)
        harness.write_safetensors(folder / f"{STEM}.safetensors", tensors)
        return self.path(name)

    def verify(self, folder, manifest):
        ended = self.run_client(
            "checkpoint", "verify", folder, f"--manifest={manifest}",
            f"--report={self.path('report.json')}",
        )
        report = json.loads(pathlib.Path(self.path("report.json")).read_text())
        return ended, report["tasks"][0]["checkpoint"]

    def test_verify_and_manifest_in_both_layouts(self):
        manifest = self.path("manifest.json")
        written = self.run_client("checkpoint", "manifest", self.source, f"--output={manifest}")
        self.assertEqual(written.status, 0, written)
        self.assertIn("released (diffusers)", written.out)
        ended, right = self.verify(self.source, manifest)
        self.assertEqual(ended.status, 0, ended)
        self.assertIn("PASSED: 8 files", ended.out)
        self.assertIn("each byte once", ended.out)
        self.assertEqual(int(right["bytes_read"]), sum(int(f["size_bytes"]) for f in right["files"]))
        partial = self.run_client("checkpoint", "verify", self.source)
        self.assertEqual(partial.status, 0, partial)
        self.assertIn("PARTIAL: ", partial.out)
        self.assertIn("no manifest", partial.out)

        other = self.write("native", native(self.tensors))
        for part in ("vae", "audio_vae"):
            shutil.copytree(os.path.join(self.source, part), os.path.join(other, part))
        ended, found = self.verify(other, manifest)
        self.assertEqual(ended.status, 0, ended)
        self.assertIn("native (MiniMax)", ended.out)
        self.assertEqual(found["sha256"], right["sha256"])
        self.assertEqual(
            {t["name"]: (t["norm"], t["fingerprint"]) for t in found["tensors"]},
            {t["name"]: (t["norm"], t["fingerprint"]) for t in right["tensors"]},
        )

    def test_every_fault_is_named_and_the_first_two_by_the_gate(self):
        manifest = self.path("manifest.json")
        right = self.write("right", self.tensors)
        self.assertEqual(
            self.run_client("checkpoint", "manifest", right, f"--output={manifest}").status, 0
        )
        name = "time_embedder.linear_1.weight"
        dtype, shape, data = self.tensors[name]
        narrow = b"".join(data[i + 2 : i + 4] for i in range(0, len(data), 4))
        nan = b"\x00\x00\xc0\x7f"
        missing = {k: v for k, v in self.tensors.items() if k != "proj_out.bias"}
        cases = {
            "QKV_ORDER": left_interleaved(self.tensors),
            "FFN_ORDER": halves_swapped(self.tensors),
            "DIGEST_MISMATCH": {**self.tensors, name: (dtype, shape, b"\x01" + data[1:])},
            "NONFINITE": {**self.tensors, name: (dtype, shape, nan + data[4:])},
            "WRONG_TYPE": {**self.tensors, name: ("BF16", shape, narrow)},
            "MISSING_TENSOR": missing,
            "EXTRA_TENSOR": {**self.tensors, "proj_out.bios": self.tensors["proj_out.bias"]},
        }
        folders = {}
        for kind, tensors in cases.items():
            folders[kind] = self.write(kind, tensors)
            ended, report = self.verify(folders[kind], manifest)
            self.assertEqual(ended.status, 1, ended)
            self.assertIn(f"KIND_{kind}", [f["kind"] for f in report["findings"]], ended)
            self.assertIn(kind, ended.out)
        folders["TRUNCATED_FILE"] = self.write("TRUNCATED_FILE", self.tensors)
        file = pathlib.Path(folders["TRUNCATED_FILE"], "transformer", f"{STEM}.safetensors")
        file.write_bytes(file.read_bytes()[:-1])
        ended, report = self.verify(folders["TRUNCATED_FILE"], manifest)
        self.assertEqual(ended.status, 1, ended)
        self.assertEqual([f["kind"] for f in report["findings"]], ["KIND_TRUNCATED_FILE"])
        refused = self.run_client(
            "checkpoint", "manifest", folders["NONFINITE"], f"--output={self.path('none.json')}"
        )
        self.assertEqual(refused.status, 1, refused)
        self.assertFalse(os.path.exists(self.path("none.json")))

        # Captures of the right weights are all that the gate needs.
        captures = [
            f"--golden={harness.GOLDEN}/block0_fp32_cpu.safetensors",
            f"--provider=h200={harness.GOLDEN}/block0_bf16_cuda.safetensors",
        ]
        for kind, place in (("QKV_ORDER", "q_proj"), ("FFN_ORDER", "ffn_gate_up")):
            ended = self.run_client(
                "submit", "block-replay", f"--checkpoint={folders[kind]}", LAYOUT, *captures
            )
            self.assertEqual(ended.status, 1, ended)
            self.assertIn(f"first_failure: {place} (", ended.out)
        # A rule is bound to the weights that it was made with.
        rule = self.path("rule.json")
        frozen = self.run_client(
            "submit", "full-model", f"--checkpoint={right}", LAYOUT, f"--freeze-rule={rule}",
            "--providers=default,sdpa-flash,sdpa-math",
        )
        self.assertEqual(frozen.status, 0, frozen)
        for kind in ("QKV_ORDER", "FFN_ORDER"):
            ended = self.run_client(
                "submit", "full-model", f"--checkpoint={folders[kind]}", LAYOUT, f"--rule={rule}"
            )
            self.assertEqual(ended.status, 2, ended)
            self.assertIn("checkpoint", ended.error)

    def test_errors_name_the_files_that_were_typed(self):
        bad = self.path("no-manifest.json")
        pathlib.Path(bad).write_text("{}")
        ended = self.run_client("checkpoint", "verify", self.source, f"--manifest={bad}")
        self.assertEqual(ended.status, 2, ended)
        self.assertIn("--manifest", ended.error)
        self.assertNotIn("artifacts/", ended.error)
        broken = self.path("broken.safetensors")
        pathlib.Path(broken).write_bytes(b"123")
        ended = self.run_client(
            "compare", broken, f"{harness.GOLDEN}/block0_fp32_cpu.safetensors"
        )
        self.assertEqual(ended.status, 2, ended)
        self.assertIn("broken.safetensors", ended.error)
        self.assertNotIn("artifacts/", ended.error)
        ended = self.run_client("checkpoint", "verify", self.path("nowhere"))
        self.assertEqual(ended.status, 2, ended)


if __name__ == "__main__":
    unittest.main()
