"""Files of tensors that the command line writes and compares, held to the captures."""

import json
import os
import unittest

from tests.e2e import harness

BLOCK = os.path.join(harness.GOLDEN, "block0_bf16_cuda.safetensors")
GOLDEN_BLOCK = os.path.join(harness.GOLDEN, "block0_fp32_cpu.safetensors")


def layout_cases():
    """{case of layouts.safetensors: --layout}"""
    with open(os.path.join(harness.GOLDEN, "golden.json"), encoding="utf-8") as file:
        cases = json.load(file)["layouts"]
    sizes = ("text_tokens", "latent_frames", "latent_height", "latent_width", "audio_latents")
    return {
        name: ",".join([*(str(case[size]) for size in sizes), "+".join(case["anchors"]) or "none"])
        for name, case in cases.items()
    }


class TensorsTest(harness.Case):
    """Embedded: the files are the same whoever computes them."""

    def test_layouts_are_the_captures_bit_for_bit(self):
        captured = harness.read_safetensors(os.path.join(harness.GOLDEN, "layouts.safetensors"))
        compared = 0
        for case, sizes in layout_cases().items():
            path = self.path(f"{case}.safetensors")
            ended = self.run_client("layout", f"--layout={sizes}", f"--save-tensors={path}")
            self.assertEqual(ended.status, 0, ended)
            tensors = harness.read_safetensors(path)
            self.assertEqual(
                set(tensors),
                {
                    "position_ids",
                    "token_tags",
                    "video_indices",
                    "audio_indices",
                    "text_indices",
                    "timestep",
                    "timestep_indices",
                },
            )
            for name, tensor in captured.items():
                if name.startswith(case + "."):
                    self.assertEqual(tensors[name[len(case) + 1 :]], tensor, name)
                    compared += 1
        self.assertEqual(compared, len(captured))

    def test_saved_tensors_have_the_names_of_a_capture(self):
        for composition in ("golden", "candidate"):
            path = self.path(f"{composition}.safetensors")
            ended = self.run_client(
                "submit",
                "block-replay",
                f"--checkpoint={harness.GOLDEN}/checkpoint",
                "--layout=7,2,6,8,5,first",
                "--backward",
                f"--composition={composition}",
                f"--save-tensors={path}",
            )
            self.assertEqual(ended.status, 0, ended)
            captured = harness.read_safetensors(GOLDEN_BLOCK if composition == "golden" else BLOCK)
            saved = harness.read_safetensors(path)
            self.assertEqual(set(saved), set(captured))
            for name, (dtype, shape, _) in captured.items():
                self.assertEqual(saved[name][:2], (dtype, shape), name)

    def test_saved_tensors_of_several_layouts_are_several_files(self):
        ended = self.run_client(
            "submit",
            "block-replay",
            "--checkpoint=synthetic:tiny",
            "--layouts=tiny",
            "--layout=7,2,6,8,5,first",
            f"--save-tensors={self.path('t.safetensors')}",
        )
        self.assertEqual(ended.status, 0, ended)
        self.assertEqual(
            sorted(name for name in os.listdir(self.folder) if name.startswith("t")),
            ["t-7_2_6_8_5_first.safetensors", "t-tiny.safetensors"],
        )

    def test_a_saved_candidate_is_judged_as_a_capture(self):
        path = self.path("candidate.safetensors")
        arguments = (
            "submit",
            "block-replay",
            "--checkpoint=synthetic:tiny",
            "--layout=7,2,6,8,5,first",
            "--backward",
        )
        self.assertEqual(self.run_client(*arguments, f"--save-tensors={path}").status, 0)
        ended = self.run_client(*arguments, f"--candidate={path}")
        self.assertEqual(ended.status, 0, ended)
        self.assertIn("PARTIAL", ended.out)
        self.assertIn("not measured", ended.out)

    def test_compare(self):
        same = self.run_client("compare", BLOCK, BLOCK)
        self.assertEqual(same.status, 0, same)
        self.assertIn("A and B are equal", same.out)
        other = self.run_client("compare", BLOCK, GOLDEN_BLOCK)
        self.assertIn("A and B differ", other.out)
        for measure in ("relative_l2", "max_abs", "max_u", "cosine", "p99.9", "sha256", "norms"):
            self.assertIn(measure, other.out)
        for name in harness.read_safetensors(BLOCK):
            self.assertIn(name, other.out)
        refused = self.run_client("compare", BLOCK, self.path("nowhere"))
        self.assertEqual(refused.status, 2, refused)
        self.assertIn("nowhere", refused.error)


if __name__ == "__main__":
    unittest.main()
