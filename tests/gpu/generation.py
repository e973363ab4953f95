"""Generations at the released width and canvas (38,912 rows, 50 blocks) on GPUs.

Usage: generation.py PART FOLDER_OF_PROGRAMS
  one       one seed, two steps, saved after each
  two-gpus  two workers of one coordinator, a GPU and a seed each: steps a second of one alone and of both, every saved
            step's bytes against the same seed alone on the other GPU, and a worker killed while the other goes on
A phase that no time is left for is said to be not run. Exit status 1 if anything does not hold.
"""

import json
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

from block_replay import Failures

CONTRACT = {"num_frames": 124, "height": 768, "width": 1344, "rng": "torch-cuda:132"}
CHECKPOINT = "--checkpoint=synthetic:released:1"
TEXT_ROWS, TEXT_WIDTH = 194, 5120
LATENT_CHANNELS, LATENT_HEIGHT, LATENT_WIDTH = 24, 48, 84
SEEDS = (42, 43)
STEPS = 4
# Evaluations that a run's first step takes besides, one an input that is changed.
SENSITIVITY = 5
BUDGET_SECONDS = 530
DEADLINE_SECONDS = 400


def write_conditioning(path):
    """A prompt and a keyframe of random values, always the same."""
    values = random.Random(1)

    def normal(count):
        return struct.pack(f"<{count}f", *(values.gauss(0, 1) for _ in range(count)))

    latents = LATENT_CHANNELS * LATENT_HEIGHT * LATENT_WIDTH
    tensors = {
        "prompt_embeds": ("F32", [1, TEXT_ROWS, TEXT_WIDTH], normal(TEXT_ROWS * TEXT_WIDTH)),
        "text_token_tags": ("I64", [TEXT_ROWS], struct.pack(f"<{TEXT_ROWS}q", *[1] * TEXT_ROWS)),
        "condition_latents.0": (
            "F32",
            [1, LATENT_CHANNELS, 1, LATENT_HEIGHT, LATENT_WIDTH],
            normal(latents),
        ),
    }
    header, offset = {"__metadata__": {"anchors": "first"}}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(t[2] for t in tensors.values()))


