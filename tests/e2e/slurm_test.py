"""Workers as jobs of a real Slurm that preempts them."""

import json
import os
import pathlib
import re
import signal
import subprocess

from tests.e2e import case_results
from tests.e2e import harness
from tests.e2e import slurm_cluster

SEEDS = [42, 43, 44]
CONTRACT = {
    "seeds": SEEDS,
    "num_frames": 22,
    "height": 96,
    "width": 128,
    "num_inference_steps": 121,
    "rng": "torch-cpu",
}
STEPS = CONTRACT["num_inference_steps"] - 1
# One worker is preempted, and then both, twice.
LEAST_PREEMPTIONS = 5
# A name that is found wherever it gets to.
JOB_NAME = "job name%j 'of' a-newcomer"
RELEASED = "ATTEMPT_END_RELEASED"


def seconds(timestamp):
    """A time of the API's JSON, within its day."""
    hours, minutes, rest = re.search(r"T(\d+):(\d+):([\d.]+)Z", timestamp).groups()
    return int(hours) * 3600 + int(minutes) * 60 + float(rest)


class WorkersCase(slurm_cluster.SlurmCase):
    """Submits and watches workers."""

    def setUp(self):
        super().setUp()
        harness.write_conditioning(self.path("conditioning.safetensors"))
        pathlib.Path(self.path("contract.json")).write_text(json.dumps(CONTRACT))
        os.mkdir(self.path("no plug-ins"))
        # Workers are stopped for as long as the scheduler takes: no lease is to end meanwhile.
        self.start_server("--lease-duration=10m")

    def worker_flags(self):
        return ["--device=cpu", "--threads=1", f"--checkpoint-root={harness.GOLDEN}",
                "--plugins", self.path("no plug-ins")]  # fmt: skip

    def submit_workers(self, count):
        """The array's number."""
        ended = self.run_slurm(
            harness.CLIENT, "cluster", "slurm", "submit", f"--server={self.server}",
            f"--workers={count}", "--partition=low",
            f"--name={JOB_NAME}", f"--worker={harness.WORKER}",
            f"--state-root={self.path('state root')}", "--", *self.worker_flags(),
        )  # fmt: skip
        self.assertEqual(ended.status, 0, ended)
        self.assertIn(f"slurm cancel {ended.out.strip()}", ended.error)
        return ended.out.strip()

    def submit_generation(self):
        ended = self.run_client(
            "submit", "generation", "--checkpoint=checkpoint", "--contract=contract.json",
            "--conditioning=conditioning.safetensors", "--preflight", "--latents-only",
        )  # fmt: skip
        self.assertEqual(ended.status, 0, ended)
        return ended.out.strip()

    def report_of(self, job):
        ended = self.run_client("report", job, "--format=json")
        self.assertEqual(ended.status, 0, ended)
        return json.loads(ended.out)["tasks"]

    def attempts(self, job):
        return [
            attempt for task in self.get_job(job)["tasks"] for attempt in task.get("attempts", [])
        ]

    def running(self, job):
        return [attempt for attempt in self.attempts(job) if "end_time" not in attempt]

    def log_of_worker(self, array, number):
        path = pathlib.Path(self.path("state root"), "logs", f"plumbline-{array}_{number}.log")
        return path.read_text(errors="replace") if path.exists() else ""

    @staticmethod
    def variables_of(pid):
        words = pathlib.Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
        return dict(word.split("=", 1) for word in words.split("\0") if "=" in word)

    def number_of(self, pid):
        """Of a worker in its array; -1 once it has ended."""
        try:
            return int(self.variables_of(pid)["SLURM_ARRAY_TASK_ID"])
        except (OSError, KeyError):
            return -1

    def workers(self):
        """PIDs of workers that run in jobs."""
        found = []
        for pid in self.processes_of_jobs():
            try:
                program = os.readlink(f"/proc/{pid}/exe")
            except OSError:
                continue
            if os.path.basename(program) == "plumbline-worker":
                found.append(pid)
        return found


