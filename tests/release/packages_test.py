#!/usr/bin/env python3
"""What ./dev package makes, as those who install it meet it: in a Debian made by debootstrap, and as images.

    packages_test.py DIST      (at the root of the sources; ./dev test --full runs it)
"""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest

DIST = pathlib.Path(sys.argv.pop()).resolve()
CONTAINERFILE = pathlib.Path("deploy/container/Containerfile").resolve()
# Changed by whatever is installed, or by the users that stay.
NOT_OURS = ("var/log", "var/cache", "var/lib/dpkg", "run", "proc", "tmp", "etc/passwd", "etc/group", "etc/shadow")
NOT_OURS += ("etc/gshadow", "etc/subuid", "etc/subgid", "etc/.pwd.lock")
WAIT_S = 120

# The demo, with nothing but what is installed. Ends with status 0 when every gate passed.
DEMO = r"""
set -euo pipefail
cd /demo
plumbline-server --version && plumbline-worker --version && plumbline --version
wait_for() {  # FILE PID
  until [[ -s "$1" ]]; do kill -0 "$2" || { cat /demo/*.log; exit 1; }; sleep 0.1; done
}
plumbline-server --listen=127.0.0.1:0 --http=127.0.0.1:0 --data-dir=server --web-dir=/usr/share/plumbline/web \
  --ready-file=/demo/server.json >server.log 2>&1 &
server_pid=$!
wait_for server.json "$server_pid"
server="$(sed 's/.*"listen":"\([^"]*\)".*/\1/' server.json)"
plumbline-worker --server="$server" --checkpoint-root=/demo --state-dir=worker --device=cpu --no-ffmpeg \
  --ready-file=/demo/worker.json >worker.log 2>&1 &
worker_pid=$!
wait_for worker.json "$worker_pid"
plumbline submit block-replay --server="$server" --checkpoint=/demo/checkpoint --layouts=tiny --backward --wait
job="$(plumbline submit generation --server="$server" --checkpoint=/demo/checkpoint --contract=contract.json \
  --conditioning=conditioning.safetensors --composition=provider --latents-only)"
plumbline jobs watch "$job" --server="$server" >watch.log || { cat watch.log worker.log; exit 1; }
plumbline runs list --server="$server" --job="$job"
kill "$worker_pid" && wait "$worker_pid"
kill "$server_pid" && wait "$server_pid"
PLUMBLINE_STATE_DIR=/demo/state plumbline submit block-replay --checkpoint=synthetic:tiny --layouts=tiny --backward
echo "the demo ran"
"""


def run(*words, **named):
    """Output of a command that must end well."""
    words = [str(word) for word in words]
    ended = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, text=True, **named)
    if ended.returncode != 0:
        raise AssertionError(f"{' '.join(words)}: status {ended.returncode}\n{ended.stdout[-6000:]}")
    return ended.stdout


def debian_mirror():
    """Where this machine's apt gets Debian 12 from."""
    lines = run("apt-get", "indextargets", "--format", "$(ORIGIN) $(CODENAME) $(COMPONENT) $(REPO_URI)", "Created-By: Packages")
    for line in lines.splitlines():
        if line.startswith("Debian bookworm main "):
            return line.split()[3]
    raise unittest.SkipTest("this machine's apt has no Debian 12 to make one from")


def listing(root):
    """Every path below `root` that a package could have left, with its kind, mode and owner."""
    found = {}
    for folder, folders, files in os.walk(root):
        relative = pathlib.Path(folder).relative_to(root)
        folders[:] = [name for name in folders if not str(relative / name).startswith(NOT_OURS)]
        for name in folders + files:
            path = str(relative / name)
            if not path.startswith(NOT_OURS):
                about = os.lstat(pathlib.Path(folder) / name)
                found[path] = (stat.filemode(about.st_mode), about.st_uid, about.st_gid)
    return found


class Machine:
    """A Debian in a folder."""

    def __init__(self, root):
        self.root = pathlib.Path(root)

    def run(self, *words):
        """As root there, with a /proc and processes that go when the command ends, however it does."""
        enter = 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"'
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8"}
        within = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
        return run(*within, "sh", "-c", enter, self.root, *words, env=environment)


def setUpModule():
    global scratch, pristine
    if os.geteuid() != 0:
        raise unittest.SkipTest("only root may make a Debian to install into")
    if not shutil.which("debootstrap"):
        raise unittest.SkipTest("there is no debootstrap")
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="plumbline-packages."))
    scratch.chmod(0o755)
    unittest.addModuleCleanup(shutil.rmtree, scratch)
    pristine = scratch / "debian"
    run("debootstrap", "--variant=minbase", "--include=systemd", "bookworm", pristine, debian_mirror())


def package(name, kind):
    """The one file of DIST that is NAME's. SkipTest where it was not made."""
    pattern = {"deb": f"{name}_*_amd64.deb", "tar": f"{name}-[0-9]*-linux-amd64.tar.zst"}[kind]
    found = list(DIST.glob(pattern))
    if not found:
        raise unittest.SkipTest(f"there is no {pattern} in {DIST}: no CUDA toolkit")
    assert len(found) == 1, found
    return found[0]


