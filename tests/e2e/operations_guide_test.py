"""docs/operations.md, word for word: the commands of two of its sections, run in an empty folder."""

import os
import pathlib
import re
import shutil
import socket
import ssl
import unittest

from tests.e2e import harness

GUIDE = pathlib.Path("docs/operations.md")


def blocks_of(title):
    """The commands of a section, block by block."""
    (section,) = re.findall(rf"(?ms)^## {re.escape(title)}$(.*?)^## ", GUIDE.read_text())
    return [
        re.sub(r"(?m)^    ", "", block) for block in re.findall(r"(?m)(?:^    .*\n)+", section)
    ]


def free_ports(count):
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in listeners]
    for each in listeners:
        each.close()
    return ports


class GuideTest(harness.Case):
    def setUp(self):
        super().setUp()
        for folder in ("bin", "srv", "etc", "backups", "deploy"):
            os.mkdir(self.path(folder))
        for name, program in {
            "plumbline": harness.CLIENT,
            "plumbline-server": harness.SERVER,
            "plumbline-worker": harness.WORKER,
        }.items():
            os.symlink(program, self.path(f"bin/{name}"))
        shutil.copytree("deploy/kubernetes", self.path("deploy/kubernetes"))
        self.grpc, self.http = free_ports(2)
        self.shell = None

    def here(self, text):
        """With other paths and ports, and nothing else."""
        for written, place in {
            "/srv/plumbline": self.path("srv"),
            "/etc/plumbline": self.path("etc"),
            "/mnt/backups": self.path("backups"),
            "7433": str(self.grpc),
            "7434": str(self.http),
        }.items():
            text = text.replace(written, place)
        return text

    def begin(self, title, count):
        """One shell for the whole section, which waits after each block until it is told to go on."""
        blocks = blocks_of(title)
        self.assertEqual(len(blocks), count)
        script = "set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n"
        for number, block in enumerate(blocks):
            script += f"until test -e go-{number}; do sleep 0.02; done\n"
            script += self.here(block) + f"touch done-{number}\n"
        script += f"until test -e go-{count}; do sleep 0.02; done\n"
        self.shell = self.start(
            "bash", "-c", f"cd {self.folder}\n{script}",
            environment={"PATH": f"{self.path('bin')}:{os.environ['PATH']}", "PLUMBLINE_DEVICE": "cpu"},
        )  # fmt: skip
        self.addCleanup(self.end)

    def end(self):
        """Also what the shell started."""
        self.shell.terminate()
        self.shell.wait()

    def run_block(self, number):
        pathlib.Path(self.path(f"go-{number}")).touch()

        def done():
            self.assertIsNone(self.shell.poll(), self.log_of(self.shell))
            return os.path.exists(self.path(f"done-{number}"))

        harness.wait_until(done, f"block {number} is done")

    def replay(self, *flags):
        ended = self.run_client(
            "submit", "block-replay", "--checkpoint=synthetic:tiny", "--layouts=tiny", "--wait", *flags
        )
        self.assertEqual(ended.status, 0, ended)

    def test_backup_and_restore(self):
        self.begin("Backup and restore", 4)
        self.run_block(0)
        self.server = f"127.0.0.1:{self.grpc}"
        self.start_worker("a")
        self.replay()
        (kept,) = self.job_names()
        report = self.run_client("report", kept).out
        self.run_block(1)
        self.replay()
        self.assertEqual(len(self.job_names()), 2)
        self.run_block(2)
        self.run_block(3)
        self.assertEqual(self.job_names(), [kept])
        self.assertEqual(self.run_client("report", kept).out, report)
        output = self.log_of(self.shell)
        self.assertIn("1 jobs", output)
        self.assertIn(": 0 problems", output)
        self.assertIn(kept, output)
        # The worker was left running.
        self.replay()

    def test_rotation(self):
        self.begin("Rotating tokens and certificates", 4)
        self.run_block(0)
        self.server = f"localhost:{self.grpc}"
        authority = f"--ca={self.path('etc/ca.pem')}"
        submitter = (authority, f"--token-file={self.path('etc/submitter.token')}")
        self.replay(*submitter)
        shutil.copy(self.path("etc/worker.token"), self.path("old.token"))
        self.run_block(1)
        self.assertNotEqual(
            pathlib.Path(self.path("old.token")).read_text(),
            pathlib.Path(self.path("etc/worker.token")).read_text(),
        )
        refused = (authority, f"--token-file={self.path('old.token')}")
        harness.wait_until(
            lambda: "revoked" in self.run_client("jobs", "list", *refused).error, "it is refused"
        )
        self.replay(*submitter)

        before = ssl.get_server_certificate(("127.0.0.1", self.grpc))
        self.run_block(2)
        now = pathlib.Path(self.path("etc/server.pem")).read_text()
        self.assertNotIn(before.strip(), now)
        harness.wait_until(
            lambda: ssl.get_server_certificate(("127.0.0.1", self.grpc)).strip() in now,
            "the new certificate is served",
        )
        self.replay(*submitter)

        self.run_block(3)
        self.assertEqual(
            pathlib.Path(self.path("etc/ca.pem")).read_text().count("BEGIN CERTIFICATE"), 2
        )
        self.replay(*submitter)


if __name__ == "__main__":
    unittest.main()
