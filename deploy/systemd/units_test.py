"""The systemd units: well formed, confined, and, in a systemd of their own, started and restarted."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from tests.e2e import case_results

UNITS = pathlib.Path("deploy/systemd").resolve()
NAMES = ["plumbline-server.service", "plumbline-worker.service", "plumbline-worker@.service"]
STARTED = ["plumbline-server.service", "plumbline-worker.service", "plumbline-worker@0.service"]
PROGRAMS = {
    name: pathlib.Path(path).resolve()
    for name, path in {
        "plumbline": "client/plumbline",
        "plumbline-server": "server/plumbline-server",
        "plumbline-worker": "worker/plumbline-worker",
    }.items()
}
MOST_EXPOSURE = {"plumbline-server.service": 1.5}
MOST_EXPOSURE_OF_OTHERS = 3.0
BOOT_DEADLINE_S = 240

# What runs in the booted system, whose result is the last line of /plumbline/log.
CHECK = r"""#!/bin/bash
exec >/plumbline/log 2>&1
failed() { echo "FAILED: $*"; systemctl status --no-pager 'plumbline-*'; journalctl --no-pager -u 'plumbline-*' | tail -n 40; exit 1; }
until_it_is() {  # WORDS: a command that ends well at last
  for _ in {1..600}; do "$@" && return; sleep 0.1; done
  failed "never: $*"
}
main_pid() { systemctl show --property=MainPID --value "$1"; }
restarted() { [[ "$(systemctl is-active "$1")" == active && "$(main_pid "$1")" != "$2" && "$(main_pid "$1")" != 0 ]]; }
worker_is() { /plumbline/plumbline workers list --server=127.0.0.1:7433 2>&1 | grep -qiw "$1"; }
passes() {  # A job, which ends with status 0 when every gate passed.
  /plumbline/plumbline submit block-replay --server=127.0.0.1:7433 --checkpoint=synthetic:tiny --layouts=tiny --wait |
    tail -n 5
  return "${PIPESTATUS[0]}"
}

systemctl start plumbline-server.service plumbline-worker.service || failed "not started"
for unit in plumbline-server plumbline-worker; do
  [[ "$(systemctl is-active $unit)" == active ]] || failed "$unit is not active"
  pid="$(main_pid $unit)"
  [[ "$(stat --format=%U "/proc/$pid")" == "$unit" ]] || failed "$unit is not run by the user $unit"
done
[[ "$(stat --format=%a:%U /var/lib/plumbline/server)" == 700:plumbline-server ]] || failed "state folder"
until_it_is worker_is active
passes || failed "the first job"
for unit in plumbline-server plumbline-worker; do
  pid="$(main_pid $unit)"
  kill -KILL "$pid"
  until_it_is restarted $unit "$pid"
  echo "$unit: killed as $pid, restarted as $(main_pid $unit)"
done
until_it_is worker_is active
passes || failed "the job after the restarts"
[[ "$(/plumbline/plumbline jobs list --server=127.0.0.1:7433 | grep -c block-replay)" == 2 ]] || failed "jobs were lost"
systemctl show --property=StatusText plumbline-server plumbline-worker
systemctl stop plumbline-worker.service plumbline-server.service
for unit in plumbline-server plumbline-worker; do
  [[ "$(systemctl show --property=Result --value $unit)" == success ]] || failed "$unit did not stop well"
