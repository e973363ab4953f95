"""Generations that are killed at every place, and end with the same bytes."""

import json
import os
import pathlib
import random
import re
import struct
import unittest

from tests.e2e import harness

LEASE = "--lease-duration=2s"
# Of the captured generation.
CONTRACT = {
    "seeds": [42],
    "num_frames": 5,
    "height": 96,
    "width": 128,
    "num_inference_steps": 6,
    "num_audio_latents": 5,
    "rng": "torch-cpu",
}
# So many steps that there is a middle to be ended in.
LONG = 120
WORKER_POINTS = [
    "worker.before_compute",
    "worker.after_compute",
    "worker.before_put",
    "worker.during_put",
    "worker.before_ack",
    "worker.after_ack",
]
# With the pass at which the coordinator dies: behind the submission, amid the steps.
STORE_POINTS = [
    "store.step_received:3",
    "store.blobs_written:3",
    "store.blobs_flushed:3",
    "store.before_commit:15",
    "store.after_commit:15",
    "store.step_recorded:3",
]


def floats(data):
    return struct.unpack(f"<{len(data) // 4}f", data)


def relative_l2(reference, x):
    difference = sum((a - b) ** 2 for a, b in zip(reference, x))
    return (difference / sum(a * a for a in reference)) ** 0.5


