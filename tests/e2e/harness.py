"""Server, workers and command line as real processes, for tests that look at them from outside."""

import json
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import tempfile
import time
import unittest

# Generous: it only ever decides that a test fails.
DEADLINE_SECONDS = 120

CLIENT = os.path.abspath("client/plumbline")
SERVER = os.path.abspath("server/plumbline-server")
WORKER = os.path.abspath("worker/plumbline-worker")
# The folder of the tree itself: a worker follows no link out of its roots, and a test's files are
# links.
GOLDEN = os.path.dirname(os.path.realpath("tests/golden/golden.json"))


def wait_until(condition, what):
    """Returns the first true value of condition()."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {DEADLINE_SECONDS} s: {what}")
        time.sleep(0.02)


def own_host():
    """A loopback address that other programs, and other tests, hardly use: a port of it is still free
    when the program that had it is started again."""
    return "127.%d.%d.%d" % tuple(random.randint(1, 254) for _ in range(3))


def read_safetensors(path):
    """{name: (dtype, shape, bytes)} of a safetensors file."""
    data = pathlib.Path(path).read_bytes()
    (header_size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + header_size])
    header.pop("__metadata__", None)
    body = data[8 + header_size :]
    return {
        name: (info["dtype"], info["shape"], body[slice(*info["data_offsets"])])
        for name, info in header.items()
    }


def write_safetensors(path, tensors, metadata=None):
    """The reverse of read_safetensors."""
    header = {} if metadata is None else {"__metadata__": metadata}
    offset = 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {
            "dtype": dtype,
            "shape": shape,
            "data_offsets": [offset, offset + len(data)],
        }
        offset += len(data)
    text = json.dumps(header).encode()
    pathlib.Path(path).write_bytes(
        struct.pack("<Q", len(text)) + text + b"".join(t[2] for t in tensors.values())
    )


def write_conditioning(path, golden=GOLDEN):
    """The captured prompt, of 7 text rows, and its one keyframe."""
    inputs = read_safetensors(f"{golden}/transformer_inputs.safetensors")
    capture = read_safetensors(f"{golden}/generation_fp32_cpu.safetensors")
    write_safetensors(
        path,
        {
            "text_token_tags": ("I64", [7], struct.pack("<7q", *[1] * 7)),
            "prompt_embeds": inputs["input.encoder_hidden_states"],
            "condition_latents.0": capture["condition_latents"],
        },
        {"anchors": "first"},
    )


class Ended:
    """A command that has ended."""

    def __init__(self, process):
        self.status = process.returncode
        self.out = process.stdout
        self.error = process.stderr

    def __repr__(self):
        return f"status {self.status}\n{self.out}\n{self.error}"


class Case(unittest.TestCase):
    """A test with a folder of its own, whose processes end with it."""

    def setUp(self):
        # Short, so that sockets in it have possible names.
        self.folder = tempfile.mkdtemp(prefix="plumbline-", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.processes = []
        self.addCleanup(self._end_processes)
        self.server = None
        self.environment = dict(os.environ, PLUMBLINE_STATE_DIR=self.path("state"))
        self.environment.pop("PLUMBLINE_SERVER", None)

    def _end_processes(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self, *command, environment=None):
        """A process whose output goes to files; killed when the test ends."""
        with open(self.path(f"process-{len(self.processes)}.log"), "wb") as log:
            process = subprocess.Popen(
                command,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=dict(self.environment, **(environment or {})),
            )
        process.log_path = log.name
        self.processes.append(process)
        return process

    def start_and_await(self, ready_file, *command, environment=None):
        if os.path.exists(ready_file):
            os.remove(ready_file)
        process = self.start(*command, f"--ready-file={ready_file}", environment=environment)

        def ready():
            if process.poll() is not None:
                raise AssertionError(pathlib.Path(process.log_path).read_text())
            return os.path.exists(ready_file)

        wait_until(ready, f"{command[0]} is ready")
        return process, json.loads(pathlib.Path(ready_file).read_text())

    def start_server(self, *flags, listen=None, environment=None):
        """A coordinator; a second call goes on with the data of the first. `listen`: where it is to
        be found; otherwise at a free port of own_host()."""
        process, ready = self.start_and_await(
            self.path("server.json"),
            SERVER,
            f"--listen={listen or own_host() + ':0'}",
            "--http=127.0.0.1:0",
            f"--data-dir={self.path('server')}",
            *flags,
            environment=environment,
        )
        self.server = ready["listen"]
        return process

    def worker_command(self, name, *flags, root=GOLDEN):
        return [
            WORKER,
            f"--server={self.server}",
            f"--state-dir={self.path('worker-' + name)}",
            f"--checkpoint-root={root}",
            *flags,
        ]

    def start_worker(self, name, *flags, root=GOLDEN, environment=None):
        process, _ = self.start_and_await(
            self.path(f"worker-{name}.json"),
            *self.worker_command(name, *flags, root=root),
            environment=environment,
        )
        return process

    def client_command(self, *words):
        command = [CLIENT, *words]
        if self.server is not None:
            command.append(f"--server={self.server}")
        return command

    def run_client(self, *words):
        """Runs a command to its end."""
        return Ended(
            subprocess.run(
                self.client_command(*words),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                stdin=subprocess.DEVNULL,
                text=True,
                env=self.environment,
                cwd=self.folder,
                timeout=DEADLINE_SECONDS,
                check=False,
            )
        )

    def start_client(self, *words):
        """A command that goes on while the test does; .log_path has its output."""
        return self.start(*self.client_command(*words))

    def log_of(self, process):
        return pathlib.Path(process.log_path).read_text()

    def await_end(self, process):
        wait_until(lambda: process.poll() is not None, "the process ends")
        return process.returncode

    def job_names(self):
        lines = self.run_client("jobs", "list").out.splitlines()
        return [line.split()[0] for line in lines if line.strip().startswith("jobs/")]

    def get_job(self, name):
        return json.loads(self.run_client("jobs", "get", name, "--format=json").out)

    def events_of(self, name):
        """All events of a job that has ended."""
        watched = self.run_client("jobs", "watch", name, "--format=json")
        return [json.loads(line) for line in watched.out.splitlines()]

    def kill(self, process):
        process.send_signal(signal.SIGKILL)
        process.wait()