class DebTest(unittest.TestCase):
    def setUp(self):
        self.machine = Machine(scratch / "machine")
        run("cp", "--archive", pristine, self.machine.root)
        self.addCleanup(shutil.rmtree, self.machine.root)
        demo = self.machine.root / "demo"
        demo.mkdir()
        shutil.copytree("tests/golden/checkpoint", demo / "checkpoint")
        environment = {**os.environ, "PYTHONPATH": os.getcwd()}
        run(sys.executable, "-B", "tests/e2e/write_generation.py", "tests/golden", demo / "contract.json",
            demo / "conditioning.safetensors", "3", env=environment)

    def test_installs_runs_the_demo_and_purges(self):
        self.installs_runs_and_purges("plumbline")

    def test_with_cuda_too(self):
        self.installs_runs_and_purges("plumbline-cuda")

    def installs_runs_and_purges(self, name):
        machine = self.machine
        shutil.copy(package(name, "deb"), machine.root / "tmp/package.deb")
        before = listing(machine.root)
        machine.run("dpkg", "--install", "/tmp/package.deb")
        self.assertEqual(machine.run("dpkg", "--verify", name), "")
        users = machine.run("getent", "passwd", "plumbline-server", "plumbline-worker")
        self.assertEqual(users.count("nologin"), 2, users)
        for path, mode in [("etc/plumbline/server", 0o750), ("etc/plumbline/worker", 0o750), ("var/lib/plumbline", 0o755)]:
            self.assertEqual(stat.S_IMODE((machine.root / path).stat().st_mode), mode, path)
        for path in ["usr/share/man/man1/plumbline.1.gz", "usr/share/man/man8/plumbline-worker.8.gz",
                     "usr/share/bash-completion/completions/plumbline", "usr/share/zsh/vendor-completions/_plumbline",
                     "usr/share/plumbline/web/index.html", f"usr/share/doc/{name}/copyright",
                     "usr/lib/systemd/system/plumbline-worker@.service"]:
            self.assertTrue((machine.root / path).exists(), path)
        notices = (machine.root / f"usr/share/doc/{name}/copyright").read_text()
        for part in ["grpc", "rocksdb", "openssl", "openblas", "cli11", "react"]:
            self.assertIn(part, notices)
        self.assertEqual("NVIDIA CUDA runtime" in notices, name == "plumbline-cuda")

        print(machine.run("bash", "-c", DEMO))
        shutil.rmtree(machine.root / "demo")
        for path in ["var/lib/plumbline/server/CURRENT", "etc/plumbline/server/access.json"]:
            (machine.root / path).parent.mkdir(exist_ok=True)
            (machine.root / path).write_text("kept")

        # The same again is an upgrade: what an operator has changed stays.
        settings = machine.root / "etc/plumbline/server.env"
        settings.write_text(settings.read_text() + "# changed\n")
        machine.run("dpkg", "--install", "/tmp/package.deb")
        self.assertIn("# changed", settings.read_text())

        machine.run("dpkg", "--remove", name)
        self.assertFalse((machine.root / "usr/bin/plumbline-server").exists())
        for path in ["var/lib/plumbline/server/CURRENT", "etc/plumbline/server/access.json", "etc/plumbline/server.env"]:
            self.assertTrue((machine.root / path).exists(), f"{path} went with the programs")

        machine.run("dpkg", "--purge", name)
        before = {path: about for path, about in before.items() if not path.startswith("demo")}
        self.assertEqual(listing(machine.root), before)

    def test_tar_holds_the_same_files(self):
        for name in ["plumbline", "plumbline-cuda"]:
            with self.subTest(name=name):
                folder = pathlib.Path(tempfile.mkdtemp(dir=scratch))
                run("tar", "--extract", "--zstd", "--file", package(name, "tar"), "--directory", folder)
                (unpacked,) = folder.iterdir()
                run("dpkg-deb", "--extract", package(name, "deb"), folder / "deb")
                run("diff", "--recursive", unpacked, folder / "deb")
                self.assertIn("PASSED", run("env", "-i", f"PLUMBLINE_STATE_DIR={folder}/state", "PLUMBLINE_DEVICE=cpu",
                                            unpacked / "usr/bin/plumbline", "submit", "block-replay",
                                            "--checkpoint=synthetic:tiny", "--layouts=tiny"))


