"""The parts at full size, on a CPU and small: that the scripts do what they say, go on where they were stopped, and find a
difference where there is one."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
PROGRAMS = (
    "client/plumbline",
    "server/plumbline-server",
    "worker/plumbline-worker",
    "worker/checkpoint/write_checkpoint",
)
DEADLINE_SECONDS = 240


class ScriptsTest(unittest.TestCase):
    def setUp(self):
        # Short, so that sockets in it have possible names.
        self.folder = tempfile.mkdtemp(prefix="plumbline-", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.programs = os.path.join(self.folder, "bin")
        os.makedirs(self.programs)
        for program in PROGRAMS:
            os.symlink(os.path.abspath(program), os.path.join(self.programs, os.path.basename(program)))

    def run_part(self, script, *words):
        """(exit status, output)."""
        ended = subprocess.run(
            [sys.executable, os.path.join(HERE, script), self.programs, *words, "tiny", "cpu"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=DEADLINE_SECONDS,
            check=False,
        )
        return ended.returncode, ended.stdout

    def state(self):
        with open(os.path.join(self.folder, "full/state.json"), encoding="utf-8") as file:
            return json.load(file)

    def test_gate_and_steps(self):
        full = os.path.join(self.folder, "full")
        status, out = self.run_part("full_model.py", "tests/golden", full)
        self.assertEqual(status, 0, out)
        self.assertIn("ablation: all", out)
        status, out = self.run_part("steps.py", full)
        self.assertEqual(status, 0, out)
        self.assertRegex(out, "candidate authorised by +the gate")
        self.assertRegex(out, "stored bytes of all steps, killed against undisturbed +equal")

        # What has its result is not run again; a difference is found.
        state = self.state()
        state["killed"]["bytes"][5][0][1] = "0" * 64
        with open(os.path.join(full, "state.json"), "w", encoding="utf-8") as file:
            json.dump(state, file)
        shutil.rmtree(os.path.join(full, "service"))
        status, out = self.run_part("steps.py", full)
        self.assertEqual(status, 1, out)
        self.assertIn("NOT: the bytes of the run that was not killed, of every step", out)

    def test_seed(self):
        status, out = self.run_part("seed.py", os.path.join(self.folder, "full"))
        self.assertEqual(status, 0, out)
        self.assertIn("PSNR, SSIM", out)

    def test_files(self):
        status, out = self.run_part("files.py", os.path.join(self.folder, "full"))
        self.assertEqual(status, 0, out)
        self.assertIn("14 shards", out)
        self.assertEqual(os.path.exists(os.path.join(self.folder, "full/checkpoints")), False)


if __name__ == "__main__":
    unittest.main()