class GenerationTest(harness.Case):
    def setUp(self):
        super().setUp()
        self.conditioning = self.path("conditioning.safetensors")
        harness.write_conditioning(self.conditioning)

    def generation(self, *flags, **changes):
        """The words of a submit command; `changes` are the contract's."""
        path = self.path(f"contract-{len(os.listdir(self.folder))}.json")
        pathlib.Path(path).write_text(json.dumps({**CONTRACT, **changes}))
        return [
            "submit", "generation", "--checkpoint=checkpoint", f"--contract={path}",
            f"--conditioning={self.conditioning}", *flags,
        ]  # fmt: skip

    def run_generation(self, *flags, **changes):
        """Waits for the report: the tasks' reports."""
        report = self.path("report.json")
        ended = self.run_client(*self.generation(f"--report={report}", *flags, **changes))
        self.assertEqual(ended.status, 0, ended)
        return json.loads(pathlib.Path(report).read_text())["tasks"]

    def submit(self, *flags, **changes):
        ended = self.run_client(*self.generation(*flags, **changes))
        self.assertEqual(ended.status, 0, ended)
        return ended.out.strip()

    def report_of(self, job):
        ended = self.run_client("report", job, "--format=json")
        self.assertEqual(ended.status, 0, ended)
        return json.loads(ended.out)["tasks"]

    @staticmethod
    def digests(task):
        """Of everything that an uninterrupted run fixes."""
        generation = task["generation"]
        return {
            "run": generation["run"],
            "noise": generation["noise"],
            "latents": generation["latents"],
            "steps": [(step["input_digest"], step["outputs"]) for step in generation["steps"]],
        }

    def computations(self):
        """(run, step, token) of every computation that any worker logged, in order of start."""
        found = []
        for process in self.processes:
            for line in self.log_of(process).splitlines():
                match = re.search(
                    r"computing step run=(\S+) step=(\d+) fencing_token=(\d+) "
                    r"origin=STEP_ORIGIN_COMPUTED",
                    line,
                )
                if match:
                    found.append((match[1], int(match[2]), int(match[3])))
        return sorted(found, key=lambda each: each[2])

    def assert_little_is_lost(self, task):
        """No attempt computes what is saved, and none loses more than two computations."""
        run = task["generation"]["run"]
        computed = [each for each in self.computations() if each[0] == run]
        tokens = sorted({token for _, _, token in computed})
        for earlier, later in zip(tokens, tokens[1:]):
            last = max(step for _, step, token in computed if token == earlier)
            first = min(step for _, step, token in computed if token == later)
            self.assertGreaterEqual(first, last - 1, computed)

    def await_steps(self, job, count):
        """Until the coordinator has so many steps of the job's runs."""

        def saved():
            runs = self.run_client("runs", "list", f"--job={job}").out
            return sum(int(n) for n in re.findall(r" (\d+)/\d+ ", runs)) >= count

        harness.wait_until(saved, f"{count} steps are saved")

    def test_the_captured_generation(self):
        self.start_server()
        self.start_worker("a")
        tensors = self.path("tensors.safetensors")
        (task,) = self.run_generation("--composition=golden", f"--save-tensors={tensors}")
        self.assertEqual(task["verdict"]["outcome"], "OUTCOME_PASSED")
        ours = harness.read_safetensors(tensors)
        capture = harness.read_safetensors(f"{harness.GOLDEN}/generation_fp32_cpu.safetensors")
        capture.pop("condition_latents")
        self.assertEqual(ours.keys(), capture.keys())
        for name, (dtype, shape, data) in capture.items():
            self.assertEqual(ours[name][:2], (dtype, shape), name)
            if name in ("rows.0", "audio.0") or name.startswith("timestep"):
                self.assertEqual(ours[name][2], data, name)
            else:
                error = relative_l2(floats(data), floats(ours[name][2]))
                self.assertLessEqual(error, 1e-5, name)

    def test_three_seeds_on_three_workers_and_on_one(self):
        self.start_server()
        self.start_worker("a")
        seeds = {"seeds": [42, 43, 44]}
        alone = self.run_generation("--preflight", **seeds)
        self.assertEqual([task["title"] for task in alone], ["seed 42", "seed 43", "seed 44"])
        self.assertEqual(len({task["generation"]["run"] for task in alone}), 3)
        # Another coordinator, which has nothing.
        for process in self.processes:
            self.kill(process)
        os.rename(self.path("server"), self.path("server-before"))
        self.start_server()
        for name in "bcd":
            self.start_worker(name)
        together = self.run_generation("--preflight", **seeds)
        self.assertEqual(
            [self.digests(task) for task in together], [self.digests(task) for task in alone]
        )

    def reference(self, **changes):
        """An uninterrupted run, whose steps are then deleted again."""
        worker = self.start_worker("reference")
        (task,) = self.run_generation("--preflight", **changes)
        worker.terminate()
        self.assertEqual(self.await_end(worker), 0, self.log_of(worker))
        run = task["generation"]["run"]
        deleted = self.run_client("runs", "delete", run)
        self.assertEqual(deleted.status, 0, deleted)
        self.processes.remove(worker)
        return self.digests(task)

    def test_a_worker_killed_at_every_named_point(self):
        self.start_server(LEASE)
        whole = self.reference()
        for point in WORKER_POINTS:
            with self.subTest(point):
                workers = []
                job = self.submit("--preflight")
                for name, pass_ in (("a", 1), ("b", 2), ("c", 1)):
                    # It may not live as long as to be registered.
                    worker = self.start(
                        *self.worker_command(name),
                        environment={"PLUMBLINE_CRASH_POINT": f"{point}:{pass_}"},
                    )
                    self.assertEqual(self.await_end(worker), 137, self.log_of(worker))
                    workers.append(worker)
                last = self.start_worker("d")
                self.assertEqual(self.run_client("jobs", "watch", job).status, 0)
                (task,) = self.report_of(job)
                self.assertEqual(self.digests(task), whole)
                self.assert_little_is_lost(task)
                self.assertEqual(len(task["attempts"]), 4)
                last.terminate()
                self.await_end(last)
                self.run_client("jobs", "delete", job)
                self.assertEqual(self.run_client("runs", "delete", whole["run"]).status, 0)
                for worker in (*workers, last):
                    self.processes.remove(worker)

    def test_a_worker_killed_when_only_the_report_is_missing(self):
        self.start_server(LEASE)
        job = self.submit("--preflight")
        worker = self.start(
            *self.worker_command("a"),
            environment={"PLUMBLINE_CRASH_POINT": "worker.before_complete"},
        )
        self.assertEqual(self.await_end(worker), 137, self.log_of(worker))
        self.start_worker("b")
        self.assertEqual(self.run_client("jobs", "watch", job).status, 0)
        (task,) = self.report_of(job)
        self.assertEqual(len(task["attempts"]), 2)
        self.assertEqual(task["attempts"][0]["steps_computed"], 5)
        self.assertEqual(task["attempts"][1]["steps_replayed"], 5)
        # Complete, although this attempt computed nothing.
        self.assertFalse(task["generation"]["reused"])
        self.assertEqual(len(task["generation"]["sensitivity"]), 5)
        self.assertTrue(task["generation"]["trace"]["groups"])

    def test_a_coordinator_killed_at_every_named_point(self):
        server = self.start_server(LEASE)
        whole = self.reference()
        self.kill(server)
        for point in STORE_POINTS:
            with self.subTest(point):
                self.processes.clear()  # All have ended.
                server = self.start_server(LEASE, environment={"PLUMBLINE_CRASH_POINT": point})
                job = self.submit("--preflight")
                worker = self.start_worker("a")
                self.assertEqual(self.await_end(server), 137, self.log_of(server))
                # The worker waits for it and goes on.
                server = self.start_server(LEASE, listen=self.server)
                self.assertEqual(self.run_client("jobs", "watch", job).status, 0)
                (task,) = self.report_of(job)
                self.assertEqual(self.digests(task), whole)
                self.assert_little_is_lost(task)
                self.assertEqual(self.run_client("runs", "verify", whole["run"]).status, 0)
                self.run_client("jobs", "delete", job)
                self.assertEqual(self.run_client("runs", "delete", whole["run"]).status, 0)
                self.kill(worker)
                self.kill(server)

    def test_told_to_end_before_every_few_steps(self):
        self.start_server()
        whole = self.reference(num_inference_steps=LONG)
        job = self.submit("--preflight", num_inference_steps=LONG)
        preemptions = 0
        while self.get_job(job)["state"] in ("JOB_STATE_QUEUED", "JOB_STATE_RUNNING"):
            worker = self.start_worker(f"w{preemptions}")
            try:
                self.await_steps(job, min(LONG - 1, 12 * (preemptions + 1)))
            finally:
                worker.terminate()
            self.assertEqual(self.await_end(worker), 0, self.log_of(worker))
            preemptions += 1
        (task,) = self.report_of(job)
        self.assertEqual(self.digests(task), whole)
        self.assertGreater(len(task["attempts"]), 2)
        # What ran was finished and stored, so nothing was computed twice.
        computed = [step for _, step, _ in self.computations()]
        self.assertEqual(sorted(computed), list(range(LONG - 1)))
        self.assertEqual(task["generation"]["steps_computed"], LONG - 1)
        ends = [attempt["end"] for attempt in task["attempts"]]
        self.assertEqual(set(ends[:-1]), {"ATTEMPT_END_RELEASED"})

    def test_worker_and_coordinator_killed_again_and_again(self):
        seed = random.randrange(1 << 32)
        print(f"seed {seed}")
        chance = random.Random(seed)
        server = self.start_server(LEASE)
        whole = self.reference(num_inference_steps=LONG)
        job = self.submit("--preflight", num_inference_steps=LONG)
        worker = self.start_worker("a")
        for kill in range(8):
            self.await_steps(job, min(LONG - 1, chance.randrange(1, 12) + 12 * kill))
            if chance.random() < 0.5:
                self.kill(server)
                server = self.start_server(LEASE, listen=self.server)
            else:
                self.kill(worker)
                worker = self.start_worker(chance.choice("ab"))
        self.assertEqual(self.run_client("jobs", "watch", job).status, 0)
        (task,) = self.report_of(job)
        self.assertEqual(self.digests(task), whole)
        self.assert_little_is_lost(task)
        verified = self.run_client("runs", "verify", whole["run"])
        self.assertEqual(verified.status, 0, verified)

    def test_a_finished_run_is_reused_and_its_last_step_verified(self):
        self.start_server()
        self.start_worker("a")
        (first,) = self.run_generation("--preflight")
        (again,) = self.run_generation("--preflight")
        self.assertTrue(again["generation"]["reused"])
        self.assertEqual(self.digests(again), self.digests(first))
        self.assertEqual(len(self.computations()), 5)
        (verified,) = self.run_generation("--preflight", "--verify-last-step")
        self.assertEqual(verified["generation"]["steps_recomputed"], 1)
        self.assertEqual(self.digests(verified), self.digests(first))

    def test_a_flipped_bit_is_found_quarantined_and_computed_again(self):
        server = self.start_server()
        worker = self.start_worker("a")
        tensors = self.path("tensors.safetensors")
        (first,) = self.run_generation("--preflight", f"--save-tensors={tensors}")
        run = first["generation"]["run"]
        velocity = harness.read_safetensors(tensors)["velocity.video.2"][2]
        worker.terminate()
        self.await_end(worker)
        server.terminate()
        self.await_end(server)
        flipped = 0
        for path in pathlib.Path(self.path("server")).rglob("*"):
            data = bytearray(path.read_bytes()) if path.is_file() else bytearray()
            place = data.find(velocity[1000:1064])
            if place >= 0:
                data[place + 7] ^= 4
                path.write_bytes(data)
                flipped += 1
        self.assertGreater(flipped, 0, "the velocity is nowhere in the store")
        self.start_server(listen=self.server)
        self.start_worker("a")
        # The worker's own copy does not stand for the coordinator's.
        (again,) = self.run_generation("--preflight")
        self.assertEqual(again["generation"]["steps_recomputed"], 1)
        self.assertEqual(again["generation"]["steps"][2]["origin"], "STEP_ORIGIN_RECOMPUTED")
        self.assertEqual(self.digests(again), self.digests(first))
        self.assertEqual(self.run_client("runs", "verify", run).status, 0)

    def test_runs_are_listed_compared_and_deleted(self):
        self.start_server()
        self.start_worker("a")
        (candidate,) = self.run_generation("--preflight")
        (golden,) = self.run_generation("--composition=golden")
        run, other = candidate["generation"]["run"], golden["generation"]["run"]
        listed = self.run_client("runs", "list")
        self.assertIn(run[:17], listed.out)
        self.assertIn("5/5", listed.out)
        shown = self.run_client("runs", "show", run[5:15])
        self.assertIn(run, shown.out)
        self.assertIn("composition", shown.out)
        self.assertEqual(self.run_client("runs", "compare", run, run).status, 0)
        compared = self.run_client("runs", "compare", run, other)
        self.assertEqual(compared.status, 1, compared)
        self.assertIn("velocity.video", compared.out)
        # Another composition decides other numbers.
        refused = self.run_client("runs", "adopt", run, f"--from={other[5:]}")
        self.assertIn(refused.status, (2, 3), refused)
        backup = self.run_client("runs", "backup")
        self.assertEqual(backup.status, 0, backup)
        self.assertIn("Backup 1", backup.out)
        self.assertEqual(self.run_client("runs", "delete", run).status, 0)
        self.assertNotIn(run[:17], self.run_client("runs", "list").out)
        self.assertEqual(self.run_client("runs", "show", run).status, 2)

    def test_the_gate_comes_first(self):
        self.start_server()
        self.start_worker("a")
        refused = self.run_client(*self.generation("--wait"))
        self.assertEqual(refused.status, 2, refused)
        self.assertIn("gate", refused.error)
        gate = self.run_client(
            "submit", "full-model", "--checkpoint=checkpoint", "--layout=7,2,6,8,5,first"
        ).out.strip()
        # It waits until the gate has passed.
        (task,) = self.run_generation(f"--gate={gate}")
        self.assertEqual(task["generation"]["gate"], gate)
        self.assertFalse(task["generation"]["preflight"])
        other = self.run_client(
            *self.generation(f"--gate={gate}", "--composition=candidate+golden:attention", "--wait")
        )
        self.assertEqual(other.status, 2, other)
        self.assertIn("composition", other.error)

    def test_drift_against_another_generation_and_a_step_diagnosed(self):
        self.start_server()
        self.start_worker("a")
        against = self.submit("--composition=provider")
        self.assertEqual(self.run_client("jobs", "watch", against).status, 0)
        (task,) = self.run_generation("--preflight", f"--against={against}")
        drift = task["generation"]["latent_drift"]
        self.assertEqual([each["step"] for each in drift], list(range(5)))
        self.assertTrue(all(0 < each["video"] < 0.05 for each in drift), drift)
        run = task["generation"]["run"]
        for composition, sentence in (("candidate", "bit for bit"), ("golden", "NOT JUDGED")):
            ended = self.run_client(
                "submit", "diagnostic", f"--run={run}", "--step=2", "--wait",
                f"--composition={composition}",
            )  # fmt: skip
            self.assertEqual(ended.status, 0, ended)
            self.assertIn(sentence, ended.out)

    def test_every_control_is_caught(self):
        self.start_server()
        self.start_worker("a")
        faults = self.run_client("faults", "--job=generation").out.splitlines()
        self.assertEqual(len(faults), 3)
        for line in faults:
            name, place, _ = line.split("\t")
            ended = self.run_client(*self.generation(f"--inject={name}", "--preflight", "--wait"))
            self.assertEqual(ended.status, 1, ended)
            self.assertIn(f"first_failure: {place}", ended.out)

    def test_without_a_server(self):
        words = self.generation("--composition=golden")
        words[2] = f"--checkpoint={harness.GOLDEN}/checkpoint"
        ended = self.run_client(*words)
        self.assertEqual(ended.status, 0, ended)
        self.assertIn("5 computed, 0 replayed", ended.out)
        again = self.run_client(*words)
        self.assertEqual(again.status, 0, again)
        self.assertIn("the finished run was there already", again.out)


if __name__ == "__main__":
    unittest.main()