class ContainerTest(unittest.TestCase):
    """Images of the Containerfile, over the Debian that was made: no registry is asked."""

    @classmethod
    def setUpClass(cls):
        if not shutil.which("buildah"):
            raise unittest.SkipTest("there is no buildah")
        cls.store = scratch / "images"
        cls.buildah("--version")
        container = cls.buildah("from", "scratch").strip()
        cls.buildah("add", "--quiet", container, pristine, "/")
        cls.buildah("commit", "--quiet", "--rm", container, "localhost/debian:test")

    @classmethod
    def buildah(cls, *words):
        storage = ["--root", cls.store / "root", "--runroot", cls.store / "run", "--storage-driver", "vfs"]
        return run("buildah", *storage, *words)

    def build(self, target, *arguments):
        named = ["DEBIAN=localhost/debian:test", "FFMPEG=", *arguments]
        options = [word for each in named for word in ("--build-arg", each)]
        return self.buildah("build", "--isolation", "chroot", "--pull-never", *options, "--target", target, "--tag",
                            f"localhost/{target}:test", "--file", CONTAINERFILE, DIST)

    def start(self, image, *words):
        """A process in a new container of `image`, with the environment and the user that the image names."""
        container = self.buildah("from", "--pull-never", f"localhost/{image}:test").strip()
        self.addCleanup(self.buildah, "rm", container)
        storage = ["--root", self.store / "root", "--runroot", self.store / "run", "--storage-driver", "vfs"]
        command = ["buildah", *storage, "run", "--isolation", "chroot", "--volume", f"{self.shared}:/shared", container, "--"]
        process = subprocess.Popen([str(word) for word in [*command, *words]], stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, start_new_session=True)
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        # What runs in the container is of the same group, and would outlive buildah.
        for signal_number in [signal.SIGTERM, signal.SIGKILL]:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal_number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=30)
        process.stdout.close()

    def user_of(self, image):
        return self.buildah("inspect", "--type", "image", "--format", "{{.OCIv1.Config.User}}", f"localhost/{image}:test").strip()

    def test_images_do_a_job(self):
        self.shared = pathlib.Path(tempfile.mkdtemp(dir=scratch))
        self.shared.chmod(0o777)
        package("plumbline", "deb")
        for target in ["server", "worker", "cli"]:
            self.build(target)
            self.assertRegex(self.user_of(target), r"^1000[12]:1000[12]$")
        # The program with what it reads; no shell, no package manager.
        container = self.buildah("from", "--pull-never", "localhost/server:test").strip()
        self.addCleanup(self.buildah, "rm", container)
        mounted = pathlib.Path(self.buildah("mount", container).strip())
        self.assertEqual(sorted(path.name for path in (mounted / "usr/bin").iterdir()), ["plumbline", "plumbline-server"])

        server = self.start("server", "plumbline-server", "--listen=127.0.0.1:0", "--http=127.0.0.1:0",
                            "--data-dir=/shared/data", "--web-dir=/usr/share/plumbline/web", "--ready-file=/shared/ready")
        self.wait_for(self.shared / "ready", server)
        address = json.loads((self.shared / "ready").read_text())["listen"]
        worker = self.start("worker", "plumbline-worker", f"--server={address}", "--state-dir=/shared/worker",
                            "--device=cpu", "--ready-file=/shared/worker-ready")
        self.wait_for(self.shared / "worker-ready", worker)
        self.assertEqual((self.shared / "data").stat().st_uid, 10001)
        self.assertEqual((self.shared / "worker").stat().st_uid, 10002)
        client = self.start("cli", "plumbline", "submit", "block-replay", f"--server={address}",
                            "--checkpoint=synthetic:tiny", "--layouts=tiny", "--wait")
        output = client.communicate(timeout=WAIT_S)[0]
        self.assertEqual(client.returncode, 0, output)
        self.assertIn("PASSED", output)

    def wait_for(self, path, process):
        """Until the file is there, or the process that writes it has ended."""
        deadline = time.monotonic() + WAIT_S
        while not path.exists():
            self.assertLess(time.monotonic(), deadline, f"never: {path}")
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=0.1)
                self.fail(process.communicate()[0])

    def test_worker_with_cuda_has_cublas_beside_it(self):
        package("plumbline-cuda", "deb")
        # In place of NVIDIA's image: its two libraries, by name.
        container = self.buildah("from", "scratch").strip()
        folder = pathlib.Path(tempfile.mkdtemp(dir=scratch))
        for name in ["libcublas.so.13", "libcublasLt.so.13"]:
            shutil.copy("/usr/lib/x86_64-linux-gnu/libz.so.1", folder / name)
        self.buildah("add", "--quiet", container, folder, "/usr/local/cuda/lib64")
        self.buildah("commit", "--quiet", "--rm", container, "localhost/cuda:test")
        self.build("worker-cuda", "CUDA=localhost/cuda:test")
        self.assertEqual(self.user_of("worker-cuda"), "10002:10002")
        self.shared = folder
        process = self.start("worker-cuda", "sh", "-c", "plumbline-worker --version && ls /usr/local/lib && id -u")
        output = process.communicate(timeout=WAIT_S)[0]
        self.assertEqual(process.returncode, 0, output)
        for part in ["plumbline-worker ", "libcublas.so.13", "libcublasLt.so.13", "10002"]:
            self.assertIn(part, output)


if __name__ == "__main__":
    unittest.main(verbosity=2)
