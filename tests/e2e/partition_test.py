"""A worker that the network cuts off: its lease expires, another one goes on, and when it comes back
nothing that it then says is taken."""

import json
import pathlib
import re
import struct
import unittest

from tests.e2e import harness
from tests.e2e import link

LEASE = "--lease-duration=2s"
STEPS = 100
CONTRACT = {
    "seeds": [42],
    "num_frames": 5,
    "height": 96,
    "width": 128,
    "num_inference_steps": STEPS + 1,
    "num_audio_latents": 5,
    "rng": "torch-cpu",
}


class PartitionTest(harness.Case):
    def setUp(self):
        super().setUp()
        inputs = harness.read_safetensors(f"{harness.GOLDEN}/transformer_inputs.safetensors")
        capture = harness.read_safetensors(f"{harness.GOLDEN}/generation_fp32_cpu.safetensors")
        harness.write_safetensors(
            self.path("conditioning.safetensors"),
            {
                "text_token_tags": ("I64", [7], struct.pack("<7q", *[1] * 7)),
                "prompt_embeds": inputs["input.encoder_hidden_states"],
                "condition_latents.0": capture["condition_latents"],
            },
            {"anchors": "first"},
        )
        pathlib.Path(self.path("contract.json")).write_text(json.dumps(CONTRACT))
        self.start_server(LEASE)
        self.link = link.Link(self.server)
        self.addCleanup(self.link.close)

    def start_distant_worker(self, name):
        """A worker behind the link."""
        near = self.server
        self.server = self.link.address
        try:
            return self.start_worker(name)
        finally:
            self.server = near

    def submit(self):
        ended = self.run_client(
            "submit", "generation", "--checkpoint=checkpoint", "--preflight",
            f"--contract={self.path('contract.json')}",
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

    def test_one_that_comes_back_after_its_lease_expired(self):
        distant = self.start_distant_worker("distant")
        job = self.submit()
        harness.wait_until(lambda: self.saved_steps(job) >= 5, "some steps are saved")
        self.link.cut()
        harness.wait_until(
            lambda: self.attempts(job)[0].get("end") == "ATTEMPT_END_LEASE_EXPIRED",
            "the lease expires",
        )
        saved = self.saved_steps(job)
        near = self.start_worker("near")
        harness.wait_until(lambda: self.saved_steps(job) >= saved + 3, "another worker goes on")
        self.link.mend()
        self.assertEqual(self.run_client("jobs", "watch", job).status, 0)
        self.assert_nothing_stale(job)
        attempts = self.attempts(job)
        self.assertEqual(
            [each["end"] for each in attempts],
            ["ATTEMPT_END_LEASE_EXPIRED", "ATTEMPT_END_COMPLETED"],
        )
        # What was acknowledged before is not computed again, and little else is.
        first = [step for step, _ in self.computed(self.log_of(distant))]
        second = [step for step, _ in self.computed(self.log_of(near))]
        self.assertEqual(second, list(range(saved, STEPS)))
        self.assertLessEqual(max(first), saved + 1)
        run = self.get_job(job)["tasks"][0]["run"]
        self.assertEqual(self.run_client("runs", "verify", run).status, 0)
        # It is a worker like any other from here on.
        near.terminate()
        self.assertEqual(self.await_end(near), 0)
        again = self.submit()
        self.assertEqual(self.run_client("jobs", "watch", again).status, 0)
        self.assertEqual(self.attempts(again)[0]["worker"], attempts[0]["worker"])

    def test_one_that_comes_back_in_time_goes_on(self):
        self.start_distant_worker("distant")
        job = self.submit()
        for steps in (5, 20, 40):
            harness.wait_until(lambda n=steps: self.saved_steps(job) >= n, "steps are saved")
            self.link.cut()
            # Shorter than a lease, however slow this machine is.
            before = self.attempts(job)
            self.link.mend()
            self.assertEqual(len(before), 1)
        self.assertEqual(self.run_client("jobs", "watch", job).status, 0)
        self.assert_nothing_stale(job)
        self.assertEqual([e["end"] for e in self.attempts(job)], ["ATTEMPT_END_COMPLETED"])


if __name__ == "__main__":
    unittest.main()
