"""A coordinator, workers and the command line as processes of their own, for the parts that run at full size."""

import datetime
import glob
import json
import os
import re
import shutil
import subprocess
import time

# Generous: it only ever decides that a part fails.
DEADLINE_SECONDS = 500


class Worker:
    """A process that was started as a worker."""

    def __init__(self, process, log_path, name, start):
        self.process = process
        self.log_path = log_path
        self.name = name
        self.start = start  # seconds since the epoch

    def log(self):
        """Its lines so far, each a dictionary, with `at` in seconds since the epoch."""
        lines = []
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            for line in file:
                try:
                    entry = json.loads(line)
                except ValueError:
                    continue
                entry["at"] = seconds_of(entry["time"])
                lines.append(entry)
        return lines

    def logged(self, message, **fields):
        """The first such line that is there; None."""
        for entry in self.log():
            if entry["message"] == message and all(entry.get(key) == value for key, value in fields.items()):
                return entry
        return None

    def end(self, how):
        """Sends a signal and waits; the exit status."""
        self.process.send_signal(how)
        return self.process.wait()


def seconds_of(timestamp):
    """Of an RFC 3339 text, to the microsecond."""
    text = re.sub(r"(\.\d{6})\d+", r"\1", timestamp.replace("Z", "+00:00"))
    if "." in text:
        whole, _, rest = text.partition(".")
        digits = re.match(r"\d+", rest)[0]
        text = f"{whole}.{digits.ljust(6, '0')}{rest[len(digits):]}"
    return datetime.datetime.fromisoformat(text).timestamp()


class Service:
    """A coordinator with its workers, all ended with the context. What it stores stays in its folder, and a coordinator
    that is started there again goes on with it."""

    def __init__(self, programs, folder, name="service", roots=(), restore_from=None, lease="5s"):
        self.programs = programs
        self.folder = os.path.join(folder, name)
        self.roots = list(roots)
        self.restore_from = restore_from
        self.lease = lease
        os.makedirs(self.folder, exist_ok=True)
        self.processes = []
        self.workers = []
        self.address = None

    def __enter__(self):
        data = f"--data-dir={self.folder}/data"
        if self.restore_from is not None:
            server = os.path.join(self.programs, "plumbline-server")
            subprocess.run([server, data, f"--backup-dir={self.restore_from}", "--restore=0"], check=True)
        ready, _, _ = self._start("server", data, "--listen=127.0.0.1:0", "--http=127.0.0.1:0", f"--lease-duration={self.lease}")
        self.address = ready["listen"]
        return self

    def __exit__(self, *_):
        for process in self.processes:
            if process.poll() is None:
                process.terminate()
        for process in self.processes:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def _start(self, program, *flags, name=None):
        name = name or program
        count = len(glob.glob(os.path.join(self.folder, f"{name}-*.log"))) + 1
        log_path = os.path.join(self.folder, f"{name}-{count}.log")
        ready_file = os.path.join(self.folder, f"{name}.ready")
        if os.path.exists(ready_file):
            os.remove(ready_file)
        start = time.time()
        with open(log_path, "wb") as log:
            process = subprocess.Popen(
                [
                    os.path.join(self.programs, f"plumbline-{program}"),
                    *flags,
                    "--log-format=json",
                    f"--ready-file={ready_file}",
                ],
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self.processes.append(process)
        deadline = time.monotonic() + 60
        while not os.path.exists(ready_file):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{name} is not ready:\n{tail(log_path)}")
            time.sleep(0.02)
        with open(ready_file, encoding="utf-8") as file:
            ready = json.load(file)
        return ready, Worker(process, log_path, ready.get("worker"), start), process

    def start_worker(self, device="auto", name="worker", grace=120, flags=()):
        """A worker whose cache is its name's, so that one of another name has none."""
        roots = [f"--checkpoint-root={root}" for root in self.roots]
        _, worker, _ = self._start(
            "worker",
            f"--server={self.address}",
            f"--device={device}",
            f"--state-dir={self.folder}/{name}",
            "--metrics=127.0.0.1:0",
            "--grpc=127.0.0.1:0",
            f"--grace={grace}",
            *roots,
            *flags,
            name=name,
        )
        self.workers.append(worker)
        return worker

    def client(self, *words, accepted=(0,)):
        ended = subprocess.run(
            [os.path.join(self.programs, "plumbline"), *words, f"--server={self.address}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        if ended.returncode not in accepted:
            raise RuntimeError(f"{' '.join(words)}: status {ended.returncode}\n{ended.stdout}{ended.stderr}")
        return ended.stdout

    def report(self, job):
        return json.loads(self.client("report", job, "--format=json", accepted=(0, 1)))

    def job(self, job):
        return json.loads(self.client("jobs", "get", job, "--format=json", accepted=(0, 1)))

    def saved(self, job, besides=None):
        """Steps of a job's runs that the coordinator has, by seed; but for a run that it is only compared with."""
        found = re.findall(r"(runs/\S+) +(\d+) +\S+ +(\d+)/\d+ ", self.client("runs", "list", f"--job={job}"))
        # Names may be cut short there.
        return {int(seed): int(steps) for run, seed, steps in found if not (besides or "").startswith(run.rstrip(".…"))}

    def wait(self, condition, what, interval=0.1):
        """The first true value of condition()."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while True:
            value = condition()
            if value:
                return value
            if time.monotonic() > deadline:
                raise RuntimeError(f"not within {DEADLINE_SECONDS} s: {what}\n{self.logs()}")
            time.sleep(interval)

    def wait_for_step(self, worker, step=None):
        """Until a worker computes this step, or any."""
        wanted = {} if step is None else {"step": step}

        def computing():
            found = worker.logged("computing step", **wanted)
            if not found and (worker.logged("task ended") or worker.process.poll() is not None):
                raise RuntimeError(f"the step was not computed:\n{self.logs()}")
            return found

        self.wait(computing, "a step is under way", 0.02)

    def wait_for_end(self, job):
        """The report of a job that has succeeded."""

        def ended():
            state = self.job(job)["state"]
            return state if state not in ("JOB_STATE_QUEUED", "JOB_STATE_RUNNING") else None

        state = self.wait(ended, f"{job} has ended")
        if state != "JOB_STATE_SUCCEEDED":
            raise RuntimeError(f"{job} ended as {state}\n{self.client('jobs', 'get', job, accepted=(0, 1))}{self.logs()}")
        return self.report(job)

    def logs(self):
        return "".join(f"{worker.log_path}:\n{tail(worker.log_path)}" for worker in self.workers)


def tail(path, size=3000):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()[-size:]


def gpu_memory_bytes():
    """In use on each GPU, everything counted, by index; empty where there is none."""
    try:
        ended = subprocess.run(
            ["nvidia-smi", "--query-gpu=index,memory.used", "--format=csv,noheader,nounits"],
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
    except OSError:
        return {}
    rows = [line.split(",") for line in ended.stdout.splitlines() if "," in line]
    return {int(index): int(mebibytes) << 20 for index, mebibytes in rows}


class Table:
    """What was found, printed last."""

    def __init__(self, title):
        self.title = title
        self.lines = []

    def add(self, what, found):
        self.lines.append(f"  {what:<52} {found}")
        print(self.lines[-1], flush=True)

    def print(self):
        print(f"== {self.title}")
        print("\n".join(self.lines))