class PreemptionTest(WorkersCase):
    REQUEUE = "RequeueExit=85"

    def undisturbed(self):
        """What three seeds are on workers that nobody ends; afterwards the coordinator has none of it."""
        plain = [self.start_worker(name, *self.worker_flags()) for name in "ab"]
        job = self.submit_generation()
        self.assertEqual(self.run_client("jobs", "watch", job).status, 0)
        tasks = self.report_of(job)
        for worker in plain:
            worker.terminate()
            self.assertEqual(self.await_end(worker), 0, self.log_of(worker))
        for task in tasks:
            self.assertEqual(self.run_client("runs", "delete", task["generation"]["run"]).status, 0)
        return tasks

    @staticmethod
    def digests(task):
        generation = task["generation"]
        return {
            "title": task["title"],
            "run": generation["run"],
            "noise": generation["noise"],
            "latents": generation["latents"],
            "steps": [(step["input_digest"], step["outputs"]) for step in generation["steps"]],
        }

    def preempt(self, array, gpus):
        """A job that outranks the workers takes so many of their GPUs while they compute. The numbers of those that it
        was; the others stand still until let_go()."""
        numbers = {}
        for pid in self.workers():
            os.kill(pid, signal.SIGSTOP)  # Where they are now, however long the scheduler takes.
            numbers[self.number_of(pid)] = pid
        before = {n: self.log_of_worker(array, n).count("told to end") for n in numbers}
        high = self.sbatch("--partition=high", f"--gres=gpu:{gpus}", "--wrap=true")
        told = set()

        def has_run():
            for number, pid in numbers.items():
                if number in told:
                    continue
                if self.log_of_worker(array, number).count("told to end") > before[number]:
                    told.add(number)
                    os.kill(pid, signal.SIGCONT)
            return self.job(high)["JobState"] == "COMPLETED"

        self.wait_until(has_run, "the job that preempts has run")
        self.assertGreaterEqual(len(told), gpus)
        return told

    def both_hold_a_task(self, job):
        """Whether they do; whoever does stands still until let_go(), so that nobody gets ahead of who is not back."""
        running = self.running(job)
        numbers = {self.number_of(pid): pid for pid in self.workers()}
        for attempt in running:
            pid = numbers.get(int(attempt["labels"]["slurm_array_task_id"]))
            if pid is not None:
                os.kill(pid, signal.SIGSTOP)
        return len(running) == 2

    def let_go(self):
        for pid in self.workers():
            os.kill(pid, signal.SIGCONT)

    def test_preempted_workers_finish_with_the_bytes_of_an_undisturbed_run(self):
        whole = self.undisturbed()
        array = self.submit_workers(2)
        self.wait_until(lambda: len(self.workers()) == 2, "two workers run")
        job = self.submit_generation()
        self.two_workers_have_two_devices(array, job)

        preempted = 0
        for gpus in (1, 2, 2):
            self.preempt_when_both_compute(array, job, gpus, preempted)
            preempted = self.released(job)
        self.assertGreaterEqual(preempted, LEAST_PREEMPTIONS)
        self.assertEqual(self.run_client("jobs", "watch", job).status, 0)

        tasks = self.report_of(job)
        self.assertEqual(
            [self.digests(task) for task in tasks], [self.digests(task) for task in whole]
        )
        self.assertEqual([task["title"] for task in tasks], [f"seed {seed}" for seed in SEEDS])
        self.the_attempts_show_it(array, tasks, preempted)
        self.nothing_of_the_cluster_is_evidence(job)
        self.a_cancelled_worker_is_not_queued_again(array)

    def released(self, job):
        return [attempt.get("end") for attempt in self.attempts(job)].count(RELEASED)

    def preempt_when_both_compute(self, array, job, gpus, preempted):
        # Those that were preempted are back; nobody has got to the third seed meanwhile.
        self.wait_until(lambda: self.both_hold_a_task(job), "both workers have a task")
        self.assertEqual(len(self.attempts(job)), preempted + 2)
        self.let_go()
        saved = self.saved_steps(job)
        self.wait_until(lambda: self.saved_steps(job) >= saved + 2, "steps are saved")
        told = self.preempt(array, gpus)
        self.wait_until(
            lambda: self.released(job) == preempted + len(told), "their tasks were handed back"
        )

    def saved_steps(self, job):
        runs = self.run_client("runs", "list", f"--job={job}").out
        return sum(int(count) for count in re.findall(r" (\d+)/\d+ ", runs))

    def two_workers_have_two_devices(self, array, job):
        """By what each was given, claimed and registered, and by what happens to a third."""
        self.wait_until(lambda: self.both_hold_a_task(job), "both workers have a task")
        given = [self.variables_of(pid)["CUDA_VISIBLE_DEVICES"] for pid in self.workers()]
        self.assertEqual(sorted(given), ["0", "1"])
        registered = self.run_client("workers", "list").out
        for device in ("slurm-gpu-0", "slurm-gpu-1"):
            self.assertEqual(registered.count(f"device={device}"), 1, registered)
        # Who comes with a GPU that is taken, whatever told it so, gets nowhere.
        for gpu in ("0", "1"):
            third = subprocess.run(
                self.worker_command("third", "--device=cpu", "--preempted-exit-status=85"),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                env=dict(self.environment, SLURM_JOB_GPUS=gpu),
                timeout=harness.DEADLINE_SECONDS,
                check=False,
            )
            self.assertEqual(third.returncode, 75, third.stdout)
            self.assertIn(f'has "slurm-gpu-{gpu}"', third.stdout)
        status = self.run_client("cluster", "slurm", "status", array)
        self.assertEqual(status.status, 0, status)
        self.assertEqual(len(re.findall(rf"{array}_[01] +RUNNING +low +{slurm_cluster.NODE}",
                                        status.out)), 2, status)  # fmt: skip

    def the_attempts_show_it(self, array, tasks, preempted):
        attempts = [attempt for task in tasks for attempt in task["attempts"]]
        ends = [attempt.get("end") for attempt in attempts]
        self.assertEqual(ends.count(RELEASED), preempted, attempts)
        self.assertEqual(len(attempts), preempted + len(SEEDS), attempts)
        # Two workers that stayed themselves, as one process after another; the last need not have got a task.
        incarnations = {}
        for attempt in attempts:
            incarnations.setdefault(attempt["worker"], set()).add(attempt["incarnation"])
        self.assertEqual(len(incarnations), 2, attempts)
        self.assertGreater(sum(len(each) for each in incarnations.values()), preempted, attempts)
        restarts = []
        for attempt in attempts:
            labels = attempt["labels"]
            self.assertEqual(labels["slurm_array_job_id"], array)
            self.assertEqual(labels["slurm_job_name"], JOB_NAME)
            self.assertEqual(labels["slurm_node"], slurm_cluster.NODE)
            self.assertEqual(labels["device"], "slurm-gpu-" + labels["cuda_visible_devices"])
            restarts.append(int(labels.get("slurm_restart_count", 0)))
        self.assertLessEqual({0, 1, 2}, set(restarts), attempts)
        # At no time did two attempts have one device.
        for device in ("slurm-gpu-0", "slurm-gpu-1"):
            times = sorted(
                (seconds(attempt["start_time"]), seconds(attempt["end_time"]))
                for attempt in attempts
                if attempt["labels"]["device"] == device
            )
            self.assertTrue(times, attempts)
            for (_, end), (start, _) in zip(times, times[1:]):
                self.assertLess(end, start, attempts)
        # What ran was finished and stored each time: no step was computed twice.
        for task in tasks:
            computed = [attempt.get("steps_computed", 0) for attempt in task["attempts"]]
            self.assertEqual(sum(computed), STEPS, task["attempts"])

    def nothing_of_the_cluster_is_evidence(self, job):
        bundle = self.path("bundle")
        ended = self.run_client("report", job, f"--bundle={bundle}")
        self.assertEqual(ended.status, 0, ended)
        self.assertIn("slurm_restart_count=2", ended.out)
        self.assertIn(JOB_NAME, ended.out)
        for file in pathlib.Path(bundle).iterdir():
            text = file.read_text()
            for name in (JOB_NAME, slurm_cluster.NODE, "slurm"):
                self.assertNotIn(name, text, file)

    def a_cancelled_worker_is_not_queued_again(self, array):
        self.wait_until(lambda: len(self.workers()) == 2, "both workers run again")
        cancelled = self.run_client("cluster", "slurm", "cancel", array)
        self.assertEqual(cancelled.status, 0, cancelled)
        for number in (0, 1):
            self.wait_until(
                lambda: self.job(f"{array}_{number}")["JobState"] == "CANCELLED",
                "the worker is cancelled",
            )
            self.wait_until(
                lambda: "the worker ended with status 85" in
                self.log_of_worker(array, number).rsplit("restart", 1)[1],
                "the worker ends in good order",
            )
        self.wait_until(lambda: not self.processes_of_jobs(), "nothing of the workers runs")
        # The controller has heard of the scripts' ends, and leaves it at that.
        self.wait_until(
            lambda: self.run_slurm("squeue", "--noheader", "--me").out == "", "nothing is queued"
        )
        for number in (0, 1):
            self.assertEqual(self.job(f"{array}_{number}")["JobState"], "CANCELLED")


