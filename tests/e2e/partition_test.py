"""A worker that the network cuts off: its lease expires, another one goes on, and when it comes back
nothing that it then says is taken."""

import unittest

from tests.e2e import harness
from tests.e2e import link
from tests.e2e import long_generation
from tests.e2e.long_generation import LEASE
from tests.e2e.long_generation import STEPS


class PartitionTest(long_generation.Case):
    def setUp(self):
        super().setUp()
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