class Service:
    """A coordinator with its workers, all ended with the context."""

    def __init__(self, programs, folder, name):
        self.programs = programs
        self.folder = os.path.join(folder, name)
        os.makedirs(self.folder)
        self.processes = []
        self.workers = {}

    def __enter__(self):
        ready = self.start("server", "--listen=127.0.0.1:0", "--http=127.0.0.1:0", "--lease-duration=5s",
                           f"--data-dir={self.folder}/data")
        self.address = ready["listen"]
        return self

    def __exit__(self, *_):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
        shutil.rmtree(os.path.join(self.folder, "data"), ignore_errors=True)

    def start(self, program, *flags, name=None):
        name = name or program
        ready_file = os.path.join(self.folder, f"{name}.ready")
        with open(os.path.join(self.folder, f"{name}.log"), "wb") as log:
            process = subprocess.Popen(
                [os.path.join(self.programs, f"plumbline-{program}"), *flags, f"--ready-file={ready_file}"],
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self.processes.append(process)
        deadline = time.monotonic() + 60
        while not os.path.exists(ready_file):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{name} is not ready:\n{self.log(name)}")
            time.sleep(0.05)
        with open(ready_file, encoding="utf-8") as file:
            ready = json.load(file)
        ready["process"] = process
        return ready

    def start_worker(self, gpu):
        """A worker pinned to one GPU."""
        name = f"gpu{gpu}"
        ready = self.start("worker", f"--server={self.address}", f"--device=cuda:{gpu}",
                           f"--state-dir={self.folder}/{name}", name=name)
        self.workers[gpu] = ready

    def log(self, name):
        path = os.path.join(self.folder, f"{name}.log")
        if not os.path.exists(path):
            return ""
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()[-3000:]

    def client(self, *words):
        ended = subprocess.run(
            [os.path.join(self.programs, "plumbline"), f"--server={self.address}", *words],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
        if ended.returncode != 0:
            raise RuntimeError(f"{' '.join(words)}: status {ended.returncode}\n{ended.stdout}{ended.stderr}")
        return ended.stdout

    def submit(self, conditioning, seeds, steps):
        path = os.path.join(self.folder, "contract.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({**CONTRACT, "seeds": list(seeds), "num_inference_steps": steps + 1}, file)
        return self.client("submit", "generation", CHECKPOINT, f"--contract={path}",
                           f"--conditioning={conditioning}", "--preflight", "--latents-only").strip()

    def tasks(self, job):
        return json.loads(self.client("report", job, "--format=json"))["tasks"]

    def saved(self, job):
        """Steps that the coordinator has, by seed."""
        found = re.findall(r"runs/\S+ +(\d+) +\S+ +(\d+)/\d+ ", self.client("runs", "list", f"--job={job}"))
        return {int(seed): int(steps) for seed, steps in found}

    def job(self, job):
        return json.loads(self.client("jobs", "get", job, "--format=json"))

    def seed_of_worker(self, job, gpu):
        """The seed whose last attempt is this worker's; None if it has none."""
        for task in self.job(job)["tasks"]:
            if task["attempts"] and task["attempts"][-1]["worker"] == self.workers[gpu]["worker"]:
                return int(task["title"].split()[-1])
        return None

    def wait(self, condition, what):
        deadline = time.monotonic() + DEADLINE_SECONDS
        while True:
            value = condition()
            if value:
                return value
            if time.monotonic() > deadline:
                logs = "".join(f"{gpu}: {self.log(f'gpu{gpu}')}" for gpu in self.workers)
                raise RuntimeError(f"not within {DEADLINE_SECONDS} s: {what}\n{logs}")
            time.sleep(0.5)

    def wait_for_end(self, job):
        def ended():
            state = self.job(job)["state"]
            return state if state not in ("JOB_STATE_QUEUED", "JOB_STATE_RUNNING") else None

        state = self.wait(ended, f"{job} has ended")
        if state != "JOB_STATE_SUCCEEDED":
            raise RuntimeError(f"{job} ended as {state}\n" + self.client("jobs", "get", job))
        return self.tasks(job)


def step_bytes(task):
    """What identifies the stored bytes of every step of a run."""
    return [
        [(output["name"], output["sha256"]) for output in step["outputs"]]
        for step in task["generation"]["steps"]
    ]


def steps_a_second(task):
    """Of those that were computed."""
    seconds = [step["seconds"] for step in task["generation"]["steps"]]
    return len(seconds) / sum(seconds)


def seed_of(task):
    return int(task["generation"]["seed"])


def gpu_memory():
    """GiB in use on each GPU."""
    ended = subprocess.run(
        ["nvidia-smi", "--query-gpu=index,memory.used", "--format=csv,noheader,nounits"],
        stdout=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    rows = [line.split(",") for line in ended.stdout.splitlines()]
    return {int(index): int(mebibytes) / 1024 for index, mebibytes in rows}


class Table:
    """What was found, printed last."""

    def __init__(self):
        self.lines = []

    def add(self, what, found):
        self.lines.append(f"  {what:<44} {found}")
        print(self.lines[-1], flush=True)

    def print(self):
        print("== generation")
        print("\n".join(self.lines))


def run_one(programs, folder, conditioning, table, failures):
    with Service(programs, folder, "one") as service:
        start = time.monotonic()
        service.start_worker(0)
        job = service.submit(conditioning, SEEDS[:1], 2)
        service.wait(lambda: service.saved(job).get(SEEDS[0]), "a step is saved")
        table.add("start to first saved step", f"{time.monotonic() - start:.1f} s")
        (task,) = service.wait_for_end(job)
        table.add("memory in use on the GPU", f"{gpu_memory().get(0, 0):.1f} GiB")
    steps = task["generation"]["steps"]
    failures.expect(len(steps) == 2, f"2 steps, not {len(steps)}")
    table.add("seconds a step", ", ".join(f"{step['seconds']:.2f}" for step in steps))
    table.add("start to end", f"{time.monotonic() - start:.1f} s, with {SENSITIVITY} checks of inputs")


class TwoGpus:
    """The phases, each on a coordinator of its own."""

    def __init__(self, programs, folder, conditioning, table, failures):
        self.programs = programs
        self.folder = folder
        self.conditioning = conditioning
        self.table = table
        self.failures = failures
        self.start = time.monotonic()
        self.alone = {}  # by seed: (GPU, bytes of the steps, steps a second)
        self.both = {}  # by seed: (GPU, bytes of the steps)
        self.killed = {}  # by seed: bytes of the steps
        self.evaluation_seconds = 15.0  # until it is known

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
            service.start_worker(gpu)
            (task,) = service.wait_for_end(service.submit(self.conditioning, [seed], STEPS))
            memory = gpu_memory().get(gpu, 0)
        rate = steps_a_second(task)
        self.evaluation_seconds = 1.02 / rate
        self.alone[seed] = (gpu, step_bytes(task), rate)
        self.table.add(f"seed {seed} alone on GPU {gpu}", f"{rate:.4f} steps/s, {memory:.1f} GiB")

    def run_both(self):
        with Service(self.programs, self.folder, "both") as service:
            for gpu in (0, 1):
                service.start_worker(gpu)
            # One after the other, so that it is known which worker takes which.
            jobs = {}
            for seed in SEEDS:
                jobs[seed] = service.submit(self.conditioning, [seed], STEPS)
                service.wait(lambda job=jobs[seed]: service.job(job)["tasks"][0]["attempts"], "it has begun")
            gpus = {service.seed_of_worker(job, gpu): gpu for job in jobs.values() for gpu in (0, 1)}
            tasks = {seed: service.wait_for_end(jobs[seed])[0] for seed in SEEDS}
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
            for gpu in (0, 1):
                service.start_worker(gpu)
            job = service.submit(self.conditioning, SEEDS, STEPS)
            service.wait(lambda: len(service.saved(job)) == 2 and min(service.saved(job).values()) >= 2,
                         "both seeds have two steps")
            lost = service.seed_of_worker(job, 0)
            service.workers[0]["process"].send_signal(signal.SIGKILL)
            killed = time.monotonic()
            tasks = {seed_of(task): task for task in service.wait_for_end(job)}
            attempts = {int(task["title"].split()[-1]): task["attempts"] for task in service.job(job)["tasks"]}
        self.killed = {seed: step_bytes(task) for seed, task in tasks.items()}
        other = next(seed for seed in SEEDS if seed != lost)
        self.failures.expect(len(attempts[other]) == 1, f"the other worker went on with seed {other}")
        last = attempts[lost][-1]
        self.failures.expect(last["worker"] == service.workers[1]["worker"],
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
    if len(sys.argv) != 3 or sys.argv[1] not in ("one", "two-gpus"):
        sys.exit(__doc__)
    part, programs = sys.argv[1:]
    os.environ.pop("PLUMBLINE_SERVER", None)
    failures, table = Failures(), Table()
    with tempfile.TemporaryDirectory(prefix="plumbline-", dir="/tmp") as folder:
        conditioning = os.path.join(folder, "conditioning.safetensors")
        write_conditioning(conditioning)
        if part == "one":
            run_one(programs, folder, conditioning, table, failures)
        else:
            TwoGpus(programs, folder, conditioning, table, failures).run()
    table.print()
    print(f"{failures.count} do not hold")
    return 1 if failures.count else 0


if __name__ == "__main__":
    sys.exit(main())