class OwnRequeueTest(WorkersCase):
    """Where the site's RequeueExit does not have the script's status."""

    REQUEUE = "RequeueExit=1-84,86"

    def test_the_script_asks_for_the_requeue_and_not_after_a_cancel(self):
        array = self.submit_workers(1)
        worker = f"{array}_0"
        self.wait_until(self.workers, "the worker runs")
        high = self.sbatch("--partition=high", "--gres=gpu:2", "--wrap=true")
        self.wait_until(
            lambda: self.job(high)["JobState"] == "COMPLETED", "the job that preempts has run"
        )
        self.wait_until(
            lambda: self.job(worker)["JobState"] == "RUNNING" and self.workers(),
            "the worker runs again",
        )
        self.assertEqual(self.job(worker)["Restarts"], "1")
        self.assertIn("is queued again", self.log_of_worker(array, 0))
        self.assertEqual(self.run_client("cluster", "slurm", "cancel", worker).status, 0)
        self.wait_until(lambda: not self.processes_of_jobs(), "nothing of the worker runs")
        self.wait_until(
            lambda: self.run_slurm("squeue", "--noheader", "--me").out == "", "nothing is queued"
        )
        self.assertEqual(self.job(worker)["JobState"], "CANCELLED")
        self.assertRegex(self.log_of_worker(array, 0), r"is (COMPLETING|gone): not queued again")


if __name__ == "__main__":
    case_results.main()
