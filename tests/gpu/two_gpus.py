"""A seed of the released width and canvas (38,912 rows, 50 blocks) on each of two GPUs of one coordinator.

Usage: two_gpus.py PROGRAMS
Steps a second of one alone and of both, every saved step's bytes against the same seed alone on the other GPU, and a worker
killed while the other goes on. A phase that no time is left for is said to be not run. Exit status 1 if anything does not hold.
"""

import json
import os
import signal
import sys
import tempfile
import time

from block_replay import Failures
from service import Service, Table, gpu_memory_bytes
from sizes import SIZES, generation_words
from steps import step_bytes

SIZE = SIZES["released"]
SEEDS = (42, 43)
STEPS = 4
# Evaluations that a run's first step takes besides, one an input that is changed.
SENSITIVITY = 5
BUDGET_SECONDS = 530


def steps_a_second(task):
    """Of those that were computed."""
    seconds = [step["seconds"] for step in task["generation"]["steps"]]
    return len(seconds) / sum(seconds)


def seed_of(task):
    return int(task["generation"]["seed"])


def gpu_memory():
    """GiB in use on each GPU."""
    return {gpu: used / 2**30 for gpu, used in gpu_memory_bytes().items()}


class TwoGpus:
    """The phases, each on a coordinator of its own."""

    def __init__(self, programs, folder, table, failures):
        self.programs = programs
        self.folder = folder
        self.table = table
        self.failures = failures
        self.start = time.monotonic()
        self.alone = {}  # by seed: (GPU, bytes of the steps, steps a second)
        self.both = {}  # by seed: (GPU, bytes of the steps)
        self.killed = {}  # by seed: bytes of the steps
        self.evaluation_seconds = 15.0  # until it is known

    def submit(self, service, seeds):
        words = generation_words(SIZE, self.folder, STEPS, seeds=seeds)
        return service.client(*words, "--preflight", "--latents-only").strip()

    @staticmethod
    def seed_of_worker(service, job, worker):
        """The seed whose last attempt is this worker's; None if it has none."""
        for task in service.job(job)["tasks"]:
            if task["attempts"] and task["attempts"][-1]["worker"] == worker.name:
                return int(task["title"].split()[-1])
        return None

    @staticmethod
    def start_worker(service, gpu):
        """A worker pinned to one GPU."""
        return service.start_worker(f"cuda:{gpu}", f"gpu{gpu}")

    def has_time_for(self, phase, evaluations):
        left = BUDGET_SECONDS - (time.monotonic() - self.start)
        needed = evaluations * self.evaluation_seconds + 8
        if needed <= left:
            return True
        self.table.add(phase, f"not run: {needed:.0f} s needed, {left:.0f} s left")
        return False

    def run(self):
        first, second = SEEDS
        whole = STEPS + SENSITIVITY
        if self.has_time_for(f"seed {first} alone", whole):
            self.run_alone(first, 1)
        if self.has_time_for("both", whole):
            self.run_both()
        if self.has_time_for("one killed", whole + STEPS):
            self.run_killed()
        if self.has_time_for(f"seed {second} alone", whole):
            self.run_alone(second, 0)
        self.compare()

    def run_alone(self, seed, gpu):
        with Service(self.programs, self.folder, f"alone{seed}") as service:
            self.start_worker(service, gpu)
            (task,) = service.wait_for_end(self.submit(service, [seed]))["tasks"]
            memory = gpu_memory().get(gpu, 0)
        rate = steps_a_second(task)
        self.evaluation_seconds = 1.02 / rate
        self.alone[seed] = (gpu, step_bytes(task), rate)
        self.table.add(f"seed {seed} alone on GPU {gpu}", f"{rate:.4f} steps/s, {memory:.1f} GiB")

    def run_both(self):
        with Service(self.programs, self.folder, "both") as service:
            workers = [self.start_worker(service, gpu) for gpu in (0, 1)]
            # One after the other, so that it is known which worker takes which.
            jobs = {}
            for seed in SEEDS:
                jobs[seed] = self.submit(service, [seed])
                service.wait(lambda job=jobs[seed]: service.job(job)["tasks"][0]["attempts"], "it has begun")
            gpus = {self.seed_of_worker(service, job, workers[gpu]): gpu for job in jobs.values() for gpu in (0, 1)}
            tasks = {seed: service.wait_for_end(jobs[seed])["tasks"][0] for seed in SEEDS}
            memory = gpu_memory()
        self.both = {seed: (gpus[seed], step_bytes(task)) for seed, task in tasks.items()}
        rates = {seed: steps_a_second(task) for seed, task in tasks.items()}
        for seed in SEEDS:
            gpu = gpus[seed]
            self.table.add(f"seed {seed} beside the other, on GPU {gpu}",
                           f"{rates[seed]:.4f} steps/s, {memory.get(gpu, 0):.1f} GiB")
        self.failures.expect(gpus[SEEDS[0]] != gpus[SEEDS[1]], "two workers, a seed each")
        both, one = sum(rates.values()), self.alone[SEEDS[0]][2]
        self.table.add("both together against one alone", f"{both:.4f} / {one:.4f} = {both / one:.3f} (aim 1.95)")

    def run_killed(self):
        with Service(self.programs, self.folder, "killed") as service:
            workers = [self.start_worker(service, gpu) for gpu in (0, 1)]
            job = self.submit(service, SEEDS)
            service.wait(lambda: len(service.saved(job)) == 2 and min(service.saved(job).values()) >= 2,
                         "both seeds have two steps")
            lost = self.seed_of_worker(service, job, workers[0])
            workers[0].end(signal.SIGKILL)
            killed = time.monotonic()
            tasks = {seed_of(task): task for task in service.wait_for_end(job)["tasks"]}
            attempts = {int(task["title"].split()[-1]): task["attempts"] for task in service.job(job)["tasks"]}
        self.killed = {seed: step_bytes(task) for seed, task in tasks.items()}
        other = next(seed for seed in SEEDS if seed != lost)
        self.failures.expect(len(attempts[other]) == 1, f"the other worker went on with seed {other}")
        last = attempts[lost][-1]
        self.failures.expect(last["worker"] == workers[1].name,
                             f"the other worker finished seed {lost}")
        self.table.add(f"worker of GPU 0 killed amid seed {lost}",
                       f"seed {other} undisturbed; seed {lost} finished on GPU 1 {time.monotonic() - killed:.0f} s "
                       f"later, {last['steps_replayed']} steps replayed, {last['steps_computed']} computed")

    def compare(self):
        """Every phase's steps against the seed alone, or where that was not run against the other phases'."""
        for seed in SEEDS:
            found = {}
            if seed in self.alone:
                found[f"alone on GPU {self.alone[seed][0]}"] = self.alone[seed][1]
            if seed in self.both:
                found[f"beside the other on GPU {self.both[seed][0]}"] = self.both[seed][1]
            if seed in self.killed:
                found["with a worker killed"] = self.killed[seed]
            equal = len({json.dumps(each) for each in found.values()}) == 1
            self.failures.expect(equal, f"seed {seed}: the same bytes " + ", ".join(found))
            self.table.add(f"bytes of all {STEPS} steps of seed {seed}",
                           ("equal: " if equal else "DIFFER: ") + ", ".join(found))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    os.environ.pop("PLUMBLINE_SERVER", None)
    failures, table = Failures(), Table("two-gpus")
    with tempfile.TemporaryDirectory(prefix="plumbline-", dir="/tmp") as folder:
        TwoGpus(sys.argv[1], folder, table, failures).run()
    table.print()
    print(f"{failures.count} do not hold")
    return 1 if failures.count else 0


if __name__ == "__main__":
    sys.exit(main())
