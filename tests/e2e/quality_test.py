"""Generations that are decoded and measured against the provider's."""

import json
import math
import os
import pathlib
import struct
import unittest

from tests.e2e import harness


class QualityTest(harness.Case):
    CONTRACT = {
        "seeds": [42],
        "num_frames": 22,
        "height": 96,
        "width": 128,
        "num_inference_steps": 4,
        "rng": "torch-cpu",
    }

    def setUp(self):
        super().setUp()
        self.conditioning = self.path("conditioning.safetensors")
        harness.write_conditioning(self.conditioning)

    def generate(self, *flags, **changes):
        """The job's name."""
        path = self.path(f"contract-{len(os.listdir(self.folder))}.json")
        pathlib.Path(path).write_text(json.dumps({**self.CONTRACT, **changes}), encoding="utf-8")
        ended = self.run_client(
            "submit", "generation", "--checkpoint=checkpoint", f"--contract={path}",
            f"--conditioning={self.conditioning}", *flags,
        )  # fmt: skip
        self.assertEqual(ended.status, 0, ended)
        return ended.out.strip()

    def await_job(self, name):
        def ended():
            job = self.get_job(name)
            return job if job["state"] not in ("JOB_STATE_QUEUED", "JOB_STATE_RUNNING") else None

        return harness.wait_until(ended, f"{name} ends")

    def report(self, name):
        return json.loads(self.run_client("report", name, "--format=json").out)

    def test_a_candidate_is_measured_beside_the_providers_own_spread(self):
        self.start_server()
        self.start_worker("one")
        reference = self.generate("--composition=provider")
        spread = self.generate("--composition=provider/sdpa-math")
        # Another contract only in its bounds, so that it is computed once more.
        repeat = self.generate("--composition=provider", bounds={"psnr_db_min": 29})
        # While those may still run: it waits for what it needs.
        job = self.generate(
            "--preflight", f"--against={reference}", f"--spread={spread}", f"--repeat={repeat}"
        )
        self.assertEqual(self.await_job(job)["state"], "JOB_STATE_SUCCEEDED")
        generated, compared = self.report(job)["tasks"]
        self.assertEqual(compared["title"], "quality of seed 42")
        quality = compared["generation_comparison"]
        self.assertTrue(quality["noise_equal"])
        self.assertEqual(quality["run"], generated["generation"]["run"])
        self.assertEqual(len(quality["quality"]["frames"]), 22)
        self.assertEqual(
            [gate["gate"] for gate in quality["quality"]["gates"]],
            ["finite", "psnr", "ssim", "temporal_rmse", "audio_relative_l2"],
        )
        self.assertLess(quality["quality"]["psnr_db"], 300)
        self.assertEqual(len(quality["provider_spread"]), 1)
        self.assertLess(quality["provider_spread"][0]["psnr_db"], 300)
        self.assertAlmostEqual(quality["provider_repeat"]["psnr_db"], 300)
        self.assertTrue(quality["provider_repeat"]["frames_bitwise_equal"])
        self.assertEqual(len(quality["latent_drift"]), 3)
        shown = self.run_client("report", job).out
        self.assertIn("spread: provider/sdpa-math", shown)
        self.assertIn("repeat: provider/default", shown)
        previews = [event for event in self.events_of(job) if "preview" in event]
        self.assertEqual([event["preview"].get("step", 0) for event in previews], [0, 1, 2])

        runs = [self.report(name)["tasks"][0]["generation"]["run"] for name in (job, reference)]
        ended = self.run_client("compare-media", *runs, f"--report={self.path('runs.json')}")
        self.assertIn(ended.status, (0, 1), ended)
        again = json.loads(pathlib.Path(self.path("runs.json")).read_text(encoding="utf-8"))
        self.assertEqual(again["tasks"][0]["media"]["psnr_db"], quality["quality"]["psnr_db"])
        ended = self.run_client("runs", "compare", runs[1], runs[1], "--media")
        self.assertEqual(ended.status, 0, ended)
        self.assertIn("300.00", ended.out)
        ended = self.run_client("compare-media", reference, repeat)
        self.assertEqual(ended.status, 0, ended)
        self.assertIn("Quality of seed 42", ended.out)

    def test_without_ffmpeg_the_mp4_is_made_later_and_is_the_same(self):
        self.start_server()
        without = self.start_worker("without", "--no-ffmpeg")
        job = self.generate("--composition=provider")
        self.assertEqual(self.await_job(job)["state"], "JOB_STATE_SUCCEEDED")
        self.assertTrue(self.report(job)["tasks"][0]["generation"]["media_pending"])
        roles = {each["role"]: each["name"] for each in self.get_job(job)["artifacts"]}
        self.assertNotIn("ARTIFACT_ROLE_VIDEO", roles)
        kept = roles["ARTIFACT_ROLE_KEPT_FRAMES"]
        later = self.start_client("decode", f"--kept={kept}", f"--output={self.path('later.mp4')}")
        # It waits for a worker that has what this one lacks.
        self.start_worker("with")
        self.assertEqual(self.await_end(later), 0, self.log_of(later))
        without.terminate()
        self.await_end(without)
        run = self.report(job)["tasks"][0]["generation"]["run"]
        ended = self.run_client(
            "decode", f"--latents={run}", f"--output={self.path('again.mp4')}", "--composition=golden"
        )
        self.assertEqual(ended.status, 0, ended)
        self.assertEqual(
            pathlib.Path(self.path("later.mp4")).read_bytes(),
            pathlib.Path(self.path("again.mp4")).read_bytes(),
        )

    def test_other_noise_and_other_contracts_are_refused(self):
        self.start_server()
        self.start_worker("one")
        one = self.generate("--composition=provider")
        tall = self.generate("--composition=provider", num_inference_steps=3)
        ended = self.run_client("compare-media", tall, one)
        self.assertEqual(ended.status, 2, ended)
        self.assertIn("another contract: num_inference_steps", ended.error)
        self.await_job(one)
        values = {"noise.keyframe.0": [1, 24, 1, 6, 8], "noise.video": [1, 24, 7, 6, 8],
                  "noise.audio": [74, 32]}  # fmt: skip
        noise = self.path("noise.safetensors")
        harness.write_safetensors(
            noise,
            {
                name: ("F32", shape, struct.pack(f"<{math.prod(shape)}f",
                                                 *[math.sin(i) for i in range(math.prod(shape))]))
                for name, shape in values.items()
            },
        )  # fmt: skip
        other = self.generate("--composition=provider", f"--noise={noise}")
        self.assertEqual(self.await_job(other)["state"], "JOB_STATE_SUCCEEDED")
        ended = self.run_client("compare-media", other, one)
        self.assertNotIn(ended.status, (0, 1), ended)
        self.assertIn("began with another noise.keyframe.0", ended.error)


if __name__ == "__main__":
    unittest.main()
