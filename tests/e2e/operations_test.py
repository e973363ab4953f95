"""What operators do with a coordinator: stop it, check it, back it up, restore it, share it out."""

import os
import pathlib
import shutil
import subprocess
import unittest

from tests.e2e import harness


class OperationsTest(harness.Case):
    def run_server(self, *flags):
        """A command of the server's that ends by itself."""
        return harness.Ended(
            subprocess.run(
                [harness.SERVER, *flags],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                timeout=harness.DEADLINE_SECONDS,
                check=False,
            )
        )

    def check(self, folder="server"):
        return self.run_server("--check", f"--data-dir={self.path(folder)}")

    def submit(self, *flags):
        ended = self.run_client(
            "submit", "block-replay", "--checkpoint=checkpoint", "--layouts=tiny", *flags
        )
        self.assertEqual(ended.status, 0, ended)
        return ended.out.strip()

    def test_a_store_is_checked_when_nobody_has_it_open(self):
        self.assertEqual(self.check().status, 3)
        server = self.start_server()
        self.start_worker("a")
        done = self.submit()
        self.assertEqual(self.run_client("jobs", "watch", done).status, 0)
        self.submit("--label=team=red")
        in_use = self.check()
        self.assertEqual(in_use.status, 3, in_use)
        self.assertIn("in use", in_use.error)
        server.terminate()
        self.assertEqual(self.await_end(server), 0, self.log_of(server))
        sound = self.check()
        self.assertEqual(sound.status, 0, sound)
        self.assertIn("2 jobs", sound.out)
        self.assertIn(": 0 problems", sound.out)
        # One byte of one file of the store.
        files = sorted(pathlib.Path(self.path("server/store")).glob("*.log"))
        files = [each for each in files if each.stat().st_size > 100]
        data = bytearray(files[-1].read_bytes())
        data[50] ^= 4
        files[-1].write_bytes(data)
        damaged = self.check()
        self.assertEqual(damaged.status, 1, damaged)
        self.assertNotIn(": 0 problems", damaged.out)

    def test_a_backup_is_made_while_it_runs_and_restored(self):
        server = self.start_server()
        self.start_worker("a")
        before = self.submit()
        self.assertEqual(self.run_client("jobs", "watch", before).status, 0)
        events = self.events_of(before)
        ended = self.run_client("runs", "backup")
        self.assertEqual(ended.status, 0, ended)
        after = self.submit()
        self.kill(server)
        backups = f"--backup-dir={self.path('server/backups')}"
        refused = self.run_server("--restore=0", f"--data-dir={self.path('server')}", backups)
        self.assertEqual(refused.status, 3, refused)
        shutil.move(self.path("server"), self.path("lost"))
        backups = f"--backup-dir={self.path('lost/backups')}"
        restored = self.run_server("--restore=0", f"--data-dir={self.path('server')}", backups)
        self.assertEqual(restored.status, 0, restored)
        self.assertEqual(self.check().status, 0, self.check())
        self.start_server(listen=self.server)
        self.assertEqual(self.events_of(before), events)
        self.assertNotIn(after, self.job_names())

    def test_it_stops_in_good_order_while_others_wait_on_it(self):
        server = self.start_server()
        job = self.submit()
        watch = self.start_client("jobs", "watch", job, "--format=json")
        harness.wait_until(lambda: "{" in self.log_of(watch), "the watcher watches")
        server.terminate()
        self.assertEqual(self.await_end(server), 0, self.log_of(server))
        self.start_server(listen=self.server)
        # The watcher and a worker that comes now go on as if nothing had been.
        self.start_worker("a")
        self.assertEqual(self.await_end(watch), 0, self.log_of(watch))

    def test_a_group_beyond_its_quota_waits(self):
        bad = self.run_server(f"--data-dir={self.path('x')}", "--quota=red")
        self.assertEqual(bad.status, 2, bad)
        self.assertIn("VALUE=N", bad.error)
        twice = self.run_server(f"--data-dir={self.path('x')}", "--quota=red=1", "--quota=red=2")
        self.assertEqual(twice.status, 2, twice)
        self.assertIn('"red" is given twice', twice.error)
        self.assertFalse(os.path.exists(self.path("x")))
        self.start_server("--quota=red=0")
        self.start_worker("a")
        red = self.submit("--label=team=red")
        blue = self.submit("--label=team=blue")
        self.assertEqual(self.run_client("jobs", "watch", blue).status, 0)
        self.assertEqual(self.get_job(red)["waiting_reason"]["code"], "CODE_QUOTA")


if __name__ == "__main__":
    unittest.main()
