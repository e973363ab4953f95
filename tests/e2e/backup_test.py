"""A backup taken while a generation is half done, restored: the same reports, and the generation goes on."""

import json
import pathlib
import re
import shutil
import subprocess
import unittest

from tests.e2e import harness

# So many steps that a backup falls into the middle of them.
STEPS = 90
# Of a coordinator that was restored: far above all that were given out before.
RESTORED_TOKENS = 1 << 40


def canonical(text):
    """JSON with its keys in order; other text as it is."""
    return json.dumps(json.loads(text), sort_keys=True) if text.startswith("{") else text


class BackupTest(harness.Case):
    def setUp(self):
        super().setUp()
        harness.write_conditioning(self.path("conditioning.safetensors"))

    def submit_generation(self, steps, seed=42):
        contract = self.path("contract.json")
        pathlib.Path(contract).write_text(
            json.dumps(
                {
                    "seeds": [seed],
                    "num_frames": 5,
                    "height": 96,
                    "width": 128,
                    "num_inference_steps": steps + 1,
                    "num_audio_latents": 5,
                    "rng": "torch-cpu",
                }
            )
        )
        return self.submit(
            "generation", f"--contract={contract}", "--preflight",
            f"--conditioning={self.path('conditioning.safetensors')}",
        )  # fmt: skip

    def submit(self, *words):
        ended = self.run_client("submit", *words, "--checkpoint=checkpoint")
        self.assertEqual(ended.status, 0, ended)
        return ended.out.strip()

    def await_job(self, job):
        ended = self.run_client("jobs", "watch", job)
        self.assertEqual(ended.status, 0, ended)

    def report_bytes(self, job):
        """As the coordinator tells it: the report's JSON, the job's, its events and its files."""
        found = {}
        for name, words in {
            "text": ["report", job],
            "events": ["jobs", "watch", job, "--format=json"],
        }.items():
            ended = self.run_client(*words)
            self.assertEqual(ended.status, 0, ended)
            # The order of an object's keys is the printing process's own.
            found[name] = [canonical(line) for line in ended.out.splitlines()]
        folder = self.path("evidence")
        ended = self.run_client("report", job, f"--bundle={folder}")
        self.assertEqual(ended.status, 0, ended)
        for path in pathlib.Path(folder).rglob("*"):
            # The signature is the client's, of the day.
            if path.is_file() and "signature" not in path.name:
                found[str(path.relative_to(folder))] = path.read_bytes()
        for name, words in {
            "report": ["report", job, "--format=json"],
            "job": ["jobs", "get", job, "--format=json"],
        }.items():
            ended = self.run_client(*words)
            self.assertEqual(ended.status, 0, ended)
            found[name] = canonical(ended.out)
        shutil.rmtree(folder)
        return found

    def assert_same(self, jobs, reports):
        for job, before in zip(jobs, reports):
            after = self.report_bytes(job)
            self.assertEqual(after.keys(), before.keys())
            for name, content in before.items():
                self.assertTrue(after[name] == content, f"{job}: {name} differs")

    def result_of(self, job):
        """The run, its number of steps of each origin, and everything that is fixed by what was asked."""
        (task,) = json.loads(self.run_client("report", job, "--format=json").out)["tasks"]
        generation = task["generation"]
        steps = [(step["input_digest"], step["outputs"]) for step in generation["steps"]]
        fixed = {
            "run": generation["run"],
            "noise": generation["noise"],
            "latents": generation["latents"],
            "steps": steps,
            "sensitivity": generation["sensitivity"],
            "verdict": task["verdict"],
        }
        return task, fixed

    def saved_steps(self, job):
        runs = self.run_client("runs", "list", f"--job={job}").out
        return sum(int(number) for number in re.findall(r" (\d+)/\d+ ", runs))

    def await_steps(self, job, count):
        harness.wait_until(lambda: self.saved_steps(job) >= count, f"{count} steps are saved")

    def computed(self, run):
        """Steps of a run that workers began to compute, under tokens of the restored coordinator."""
        found = []
        for process in self.processes:
            for match in re.finditer(
                r"computing step run=(\S+) step=(\d+) fencing_token=(\d+) ", self.log_of(process)
            ):
                if match[1] == run and int(match[3]) > RESTORED_TOKENS:
                    found.append(int(match[2]))
        return found

    def run_server(self, *flags):
        ended = harness.Ended(
            subprocess.run(
                [harness.SERVER, f"--data-dir={self.path('server')}", *flags],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                timeout=harness.DEADLINE_SECONDS,
                check=False,
            )
        )
        self.assertEqual(ended.status, 0, ended)
        return ended.out

    def undisturbed(self):
        """What a coordinator and a worker that nothing happens to make of the same request."""
        server = self.start_server()
        worker = self.start_worker("undisturbed")
        job = self.submit_generation(STEPS)
        self.await_job(job)
        _, fixed = self.result_of(job)
        worker.terminate()
        self.await_end(worker)
        server.terminate()
        self.await_end(server)
        shutil.rmtree(self.path("server"))
        self.processes.clear()
        return fixed

    def lose_and_restore(self, server):
        """The disk with everything but the backups is gone."""
        self.kill(server)
        shutil.move(self.path("server/backups"), self.path("backups"))
        shutil.rmtree(self.path("server"))
        self.run_server(f"--backup-dir={self.path('backups')}", "--restore=0")
        self.assertIn(": 0 problems", self.run_server("--check"))

    def assert_nothing_is_computed_twice(self, job, whole, saved):
        task, fixed = self.result_of(job)
        self.assertEqual(fixed, whole)
        self.assertEqual(self.computed(whole["run"]), list(range(saved, STEPS)))
        origins = [step["origin"] for step in task["generation"]["steps"]]
        self.assertEqual(origins.count("STEP_ORIGIN_RECOMPUTED"), 0)
        self.assertEqual(self.run_client("runs", "verify", whole["run"]).status, 0)
        self.assertIn(f"{STEPS}/{STEPS}", self.run_client("runs", "list", f"--job={job}").out)
        first, last = task["attempts"]
        self.assertEqual(first["end"], "ATTEMPT_END_LEASE_EXPIRED")
        self.assertIn("restored from a backup", first["message"])
        self.assertEqual(last["steps_replayed"], saved)
        self.assertEqual(last["steps_computed"], STEPS - saved)

    def test_the_same_reports_and_a_half_finished_generation_goes_on(self):
        whole = self.undisturbed()
        server = self.start_server()
        worker = self.start_worker("a")
        finished = [
            self.submit("block-replay", "--layouts=tiny", "--backward"),
            self.submit_generation(5, seed=7),
        ]
        for job in finished:
            self.await_job(job)
        reports = [self.report_bytes(job) for job in finished]
        self.assertIn("report.json", reports[0])

        job = self.submit_generation(STEPS)
        self.await_steps(job, 10)
        acknowledged = self.saved_steps(job)
        backup = self.run_client("runs", "backup")
        self.assertEqual(backup.status, 0, backup)
        behind = self.saved_steps(job)
        self.assertLess(behind, STEPS)
        # What comes after the backup is lost, and the worker with it.
        self.await_steps(job, min(STEPS, behind + 5))
        self.kill(worker)
        self.lose_and_restore(server)

        self.start_server(listen=self.server)
        saved = self.saved_steps(job)
        self.assertGreaterEqual(saved, acknowledged)
        self.assertLessEqual(saved, behind)
        self.assert_same(finished, reports)
        self.start_worker("b")
        self.await_job(job)
        self.assert_nothing_is_computed_twice(job, whole, saved)
        self.assert_same(finished, reports)

    def test_a_worker_that_went_on_meanwhile_writes_nothing_under_its_old_lease(self):
        whole = self.undisturbed()
        server = self.start_server()
        worker = self.start_worker("a")
        job = self.submit_generation(STEPS)
        self.await_steps(job, 10)
        self.assertEqual(self.run_client("runs", "backup").status, 0)
        behind = self.saved_steps(job)
        self.await_steps(job, min(STEPS, behind + 5))
        self.lose_and_restore(server)
        # The same process holds the task under a token that the restored store has never given out.
        self.start_server(listen=self.server)
        self.await_job(job)
        self.assertIsNone(worker.poll())
        computed = self.computed(whole["run"])
        self.assert_nothing_is_computed_twice(job, whole, computed[0])
        self.assertLessEqual(computed[0], behind)


if __name__ == "__main__":
    unittest.main()
