"""A generation of so many steps that something can happen in the middle, and what must then hold."""

import json
import pathlib
import re

from tests.e2e import harness

LEASE = "--lease-duration=2s"
STEPS = 100
CONTRACT = {
    "num_frames": 5,
    "height": 96,
    "width": 128,
    "num_audio_latents": 5,
    "rng": "torch-cpu",
}


class Case(harness.Case):
    def setUp(self):
        super().setUp()
        harness.write_conditioning(self.path("conditioning.safetensors"))

    def submit(self, seed=42, steps=STEPS):
        contract = self.path(f"contract-{seed}.json")
        pathlib.Path(contract).write_text(
            json.dumps(dict(CONTRACT, seeds=[seed], num_inference_steps=steps + 1))
        )
        ended = self.run_client(
            "submit", "generation", "--checkpoint=checkpoint", "--preflight",
            f"--contract={contract}",
            f"--conditioning={self.path('conditioning.safetensors')}",
        )  # fmt: skip
        self.assertEqual(ended.status, 0, ended)
        return ended.out.strip()

    def saved_steps(self, job):
        runs = self.run_client("runs", "list", f"--job={job}").out
        return sum(int(n) for n in re.findall(r" (\d+)/\d+ ", runs))

    def attempts(self, job):
        return self.get_job(job)["tasks"][0].get("attempts", [])

    @staticmethod
    def computed(log):
        """(step, token) of every computation that a worker logged."""
        return [
            (int(step), int(token))
            for step, token in re.findall(
                r"computing step run=\S+ step=(\d+) fencing_token=(\d+) "
                r"origin=STEP_ORIGIN_COMPUTED",
                log,
            )
        ]

    def assert_nothing_stale(self, job):
        """Events are whole, and no attempt wrote after it was superseded."""
        events = self.events_of(job)
        self.assertEqual([int(each["sequence"]) for each in events], list(range(1, len(events) + 1)))
        dead = 0
        for event in events:
            dead = max(dead, event.get("attempt_superseded", {}).get("superseded_attempt", 0))
            if "step" in event or "log" in event or "progress" in event:
                self.assertGreater(event["attempt"], dead, event)
