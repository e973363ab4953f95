"""The machines' clocks jump by hours, forward and back, under real programs that hold leases: nothing
is lost, nothing is done twice, and no lease ends for it."""

import datetime
import json
import os
import pathlib
import struct
import time
import unittest

from tests.e2e import harness
from tests.e2e import long_generation
from tests.e2e.long_generation import LEASE
from tests.e2e.long_generation import STEPS

SHIM = os.path.abspath("tests/faults/clock_shim.so")
HOURS = 3600
LEASE_SECONDS = 2
# More than any machine computes while the clocks jump.
MANY_STEPS = 9999


class WallClock:
    """The wall clock of a machine: what programs in its environment see."""

    def __init__(self, path):
        self._path = path
        pathlib.Path(path).write_bytes(bytes(8))
        self.environment = {"LD_PRELOAD": SHIM, "CLOCK_SHIM_FILE": path}

    def set(self, seconds):
        """Seconds ahead of this machine's."""
        with open(self._path, "r+b") as file:
            file.write(struct.pack("=q", seconds * 10**9))


class ClockJumpTest(long_generation.Case):
    def setUp(self):
        super().setUp()
        self.server_clock = WallClock(self.path("server-clock"))
        self.worker_clock = WallClock(self.path("worker-clock"))

    def start_coordinator(self, **options):
        return self.start_server(
            LEASE, "--log-format=json", environment=self.server_clock.environment, **options
        )

    def hours_ahead(self, process):
        """How far ahead of this machine's the clock was by which the newest line was logged."""
        line = [line for line in self.log_of(process).splitlines() if line.startswith("{")][-1]
        logged = datetime.datetime.strptime(json.loads(line)["time"][:19], "%Y-%m-%dT%H:%M:%S")
        now = datetime.datetime.fromtimestamp(
            os.stat(process.log_path).st_mtime, datetime.timezone.utc
        ).replace(tzinfo=None)
        return round((logged - now).total_seconds() / HOURS)

    def await_steps(self, job, more):
        """Until so many more steps are saved."""
        saved = self.saved_steps(job)
        harness.wait_until(
            lambda: self.saved_steps(job) >= saved + more, f"{more} more steps are saved"
        )

    def assert_done_once(self, job, worker):
        self.assertEqual(self.run_client("jobs", "watch", job).status, 0)
        self.assert_nothing_stale(job)
        self.assertEqual([e["end"] for e in self.attempts(job)], ["ATTEMPT_END_COMPLETED"])
        steps = [step for step, _ in self.computed(self.log_of(worker))]
        self.assertEqual(steps, list(range(STEPS)))
        run = self.get_job(job)["tasks"][0]["run"]
        self.assertEqual(self.run_client("runs", "verify", run).status, 0)

    def test_a_held_lease_stays_whichever_clock_jumps(self):
        server = self.start_coordinator()
        worker = self.start_worker("a", environment=self.worker_clock.environment)
        job = self.submit(steps=MANY_STEPS)
        self.await_steps(job, 5)
        for clocks, hours in (
            ([self.worker_clock], -30),
            ([self.server_clock], -30),
            ([self.server_clock, self.worker_clock], 100),
        ):
            for clock in clocks:
                clock.set(hours * HOURS)
            jumped = time.monotonic()
            # The lease is held for longer than it would be if nobody extended it.
            self.await_steps(job, 5)
            harness.wait_until(
                lambda since=jumped: time.monotonic() > since + 1.5 * LEASE_SECONDS,
                "the time of a lease passes",
            )
            self.await_steps(job, 5)
            self.assertEqual([e["end"] for e in self.attempts(job)], ["ATTEMPT_END_UNSPECIFIED"])
        self.assertEqual(self.hours_ahead(server), 100)
        # That is told on a heartbeat.
        self.assertEqual(self.run_client("jobs", "cancel", job).status, 0)
        self.assertEqual(self.run_client("jobs", "watch", job).status, 3)
        self.assert_nothing_stale(job)
        self.assertEqual([e["end"] for e in self.attempts(job)], ["ATTEMPT_END_CANCELLED"])
        steps = [step for step, _ in self.computed(self.log_of(worker))]
        self.assertEqual(steps, list(range(len(steps))))

    def test_a_coordinator_killed_comes_back_at_another_time(self):
        server = self.start_coordinator()
        worker = self.start_worker("a", environment=self.worker_clock.environment)
        job = self.submit()
        for hours in (48, -48):
            self.await_steps(job, 10)
            self.kill(server)
            self.server_clock.set(hours * HOURS)
            server = self.start_coordinator(listen=self.server)
            self.assertEqual(self.hours_ahead(server), hours)
        self.assert_done_once(job, worker)
        # A lease that nobody extends expires all the same, and what was waited for is not missed.
        again = self.submit(seed=43)
        self.await_steps(again, 1)
        self.kill(worker)
        self.server_clock.set(-100 * HOURS)
        self.start_worker("b", environment=self.worker_clock.environment)
        self.assertEqual(self.run_client("jobs", "watch", again).status, 0)
        self.assertEqual(
            [e["end"] for e in self.attempts(again)],
            ["ATTEMPT_END_LEASE_EXPIRED", "ATTEMPT_END_COMPLETED"],
        )


if __name__ == "__main__":
    unittest.main()
