"""Killed processes: a job outlives its worker and its coordinator, and no event is lost."""

import json
import os
import signal
import unittest

from tests.e2e import harness

# Seconds of work on a small machine, so that there is a middle to be killed in.
LONG_LAYOUT = "--layout=400,10,20,24,40,first"
LEASE = "--lease-duration=2s"


class RecoveryTest(harness.Case):
    def submit(self, *flags):
        ended = self.run_client("submit", "block-replay", "--checkpoint=checkpoint", *flags)
        self.assertEqual(ended.status, 0, ended)
        return ended.out.strip()

    def watch(self, name):
        """A `jobs watch` that goes on; events_so_far reads what it has printed."""
        return self.start_client("jobs", "watch", name, "--format=json")

    def events_so_far(self, watch):
        lines = self.log_of(watch).split("\n")[:-1]  # What follows the last newline is not whole.
        return [json.loads(line) for line in lines if line.startswith("{")]

    def await_work(self, watch):
        """Until the worker is in the middle of a task."""
        harness.wait_until(
            lambda: any("progress" in each or "node" in each for each in self.events_so_far(watch)),
            "the worker reports its work",
        )

    def assert_gapless(self, events):
        self.assertEqual([int(each["sequence"]) for each in events], list(range(1, len(events) + 1)))

    def test_another_worker_finishes_what_a_killed_one_began(self):
        self.start_server(LEASE)
        first = self.start_worker("a")
        name = self.submit(LONG_LAYOUT, "--layouts=tiny", "--backward")
        watch = self.watch(name)
        self.await_work(watch)
        self.kill(first)
        self.start_worker("b")
        self.assertEqual(self.await_end(watch), 0, self.log_of(watch))
        events = self.events_so_far(watch)
        self.assert_gapless(events)
        self.assertTrue(any("attempt_superseded" in each for each in events))
        job = self.get_job(name)
        self.assertEqual(job["state"], "JOB_STATE_SUCCEEDED")
        attempts = [
            attempt for task in job["tasks"] for attempt in task["attempts"]
        ]
        ends = sorted(attempt["end"] for attempt in attempts)
        self.assertEqual(
            ends,
            ["ATTEMPT_END_COMPLETED", "ATTEMPT_END_COMPLETED", "ATTEMPT_END_LEASE_EXPIRED"],
        )
        self.assertEqual(len({attempt["worker"] for attempt in attempts}), 2)
        self.assertEqual(self.run_client("report", name).status, 0)

    def test_a_killed_coordinator_loses_no_job_and_no_event(self):
        server = self.start_server()
        self.start_worker("a")
        done = self.submit("--layouts=tiny")
        self.assertEqual(self.run_client("jobs", "watch", done).status, 0)
        done_events = self.events_of(done)
        name = self.submit(LONG_LAYOUT, "--backward")
        queued = self.submit("--layouts=tiny")
        waiting = self.start_client(
            "submit", "block-replay", "--checkpoint=checkpoint", "--layouts=small", "--wait"
        )
        harness.wait_until(lambda: len(self.job_names()) == 4, "the waiting client made its job")
        watch = self.watch(name)
        self.await_work(watch)
        self.kill(server)
        acknowledged = self.events_so_far(watch)
        self.start_server(listen=self.server)
        self.assertEqual(len(self.job_names()), 4)
        # Both clients went on by themselves.
        self.assertEqual(self.await_end(watch), 0, self.log_of(watch))
        self.assertEqual(self.await_end(waiting), 0, self.log_of(waiting))
        self.assertIn("first_failure: none", self.log_of(waiting))
        events = self.events_so_far(watch)
        self.assert_gapless(events)
        self.assertEqual(events[: len(acknowledged)], acknowledged)
        self.assertEqual(self.events_of(name), events)
        self.assertEqual(self.events_of(done), done_events)
        self.assertEqual(self.run_client("jobs", "watch", queued).status, 0)
        # The worker outlived the coordinator, so its attempt did too.
        job = self.get_job(name)
        self.assertEqual(
            [attempt["end"] for attempt in job["tasks"][0]["attempts"]], ["ATTEMPT_END_COMPLETED"]
        )

    def test_ctrl_c_leaves_the_job_and_says_how_to_go_on(self):
        self.start_server()  # No worker: the job waits as long as it takes.
        waiting = self.start_client(
            "submit", "block-replay", "--checkpoint=checkpoint", "--layouts=tiny", "--wait"
        )
        (name,) = harness.wait_until(self.job_names, "the job is made")
        os.kill(waiting.pid, signal.SIGINT)
        self.assertEqual(self.await_end(waiting), 130)
        self.assertIn(f"plumbline jobs watch {name} --server={self.server}", self.log_of(waiting))
        self.assertIn(f"plumbline jobs cancel {name}", self.log_of(waiting))
        self.assertEqual(self.get_job(name)["state"], "JOB_STATE_QUEUED")
        cancelled = self.run_client("jobs", "cancel", name)
        self.assertEqual(cancelled.status, 0, cancelled)
        self.assertEqual(self.run_client("jobs", "watch", name).status, 3)
        self.assertEqual(self.get_job(name)["state"], "JOB_STATE_CANCELLED")

    def test_a_worker_that_is_told_to_end_hands_its_task_back(self):
        self.start_server()
        first = self.start_worker("a", "--grace=0")
        name = self.submit(LONG_LAYOUT, "--backward")
        watch = self.watch(name)
        self.await_work(watch)
        first.terminate()
        self.assertEqual(self.await_end(first), 0, self.log_of(first))
        self.start_worker("b")
        self.assertEqual(self.await_end(watch), 0, self.log_of(watch))
        ends = [attempt["end"] for attempt in self.get_job(name)["tasks"][0]["attempts"]]
        self.assertEqual(ends, ["ATTEMPT_END_RELEASED", "ATTEMPT_END_COMPLETED"])


if __name__ == "__main__":
    unittest.main()
