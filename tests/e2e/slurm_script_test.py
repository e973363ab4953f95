"""What the job script of workers does and says, and the command that submits it, without Slurm: what they call of it are
programs of the tests'."""

import os
import pathlib
import subprocess
import unittest

from tests.e2e import harness

SCRIPT = os.path.abspath("deploy/slurm/plumbline-worker.sbatch")
# Without what else is installed.
PATH = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"


class SlurmScriptTest(harness.Case):
    def run_script(self, *words, **variables):
        return harness.Ended(
            subprocess.run(
                ["bash", SCRIPT, *words],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=dict({"PATH": PATH}, **variables),
                timeout=harness.DEADLINE_SECONDS,
                check=False,
            )
        )

    def test_wrong_use_is_said(self):
        for words, variables, says in (
            ([], {}, "submit it with sbatch"),
            (["worker"], {"SLURM_JOB_ID": "1"}, "needs WORKER STATE_ROOT"),
            (["/no worker", "/tmp"], {"SLURM_JOB_ID": "1"}, "no program '/no worker'"),
            (["true", "state"], {"SLURM_JOB_ID": "1"}, "no absolute path"),
            (["true", "/proc/no"], {"SLURM_JOB_ID": "1"}, "cannot make the folder"),
        ):
            ended = self.run_script(*words, **variables)
            self.assertEqual(ended.status, 2, ended)
            self.assertIn(says, ended.error)

    def test_the_workers_flags_and_status_pass_through(self):
        flags = ["--label=a b", "", "--x=$HOME\n`id`"]
        worker = self.write_program("a worker", 'printf "[%s]" "$PLUMBLINE_DEVICE" "$@"\nexit 3')
        ended = self.run_script(
            worker, self.path("state"), *flags,
            SLURM_JOB_ID="8", SLURM_ARRAY_JOB_ID="7", SLURM_ARRAY_TASK_ID="1",
        )  # fmt: skip
        self.assertEqual(ended.status, 3, ended)
        state = self.path("state") + "/7/1"
        self.assertEqual(
            ended.out,
            f"[cuda:0][--state-dir={state}][--preempted-exit-status=85]"
            + "".join(f"[{flag}]" for flag in flags),
        )
        self.assertEqual(os.stat(state).st_mode & 0o777, 0o700)

    def write_program(self, name, body):
        path = pathlib.Path(self.path(name))
        path.write_text(f"#!/bin/bash\n{body}\n")
        path.chmod(0o755)
        return str(path)

    def test_who_is_queued_again(self):
        """By the worker's status, by what slurm.conf says, and by what Slurm says of the job."""
        self.write_program(
            "scontrol",
            'if [[ "$1" == show ]]; then echo "RequeueExit             = $CODES"; else echo "$@" >&2; fi',
        )
        self.write_program("squeue", 'echo "$STATE"')
        asked = "requeue 8"
        for status, codes, state, restarts, ends, is_asked in (
            (85, "(null)", "RUNNING", 0, 85, True),
            (85, "1,80-90", "RUNNING", 0, 85, False),
            (85, "85", "RUNNING", 0, 85, False),
            (85, "5,8,185,86-99", "RUNNING", 0, 85, True),
            (85, "(null)", "COMPLETING", 0, 85, False),
            (85, "(null)", "", 0, 85, False),
            # Another process has the device: perhaps not for long.
            (75, "(null)", "RUNNING", 0, 85, True),
            (75, "(null)", "RUNNING", 20, 75, False),
            (0, "(null)", "RUNNING", 0, 0, False),
            (2, "(null)", "RUNNING", 0, 2, False),
            (137, "(null)", "RUNNING", 0, 137, False),
        ):
            with self.subTest(status=status, codes=codes, state=state, restarts=restarts):
                ended = self.run_script(
                    self.write_program("worker", f"exit {status}"), self.path("state"),
                    PATH=f"{self.folder}:{PATH}", SLURM_JOB_ID="8", CODES=codes,
                    STATE=state, SLURM_RESTART_COUNT=str(restarts),
                )  # fmt: skip
                self.assertEqual(ended.status, ends, ended)
                self.assertEqual(asked in ended.error, is_asked, ended)

    def test_a_notice_is_passed_on_once(self):
        """Whatever the worker's status then is, the job is to run again."""
        self.write_program("scontrol", 'echo "RequeueExit = 85"')
        worker = self.write_program(
            "worker",
            "trap 'echo told >>\"$TOLD\"; sleep 0.2; exit 3' TERM; echo >\"$READY\"; while :; do sleep 0.01; done",
        )
        process = self.start(
            "bash", SCRIPT, worker, self.path("state"),
            environment={
                "PATH": f"{self.folder}:{PATH}", "SLURM_JOB_ID": "8",
                "TOLD": self.path("told"), "READY": self.path("ready"),
            },
        )  # fmt: skip
        harness.wait_until(lambda: os.path.exists(self.path("ready")), "the worker runs")
        process.terminate()
        harness.wait_until(lambda: os.path.exists(self.path("told")), "the worker is told")
        process.terminate()
        self.assertEqual(self.await_end(process), 85, self.log_of(process))
        self.assertEqual(pathlib.Path(self.path("told")).read_text(), "told\n")
        self.assertIn("status 3, after a notice", self.log_of(process))

    def test_the_command_says_what_is_missing(self):
        self.environment["PATH"] = self.folder
        self.environment["HOME"] = self.folder
        words = ["cluster", "slurm", "submit", "--workers=1", "--worker=plumbline-worker"]
        ended = self.run_client(*words)
        self.assertEqual(ended.status, 2, ended)
        self.assertIn("--server", ended.error)
        self.server = "127.0.0.1:1"
        ended = self.run_client(*words)
        self.assertEqual(ended.status, 3, ended)
        self.assertIn("127.0.0.1:1", ended.error)
        ended = self.run_client(*words, "--unchecked")
        self.assertEqual(ended.status, 2, ended)
        self.assertIn("sbatch", ended.error)
        ended = self.run_client(*words, "--dry-run", "--sbatch=--constraint=a b")
        self.assertEqual(ended.status, 0, ended)
        self.assertIn("'--constraint=a b'", ended.out)
        self.assertIn(pathlib.Path(SCRIPT).read_text(), ended.out)


if __name__ == "__main__":
    unittest.main()
