"""Without a server: coordinator and worker in the command's own process, passed on to the next."""

import os
import signal
import unittest

from tests.e2e import harness

LONG_LAYOUT = "--layout=400,10,20,24,40,first"
SUBMIT = ("submit", "block-replay", "--checkpoint=synthetic:tiny")


class EmbeddedTest(harness.Case):
    def test_jobs_and_reports_outlive_the_command(self):
        # Without --wait it waits all the same.
        ended = self.run_client(*SUBMIT, "--layouts=tiny", "--backward")
        self.assertEqual(ended.status, 0, ended)
        self.assertEqual(ended.error, "")
        (name,) = self.job_names()
        self.assertIn(name, ended.out)
        later = self.run_client("report", name)
        self.assertEqual((later.status, later.out), (0, ended.out))
        failed = self.run_client(*SUBMIT, "--layouts=tiny", "--inject=qk-heads")
        self.assertEqual(failed.status, 1, failed)
        self.assertIn("first_failure: q_proj", failed.out)
        self.assertEqual(len(self.job_names()), 2)

    def test_checkpoints_by_relative_and_absolute_path(self):
        os.symlink(harness.GOLDEN, self.path("here"))
        os.mkdir(self.path("other"))
        for checkpoint in (
            "here/checkpoint",
            "./other/../here/checkpoint",
            os.path.join(harness.GOLDEN, "checkpoint"),
        ):
            ended = self.run_client(
                "submit", "block-replay", f"--checkpoint={checkpoint}", "--layouts=tiny"
            )
            self.assertEqual(ended.status, 0, (checkpoint, ended))

    def test_bad_input_leaves_nothing(self):
        for flags in (["--layouts=tinny"], ["--layouts=tiny", "--block=99"]):
            ended = self.run_client(*SUBMIT, *flags)
            self.assertEqual(ended.status, 2, ended)
        self.assertEqual(self.job_names(), [])

    def test_a_second_command_is_a_client_of_the_first(self):
        first = self.start_client(*SUBMIT, LONG_LAYOUT, "--backward")
        name = harness.wait_until(self.job_names, "the first command's job is there")[0]
        # `jobs list` became the coordinator itself, if it came before the first command did; the
        # running job shows that the first one is now.
        harness.wait_until(
            lambda: self.get_job(name)["state"] == "JOB_STATE_RUNNING", "the job runs"
        )
        listed = self.run_client("workers", "list")
        self.assertEqual(listed.status, 0, listed)
        self.assertIn("active", listed.out)
        self.assertIsNone(first.poll())
        self.assertEqual(self.await_end(first), 0, self.log_of(first))
        self.assertIn("first_failure: none", self.log_of(first))

    def test_another_command_takes_over_from_a_killed_one(self):
        first = self.start_client(*SUBMIT, LONG_LAYOUT, "--backward")
        name = harness.wait_until(self.job_names, "the first command's job is there")[0]
        harness.wait_until(
            lambda: self.get_job(name)["state"] == "JOB_STATE_RUNNING", "the job runs"
        )
        second = self.start_client(*SUBMIT, "--layouts=tiny")
        harness.wait_until(lambda: len(self.job_names()) == 2, "the second command's job is there")
        self.kill(first)
        self.assertEqual(self.await_end(second), 0, self.log_of(second))
        # The first command's job was not lost: whoever watches it finishes it.
        watched = self.run_client("jobs", "watch", name)
        self.assertEqual(watched.status, 0, watched)
        self.assertEqual(self.run_client("report", name).status, 0)

    def test_many_commands_at_once_do_not_race(self):
        clients = [self.start_client(*SUBMIT, "--layouts=tiny") for _ in range(6)]
        for client in clients:
            self.assertEqual(self.await_end(client), 0, self.log_of(client))
            self.assertIn("first_failure: none", self.log_of(client))
        self.assertEqual(len(self.job_names()), 6)

    def test_ctrl_c_keeps_the_job_for_later(self):
        first = self.start_client(*SUBMIT, LONG_LAYOUT, "--backward")
        name = harness.wait_until(self.job_names, "the job is there")[0]
        harness.wait_until(
            lambda: self.get_job(name)["state"] == "JOB_STATE_RUNNING", "the job runs"
        )
        os.kill(first.pid, signal.SIGINT)
        self.assertEqual(self.await_end(first), 130)
        self.assertIn(f"plumbline jobs watch {name}", self.log_of(first))
        self.assertEqual(self.get_job(name)["state"], "JOB_STATE_RUNNING")
        self.assertEqual(self.run_client("jobs", "watch", name).status, 0)

    def test_a_state_folder_with_a_long_name(self):
        self.environment["PLUMBLINE_STATE_DIR"] = self.path("x" * 150)
        ended = self.run_client(*SUBMIT, "--layouts=tiny")
        self.assertEqual(ended.status, 0, ended)
        self.assertEqual(len(self.job_names()), 1)

    def test_without_a_state_folder_it_says_what_to_set(self):
        for name in ("PLUMBLINE_STATE_DIR", "XDG_STATE_HOME", "HOME"):
            self.environment.pop(name, None)
        ended = self.run_client("jobs", "list")
        self.assertEqual(ended.status, 2, ended)
        self.assertIn("PLUMBLINE_STATE_DIR", ended.error)

    def test_nothing_is_left_in_temporary_folders(self):
        os.mkdir(self.path("tmp"))
        self.environment["TMPDIR"] = self.path("tmp")
        self.assertEqual(self.run_client(*SUBMIT, "--layouts=tiny").status, 0)
        self.assertEqual(os.listdir(self.path("tmp")), [])


if __name__ == "__main__":
    unittest.main()
