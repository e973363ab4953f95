"""Packages are the same bytes whoever makes them, wherever and when, and hold what they must; no notice is left out."""

import json
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

from tools.package import notices, stage

TOOLS = pathlib.Path("tools/package").resolve()
PROGRAMS = ["client/plumbline", "server/plumbline-server", "worker/plumbline-worker"]
EPOCH = 1714550400


class PackageTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        # Small ones, that say of themselves what the real ones do.
        (self.folder / "programs").mkdir()
        for path in PROGRAMS:
            program = self.folder / "programs" / pathlib.Path(path).name
            said = subprocess.run([pathlib.Path(path).resolve(), "--help-json"], env={"HOME": "~"}, stdout=subprocess.PIPE, check=True)
            program.write_bytes(b"#!/bin/sh\ncat <<'JSON'\n" + said.stdout + b"\nJSON\n")
            program.chmod(0o700)
        (self.folder / "notices").write_text("whose\n")
        # All but one, which is somebody's own.
        self.foreign = "deploy/systemd/plumbline-worker.service"
        tracked = [str(path) for path in pathlib.Path(".").rglob("*") if str(path) != self.foreign]
        (self.folder / "tracked").write_text("\n".join(tracked))
        (self.folder / "web").mkdir()
        (self.folder / "web/index.html").write_text("<!doctype html>")

    def make(self, name, umask, zone):
        tree, out = self.folder / name / "tree", self.folder / name / "out"
        environment = {"PATH": os.environ["PATH"], "TZ": zone, "LANG": "C.UTF-8"}
        subprocess.run(
            [sys.executable, "-B", TOOLS / "stage.py", "--package=plumbline", f"--programs={self.folder}/programs",
             f"--notices={self.folder}/notices", f"--dashboard={self.folder}/web", f"--tracked={self.folder}/tracked",
             "--version=0.1.0", "--date=2024-05-01", tree],
            check=True, env=environment, umask=umask)  # fmt: skip
        subprocess.run([TOOLS / "archive.sh", "plumbline", "0.1.0+git20240501.0123456789ab", str(EPOCH), tree, out],
                       check=True, env=environment, umask=umask)  # fmt: skip
        return out

    def test_two_makings_are_equal(self):
        first = self.make("a", 0o022, "UTC")
        for path in (self.folder / "programs").iterdir():
            os.utime(path, (1, 1))
        second = self.make("some/other-folder", 0o077, "Asia/Tokyo")
        names = sorted(path.name for path in first.iterdir())
        self.assertEqual(names, ["plumbline-0.1.0+git20240501.0123456789ab-linux-amd64.tar.zst",
                                 "plumbline_0.1.0+git20240501.0123456789ab_amd64.deb"])  # fmt: skip
        for name in names:
            self.assertEqual((first / name).read_bytes(), (second / name).read_bytes(), name)

    def test_it_holds_what_it_must(self):
        out = self.make("a", 0o022, "UTC")
        (deb,) = out.glob("*.deb")
        root = self.folder / "root"
        subprocess.run(["dpkg-deb", "--raw-extract", deb, root], check=True)
        for path in [*(f"usr/bin/{program}" for program in stage.PROGRAMS),
                     "usr/lib/systemd/system/plumbline-server.service", "usr/lib/systemd/system/plumbline-worker@.service",
                     "usr/lib/sysusers.d/plumbline.conf", "usr/lib/tmpfiles.d/plumbline.conf", "usr/include/plumbline_plugin.h",
                     "usr/share/man/man8/plumbline-server.8.gz", "usr/share/plumbline/slurm/plumbline-worker.sbatch",
                     "usr/share/plumbline/prometheus/plumbline.rules.yml", "usr/share/doc/plumbline/copyright",
                     "usr/share/plumbline/web/index.html",
                     "usr/share/doc/plumbline/generations.md", "usr/share/doc/plumbline/examples/generation/contract.json",
                     "usr/share/doc/plumbline/examples/generation/conditioning.safetensors",
                     "usr/share/doc/plumbline/examples/plugin/head_norms.c"]:  # fmt: skip
            self.assertTrue((root / path).exists(), path)
        self.assertTrue(pathlib.Path(self.foreign).exists())
        self.assertFalse((root / "usr/lib/systemd/system" / pathlib.Path(self.foreign).name).exists())
        self.assertEqual((root / "DEBIAN/conffiles").read_text().split(), ["/etc/plumbline/server.env", "/etc/plumbline/worker.env"])
        control = (root / "DEBIAN/control").read_text()
        for line in ["Package: plumbline\n", "Depends: libc6 (>= 2.36), ", "Conflicts: plumbline-cuda\n"]:
            self.assertIn(line, control)
        for path in root.rglob("*"):
            mode = stat.S_IMODE(path.lstat().st_mode)
            self.assertEqual(mode & 0o022, 0, f"{path} can be written by others")
            self.assertEqual(mode & 0o444, 0o444, f"{path} cannot be read by all")
            self.assertEqual(int(path.lstat().st_mtime), EPOCH, path)
            self.assertFalse(path.name.endswith(("_test.py", "_test.yml", "BUILD.bazel")), path)
        for script in ["postinst", "prerm", "postrm"]:
            subprocess.run(["sh", "-n", root / "DEBIAN" / script], check=True)

    def test_a_package_of_another_name_is_refused(self):
        ended = subprocess.run([TOOLS / "archive.sh", "plumb", "1", "1", self.folder, self.folder / "out"],
                               stderr=subprocess.PIPE, text=True, check=False)  # fmt: skip
        self.assertEqual(ended.returncode, 2)
        self.assertIn("'plumb'", ended.stderr)


