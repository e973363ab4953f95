#!/usr/bin/env python3
"""Lays out what a release installs, as a tree to be packed: FOLDER/usr/bin/plumbline and so on.

    stage.py --package=NAME --programs=FOLDER --notices=FILE --dashboard=FOLDER --tracked=FILE --version=TEXT
        --date=YYYY-MM-DD TREE

Run at the root of the sources. --programs: the three programs. --dashboard: the built dashboard (web/dist), which the
coordinator's unit serves. --tracked: the files of the sources, one a line, as `git ls-files` says: what else lies there,
somebody's keys for one, is left out. The tree depends on these alone: not on who runs this, where, when, or under which
umask.
"""

import argparse
import pathlib
import shutil
import subprocess
import sys

PROGRAMS = {"plumbline": 1, "plumbline-server": 8, "plumbline-worker": 8}
_HERE = pathlib.Path(__file__).resolve().parent

# Sources that are installed as they are: (pattern, where to). What tests and builds them stays.
FILES = [
    ("deploy/systemd/*.service", "usr/lib/systemd/system"),
    ("deploy/systemd/*.env", "etc/plumbline"),
    ("deploy/prometheus/*.yml", "usr/share/plumbline/prometheus"),
    ("deploy/grafana/*.json", "usr/share/plumbline/grafana"),
    ("deploy/slurm/*.sbatch", "usr/share/plumbline/slurm"),
    ("deploy/kubernetes/**/*", "usr/share/plumbline/kubernetes"),
    ("docs/*.md", "usr/share/doc/PACKAGE"),
    ("kernels/plugin/plumbline_plugin.h", "usr/include"),
    ("examples/generation/*", "usr/share/doc/PACKAGE/examples/generation"),
    ("examples/plugin/**/*", "usr/share/doc/PACKAGE/examples/plugin"),
]
_LEFT_OUT = (".gitignore", "BUILD.bazel", "_test.py", "_test.sh", "_test.yml", "plugins.bzl")


class Tree:
    def __init__(self, root):
        self.root = pathlib.Path(root)

    def add(self, path, data, mode=0o644):
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        target.chmod(mode)

    def copy(self, source, path, mode=0o644):
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        target.chmod(mode)

    def finish(self):
        """Folders are made with whatever umask there is."""
        for folder in [self.root, *self.root.rglob("*")]:
            if folder.is_dir():
                folder.chmod(0o755)


def output_of(*words):
    return subprocess.run([sys.executable, "-B", *words], stdout=subprocess.PIPE, check=True).stdout


def add_files(tree, package, tracked):
    for pattern, folder in FILES:
        base = pathlib.Path(pattern.split("/*")[0] if "*" in pattern else pathlib.Path(pattern).parent)
        for source in sorted(pathlib.Path(".").glob(pattern)):
            if str(source) in tracked and source.is_file() and not source.name.endswith(_LEFT_OUT):
                mode = 0o755 if source.suffix == ".sh" else 0o644
                tree.copy(source, f"{folder.replace('PACKAGE', package)}/{source.relative_to(base)}", mode)
    for kind in ["sysusers", "tmpfiles"]:
        tree.copy(f"deploy/systemd/plumbline.{kind}.conf", f"usr/lib/{kind}.d/plumbline.conf")


def add_pages(tree, programs, version, date):
    for name, section in PROGRAMS.items():
        page = output_of(_HERE / "manual.py", programs / name, str(section), version, date)
        # gzip's own time stays out of it.
        packed = subprocess.run(["gzip", "-9n"], input=page, stdout=subprocess.PIPE, check=True).stdout
        tree.add(f"usr/share/man/man{section}/{name}.{section}.gz", packed)
    paths = [programs / name for name in PROGRAMS]
    completions = output_of(_HERE / "completion.py", "bash", *paths)
    for name in PROGRAMS:
        tree.add(f"usr/share/bash-completion/completions/{name}", completions)
    tree.add("usr/share/zsh/vendor-completions/_plumbline", output_of(_HERE / "completion.py", "zsh", *paths))


def main():
    parser = argparse.ArgumentParser()
    for flag in ["--package", "--programs", "--notices", "--dashboard", "--tracked", "--version", "--date"]:
        parser.add_argument(flag, required=True)
    parser.add_argument("tree")
    arguments = parser.parse_args()
    programs = pathlib.Path(arguments.programs).resolve()
    tree = Tree(arguments.tree)
    for name in PROGRAMS:
        tree.copy(programs / name, f"usr/bin/{name}", 0o755)
    add_files(tree, arguments.package, set(pathlib.Path(arguments.tracked).read_text().splitlines()))
    add_pages(tree, programs, arguments.version, arguments.date)
    tree.copy(arguments.notices, f"usr/share/doc/{arguments.package}/copyright")
    dashboard = pathlib.Path(arguments.dashboard)
    for source in sorted(dashboard.rglob("*")):
        if source.is_file():
            tree.copy(source, f"usr/share/plumbline/web/{source.relative_to(dashboard)}")
    tree.finish()


if __name__ == "__main__":
    main()
