"""The main job, end to end: server, worker and command line as three processes."""

import json
import unittest

from tests.e2e import harness

CHECKPOINT = "checkpoint"  # under the worker's root


class BlockReplayTest(harness.Case):
    def setUp(self):
        super().setUp()
        self.start_server()
        self.start_worker("a")

    def submit(self, *flags):
        return self.run_client("submit", "block-replay", f"--checkpoint={CHECKPOINT}", *flags)

    def test_a_candidate_that_passes(self):
        ended = self.submit(
            "--layouts=tiny",
            "--layout=7,2,6,8,5,first",
            "--backward",
            "--wait",
            f"--report={self.path('report.json')}",
        )
        self.assertEqual(ended.status, 0, ended)
        self.assertEqual(ended.error, "")
        self.assertTrue(ended.out.endswith("first_failure: none\n"), ended)
        self.assertNotIn("\033", ended.out)
        self.assertTrue(ended.out.isascii(), ended)
        self.assertLessEqual(max(map(len, ended.out.splitlines())), 100)
        for place in ("Layout tiny", "Layout 7,2,6,8,5,first", "q_proj.grad", "leaf.temb"):
            self.assertIn(place, ended.out)
        with open(self.path("report.json"), encoding="utf-8") as file:
            report = json.load(file)
        self.assertEqual(report["verdict"]["outcome"], "OUTCOME_PASSED")
        self.assertEqual(len(report["tasks"]), 2)
        entries = report["tasks"][0]["block_replay"]["entries"]
        self.assertEqual(len(entries), 17 + 17 + 14)
        self.assertTrue(all(entry["passed"] for entry in entries))
        # The same report later, by name.
        later = self.run_client("report", report["job"])
        self.assertEqual(later.status, 0)
        self.assertEqual(later.out, ended.out)

    def test_every_fault_is_found_where_it_was_put(self):
        faults = self.run_client("faults", "--job=block-replay").out.splitlines()
        self.assertEqual(len(faults), 11)
        for line in faults:
            name, place, sentence = line.split("\t")
            ended = self.submit("--layouts=tiny", "--backward", f"--inject={name}", "--wait")
            self.assertEqual(ended.status, 1, (name, ended))
            self.assertIn(f"first_failure: {place} (", ended.out.splitlines()[-1], name)
            self.assertIn(f"{name} caught at {place}", ended.out)
            self.assertTrue(sentence.endswith("."), sentence)

    def test_submit_without_wait_prints_the_name(self):
        ended = self.submit("--layouts=tiny", "--label=team=kernels")
        self.assertEqual(ended.status, 0, ended)
        name = ended.out.strip()
        self.assertEqual(name.count("\n"), 0)
        watched = self.run_client("jobs", "watch", name)
        self.assertEqual(watched.status, 0, watched)
        self.assertIn("layout tiny", watched.out)
        listed = self.run_client("jobs", "list", "--label=team=kernels", "--state=succeeded")
        self.assertIn(name, listed.out)
        self.assertNotIn(name, self.run_client("jobs", "list", "--label=team=other").out)
        self.assertEqual(self.run_client("jobs", "cancel", name).status, 2)  # It has ended.
        self.assertEqual(self.run_client("jobs", "delete", name).status, 0)
        self.assertEqual(self.run_client("report", name).status, 2)

    def test_a_hybrid_says_what_it_is(self):
        ended = self.submit("--layouts=tiny", "--composition=candidate+provider:attention", "--wait")
        self.assertEqual(ended.status, 0, ended)
        self.assertIn("hybrid composition: diagnostic only", ended.out)

    def test_jobs_compare(self):
        names = [
            self.submit("--layouts=tiny", *flags).out.strip()
            for flags in ((), ("--composition=candidate+provider:attention",))
        ]
        for name in names:
            self.assertEqual(self.run_client("jobs", "watch", name).status, 0)
        compared = self.run_client("jobs", "compare", *names)
        self.assertEqual(compared.status, 0, compared)
        self.assertIn("composition", compared.out)
        self.assertIn("attention", compared.out)

    def test_workers_list_and_drain(self):
        listed = self.run_client("workers", "list")
        self.assertEqual(listed.status, 0, listed)
        rows = [line.split() for line in listed.out.splitlines() if "workers/" in line]
        self.assertEqual(len(rows), 1, listed)
        self.assertEqual(rows[0][1], "active")
        self.assertEqual(self.run_client("workers", "drain", rows[0][0]).status, 0)
        self.assertEqual(self.await_end(self.processes[1]), 0)

    def test_the_service_that_is_not_there_is_status_three(self):
        self.kill(self.processes[0])
        ended = self.run_client("jobs", "list")
        self.assertEqual(ended.status, 3, ended)
        self.assertIn(self.server, ended.error)


if __name__ == "__main__":
    unittest.main()
