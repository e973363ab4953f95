"""Latents decoded by real programs: to the captured video, and to the same bytes after a kill."""

import json
import os
import pathlib
import struct
import unittest

from tests.e2e import harness

LEASE = "--lease-duration=2s"
TILES = ["--tile=48", "--tile-overlap=16"]
POINTS = [
    "worker.after_decode",
    "worker.before_put:2",
    "worker.during_put:2",
    "worker.before_ack:2",
    "worker.after_ack:2",
    "worker.before_complete",
]
CONTRACT = {
    "seeds": [42],
    "num_frames": 22,
    "height": 96,
    "width": 128,
    "num_inference_steps": 4,
    "num_audio_latents": 5,
    "rng": "torch-cpu",
}


def floats(data):
    return struct.unpack(f"<{len(data) // 4}f", data)


def relative_l2(reference, x):
    difference = sum((a - b) ** 2 for a, b in zip(reference, x))
    return (difference / sum(a * a for a in reference)) ** 0.5


class DecodeTest(harness.Case):
    def setUp(self):
        super().setUp()
        video = harness.read_safetensors(f"{harness.GOLDEN}/video_vae_io.safetensors")
        audio = harness.read_safetensors(f"{harness.GOLDEN}/audio_vae_io.safetensors")
        self.expected = (video["decoded_tiled"], audio["decoded"])
        self.latents = self.path("latents.safetensors")
        harness.write_safetensors(
            self.latents, {"latents.video": video["z"], "latents.audio": audio["z"]}
        )

    def decode(self, out, *flags):
        report = self.path("report.json")
        ended = self.run_client(
            "decode", "--checkpoint=checkpoint", f"--latents={self.latents}", f"--output={out}",
            f"--report={report}", *TILES, *flags,
        )  # fmt: skip
        self.assertEqual(ended.status, 0, ended)
        return json.loads(pathlib.Path(report).read_text())["tasks"][0]["decode"]

    def conditioning(self):
        path = self.path("conditioning.safetensors")
        harness.write_conditioning(path)
        return path

    def test_gives_the_captured_frames_and_samples(self):
        self.start_server()
        self.start_worker("a")
        out = self.path("decoded.safetensors")
        report = self.decode(out, f"--output={self.path('sound.wav')}", f"--output={self.path('a.png')}")
        made = harness.read_safetensors(out)
        video, audio = self.expected
        self.assertEqual(made["decoded"][1], video[1])
        self.assertLess(relative_l2(floats(video[2]), floats(made["decoded"][2])), 1e-5)
        self.assertEqual(made["samples"][1], [2, 7200])
        self.assertLess(relative_l2(floats(audio[2]), floats(made["samples"][2])), 1e-5)
        self.assertEqual(made["frames"][1], [39, 64, 80, 3])
        self.assertEqual((report["tile_rows"], report["tile_columns"]), ([0, 16], [0, 32]))
        self.assertEqual(pathlib.Path(self.path("sound.wav")).read_bytes()[:4], b"RIFF")
        self.assertEqual(pathlib.Path(self.path("a.png")).read_bytes()[1:4], b"PNG")

        # Once more it is all there.
        again = self.path("again.safetensors")
        self.assertEqual(self.decode(again)["units_kept"], 3)
        self.assertEqual(pathlib.Path(again).read_bytes(), pathlib.Path(out).read_bytes())

        # 8 bits, and another way of decoding.
        small = self.path("small.safetensors")
        self.decode(small, "--frames=u8", "--composition=candidate")
        self.assertEqual(harness.read_safetensors(small)["frames"][0], "U8")

    def test_a_killed_worker_leaves_the_same_media(self):
        self.start_server(LEASE)
        worker = self.start_worker("whole")
        whole = self.path("whole.safetensors")
        self.decode(whole, "--composition=candidate")
        worker.kill()
        for i, point in enumerate(POINTS):
            # Another fps is another job and the same identity, so the server is another one.
            for process in self.processes:
                process.kill()
                process.wait()
            os.rename(self.path("server"), self.path(f"server-{i}"))
            self.start_server(LEASE)
            killed = self.start_worker("killed", environment={"PLUMBLINE_CRASH_POINT": point})
            out = self.path(f"{i}.safetensors")
            client = self.start_client(
                "decode", "--checkpoint=checkpoint", f"--latents={self.latents}", f"--output={out}",
                "--composition=candidate", f"--report={self.path(f'{i}.json')}", *TILES,
            )  # fmt: skip
            self.assertEqual(self.await_end(killed), 137, point)
            self.start_worker("next")
            self.assertEqual(self.await_end(client), 0, self.log_of(client))
            self.assertEqual(pathlib.Path(out).read_bytes(), pathlib.Path(whole).read_bytes())
            task = json.loads(pathlib.Path(self.path(f"{i}.json")).read_text())["tasks"][0]
            kept = {"worker.after_decode": 0, "worker.before_complete": 3}
            self.assertGreaterEqual(task["decode"]["units_kept"], kept.get(point, 1), point)

    def test_a_generation_ends_with_its_media(self):
        self.start_server(LEASE)
        contract = self.path("contract.json")
        pathlib.Path(contract).write_text(json.dumps(CONTRACT))
        words = [
            "submit", "generation", "--checkpoint=checkpoint", f"--contract={contract}",
            f"--conditioning={self.conditioning()}", "--composition=golden", "--wait",
            f"--report={self.path('generation.json')}",
        ]  # fmt: skip
        # Three steps, then the sound; the worker dies behind the clip.
        killed = self.start_worker(
            "killed", environment={"PLUMBLINE_CRASH_POINT": "worker.after_decode:2"}
        )
        client = self.start_client(*words)
        self.assertEqual(self.await_end(killed), 137)
        self.start_worker("next")
        self.assertEqual(self.await_end(client), 0, self.log_of(client))
        task = json.loads(pathlib.Path(self.path("generation.json")).read_text())["tasks"][0]
        generation = task["generation"]
        self.assertEqual(generation["not_decoded"], "")
        self.assertEqual(generation["decoded"]["frames"], 22)
        self.assertEqual(generation["decoded"]["units_kept"], 1)
        # What is decoded is no step, and the task's run is the generation's.
        self.assertEqual(generation["steps_computed"], 3)
        self.assertEqual(len(generation["steps"]), 3)
        roles = {artifact["role"] for artifact in task["artifacts"]}
        self.assertIn("ARTIFACT_ROLE_FRAMES", roles)
        self.assertTrue(roles & {"ARTIFACT_ROLE_VIDEO", "ARTIFACT_ROLE_KEPT_FRAMES"})

        # The run by its name, decoded as the generation has.
        out = self.path("run.safetensors")
        ended = self.run_client(
            "decode", f"--latents={generation['run']}", f"--output={out}",
            f"--report={self.path('run.json')}",
        )  # fmt: skip
        self.assertEqual(ended.status, 0, ended)
        decode = json.loads(pathlib.Path(self.path("run.json")).read_text())["tasks"][0]["decode"]
        self.assertEqual(decode["units_kept"], 2)
        digests = {t["name"]: t["sha256"] for t in generation["decoded"]["tensors"]}
        for tensor in decode["tensors"]:
            if tensor["name"] in digests:
                self.assertEqual(tensor["sha256"], digests[tensor["name"]], tensor["name"])

    def test_bad_requests_are_named(self):
        self.start_server()
        self.start_worker("a")
        out = f"--output={self.path('x.safetensors')}"
        few = self.path("few.safetensors")
        harness.write_safetensors(
            few, {"z": ("F32", [1, 24, 2, 4, 4], bytes(4 * 24 * 2 * 4 * 4))}
        )
        base = ["decode", "--checkpoint=checkpoint"]
        for words, named in [
            ([*base, f"--latents={few}", out], "2 latent frames make no clip"),
            ([*base, f"--latents={self.latents}", out, "--tile=250"], "--tile"),
            ([*base, f"--latents={self.latents}", out, "--tile=256", "--tile-overlap=200"],
             "--tile-overlap"),
            ([*base, f"--latents={self.latents}", out, "--composition=golden+candidate:nothing"],
             "nothing"),
            ([*base, f"--latents={self.latents}", out, "--fps=0"], "--fps"),
            (["decode", "--checkpoint=synthetic:none", f"--latents={self.latents}", out],
             "--checkpoint"),
            (["decode", "--latents=" + "0" * 64, out], "0" * 8),
        ]:  # fmt: skip
            ended = self.run_client(*words)
            self.assertEqual(ended.status, 2, ended)
            self.assertIn(named, ended.error)
            self.assertFalse(os.path.exists(self.path("x.safetensors")))


if __name__ == "__main__":
    unittest.main()