done
echo PASSED
"""


def run(*words):
    return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, text=True)


@unittest.skipUnless(shutil.which("systemd-analyze"), "there is no systemd-analyze (package systemd)")
class UnitFilesTest(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root)
        folder = self.root / "usr/lib/systemd"
        folder.mkdir(parents=True)
        shutil.copytree("/usr/lib/systemd/system", folder / "system", symlinks=True, ignore_dangling_symlinks=True)
        for name in NAMES:
            shutil.copy(UNITS / name, folder / "system" / name)
        (self.root / "usr/bin").mkdir()
        for name in PROGRAMS:
            (self.root / "usr/bin" / name).write_text("#!/bin/sh\n")
            (self.root / "usr/bin" / name).chmod(0o755)

    def verify(self, unit):
        return run("systemd-analyze", "verify", "--man=no", f"--root={self.root}", unit)

    def test_systemd_takes_them(self):
        for unit in STARTED:
            ended = self.verify(unit)
            # An unknown setting is a line of output alone.
            self.assertEqual((ended.returncode, ended.stdout), (0, ""), unit)

    def test_a_mistake_would_be_seen(self):
        path = self.root / "usr/lib/systemd/system" / NAMES[0]
        path.write_text(path.read_text().replace("PrivateTmp=", "PrivateTemp="))
        self.assertIn("PrivateTemp", self.verify(NAMES[0]).stdout)
        (self.root / "usr/bin/plumbline-server").unlink()
        self.assertNotEqual(self.verify(NAMES[0]).returncode, 0)

    def test_they_are_confined(self):
        for unit in STARTED:
            ended = run("systemd-analyze", "security", "--offline=true", "--no-pager", f"--root={self.root}", unit)
            found = re.search(r"exposure level for \S+: ([0-9.]+)", ended.stdout)
            self.assertTrue(found, ended.stdout)
            print(f"{unit}: {found[1]}")
            self.assertLessEqual(float(found[1]), MOST_EXPOSURE.get(unit, MOST_EXPOSURE_OF_OTHERS), unit)

    def test_flags_exist(self):
        for name in NAMES:
            command = re.search(r"(?m)^ExecStart=/usr/bin/(\S+) (.*)$", (UNITS / name).read_text())
            texts = command[2] + "".join(
                path.read_text() for path in UNITS.glob("*.env") if path.stem in command[1]
            )
            help_text = run(PROGRAMS[command[1]], "--help").stdout + run(PROGRAMS["plumbline"], "token", "create", "--help").stdout
            for flag in re.findall(r"(?<![\w-])(--[a-z][a-z-]+)", texts):
                self.assertRegex(help_text, rf"{flag}\b", name)


class RunningTest(unittest.TestCase):
    """Boots this machine's systemd in a container of nothing but /usr, whose /etc holds the units."""

    def test_units_start_and_restart_after_a_kill(self):
        if os.geteuid() != 0:
            self.skipTest("only root may boot a systemd")
        if not shutil.which("systemd-nspawn"):
            self.skipTest("there is no systemd-nspawn (package systemd-container)")
        if not os.path.ismount("/sys/fs/cgroup"):
            self.skipTest("this machine has no control groups, which systemd wants")
        shared = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, shared)
        shared.chmod(0o755)
        etc = self.write_etc(shared)
        ended = self.boot(shared, etc)
        log = shared / "log"
        if not log.exists():
            # Before anything of ours began.
            self.skipTest(f"no systemd can be booted here: {ended.stdout.strip().splitlines()[-3:]}")
        print(log.read_text())
        self.assertEqual(log.read_text().strip().splitlines()[-1], "PASSED")

    def write_etc(self, shared):
        """Files of /etc, by their paths there."""
        for name, program in PROGRAMS.items():
            shutil.copy(program, shared / name)
        (shared / "web").mkdir()
        (shared / "web/index.html").write_text("<!doctype html>")
        (shared / "check.sh").write_text(CHECK)
        (shared / "check.sh").chmod(0o755)
        files = {
            "machine-id": "0123456789abcdef0123456789abcdef\n",
            "systemd/system/check.service": "[Unit]\nSuccessAction=poweroff-force\nFailureAction=poweroff-force\n"
            f"[Service]\nType=oneshot\nTimeoutStartSec={BOOT_DEADLINE_S}\nExecStart=/plumbline/check.sh\n",
            "systemd/system/check.target": "[Unit]\nWants=check.service\nAllowIsolate=yes\n",
        }
        for name in NAMES:
            text = (UNITS / name).read_text()
            # /usr is the machine's own, where nothing is installed.
            text = text.replace("/usr/bin/", "/plumbline/").replace("/usr/share/plumbline/", "/plumbline/")
            files[f"systemd/system/{name}"] = text
        for kind in ["sysusers", "tmpfiles"]:
            files[f"{kind}.d/plumbline.conf"] = (UNITS / f"plumbline.{kind}.conf").read_text()
        for name in ["server", "worker"]:
            files[f"plumbline/{name}.env"] = (UNITS / f"{name}.env").read_text()
        paths = {}
        for index, (name, text) in enumerate(files.items()):
            path = shared / f"etc-{index}"
            path.write_text(text)
            paths[name] = path
        return paths

    def boot(self, shared, etc):
        binds = [f"--bind-ro={path}:/etc/{name}" for name, path in etc.items()]
        words = ["systemd-nspawn", "--quiet", "--directory=/", "--volatile=yes", "--register=no", "--keep-unit"]
        words += ["--private-network", f"--machine=plumbline-{os.getpid()}", f"--bind={shared}:/plumbline", *binds]
        # Libraries that have alternatives are found over /etc.
        words += ["--bind-ro=/etc/alternatives", "--boot", "systemd.unit=check.target"]
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(
                ["script", "--quiet", "--return", "--command", " ".join(words), "/dev/null"],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            try:
                process.wait(timeout=BOOT_DEADLINE_S + 30)
            except subprocess.TimeoutExpired:
                process.terminate()
                process.wait()
            output.seek(0)
            return subprocess.CompletedProcess(words, process.returncode, output.read().decode(errors="replace"))


if __name__ == "__main__":
    case_results.main()