class NoticesTest(unittest.TestCase):
    def test_archives_are_taken_from_what_the_linker_is_told(self):
        params = ["-o", "program", "-l:libz.a", "-lpthread", "-lm", "-static-libgcc", "-lcudart_static"]
        files, cuda = notices.archives(params, lambda name: f"/somewhere/{name}")
        self.assertEqual(files, {"/somewhere/libz.a", "/somewhere/libgcc.a"})
        self.assertEqual(cuda, {"cudart_static"})

    def test_what_nobody_knows_is_an_error(self):
        with self.assertRaisesRegex(notices.Missing, "-lmystery"):
            notices.archives(["-lmystery"], lambda name: f"/somewhere/{name}")
        with self.assertRaisesRegex(notices.Missing, "libabsent.a"):
            notices.archives(["-l:libabsent.a"], lambda name: name)
        with self.assertRaisesRegex(notices.Missing, "//third_party/system:mystery"):
            notices.header_packages(["//third_party/system:mystery"])

    def test_every_library_of_the_tree_is_known(self):
        build = pathlib.Path("third_party/system/BUILD.bazel").read_text().split("cc_library(")[1:]
        for rule in build:
            name = rule.split('name = "', 1)[1].split('"', 1)[0]
            if "testonly" not in rule and "benchmark" not in name:
                self.assertIn(name, notices.HEADER_PACKAGES)

    def test_npm_packages_need_a_licence(self):
        with tempfile.TemporaryDirectory() as folder:
            web = pathlib.Path(folder)
            (web / "package-lock.json").write_text(
                json.dumps({"packages": {"": {}, "node_modules/a": {}, "node_modules/tool": {"dev": True}}})
            )
            (web / "node_modules/a").mkdir(parents=True)
            about = web / "node_modules/a/package.json"
            about.write_text(json.dumps({"name": "a", "version": "1"}))
            with self.assertRaisesRegex(notices.Missing, "neither a licence"):
                list(notices.npm_notices(web))
            (web / "node_modules/a/LICENSE").write_text("Do as you like.")
            self.assertEqual(list(notices.npm_notices(web)), [("npm package a 1", "Do as you like.")])


if __name__ == "__main__":
    unittest.main()
