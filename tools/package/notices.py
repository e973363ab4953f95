#!/usr/bin/env python3
"""Writes the licence notices of everything that is linked into programs or bundled into the dashboard.

    notices.py --params=FILE... --targets=FILE [--dashboard=WEB_FOLDER] >NOTICES

--params: what the linker was told for a program (Bazel's *.params). Every archive named there belongs to a Debian
package, whose copyright file is taken; CUDA's own belong to the toolkit. --targets: one label a line, of the libraries
in third_party that the programs depend on; of those that have headers alone, their packages' files are taken. --dashboard:
the folder of the dashboard's package-lock.json and node_modules. What has no licence text is an error: a notice is
never left out.
"""

import argparse
import glob
import json
import os
import pathlib
import re
import subprocess
import sys

# Libraries of third_party that are compiled in from headers or sources, and the packages they come from. Those with None
# are archives, which the linker names, or are not in the programs at all.
HEADER_PACKAGES = {
    "boost": "libboost-dev",
    "cli11": "libcli11-dev",
    "ffmpeg_headers": "libavformat-dev",
    "kissfft": "libkissfft-dev",
    "nlohmann_json": "nlohmann-json3-dev",
    "prometheus_core": "prometheus-cpp-dev",
    "prometheus_export": None,
    "spdlog": "libspdlog-dev",
    "absl": None,
    "grpc++": None,
    "grpc++_reflection": None,
    "openblas": None,
    "openssl": None,
    "png": None,
    "prometheus-cpp": None,
    "protobuf": None,
    "rocksdb": None,
    "zlib": None,
    "zstd": None,
}
# Of the headers above, what comes along with them.
_ALONG = {"spdlog": ["libfmt-dev"]}
# Linked by -l, but not into the file: glibc, and what is loaded from the machine.
_NOT_LINKED = {"m", "dl", "rt", "pthread", "c", "cublas", "cublasLt"}
_CUDA = {"cudart_static", "culibos", "cudadevrt"}


class Missing(Exception):
    pass


def archives(params, find):
    """Files of the archives that `params`, the linker's arguments, name, and CUDA's names. find(name) gives a path."""
    folders = [word[2:] for word in params if word.startswith("-L")]
    files, cuda = set(), set()
    for word in params:
        if word.startswith("-l:"):
            name = word[3:]
            there = [os.path.join(folder, name) for folder in folders if os.path.exists(os.path.join(folder, name))]
            path = there[0] if there else find(name)
            if not os.path.isabs(path):
                raise Missing(f"no file of {word}, which the programs are linked with")
            files.add(os.path.realpath(path))
        elif word == "-static-libgcc":
            files.add(os.path.realpath(find("libgcc.a")))
        elif word.startswith("-l") and word[2:] in _CUDA:
            cuda.add(word[2:])
        elif word.startswith("-l") and word[2:] not in _NOT_LINKED:
            raise Missing(f"{word}: linked, and neither an archive nor known to be the system's own")
    return files, cuda


def compiler_finds(name):
    return subprocess.run(["g++", f"-print-file-name={name}"], stdout=subprocess.PIPE, check=True, text=True).stdout.strip()


def packages_of(files):
    """Debian packages that hold `files`."""
    lines = subprocess.run(["dpkg", "--search", *sorted(files)], stdout=subprocess.PIPE, check=True, text=True).stdout
    return {line.split(":", 1)[0] for line in lines.splitlines()}


def header_packages(labels):
    packages = set()
    for label in labels:
        name = label.rsplit(":", 1)[-1]
        if name not in HEADER_PACKAGES:
            raise Missing(f"{label}: notices.py does not say which package it comes from")
        packages.update(filter(None, [HEADER_PACKAGES[name]]))
        packages.update(_ALONG.get(name, []))
    return packages


def debian_notice(package):
    path = pathlib.Path("/usr/share/doc", package, "copyright")
    if not path.exists():
        raise Missing(f"{path}: the package's licence is not on this machine")
    version = subprocess.run(
        ["dpkg-query", "--show", "--showformat=${source:Package} ${source:Version}", package],
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    ).stdout
    return f"Debian source package {version}", path.read_text(errors="replace")


def cuda_notice():
    root = os.environ.get("CUDA_PATH", "/usr/local/cuda")
    for pattern in ["EULA.txt", "dist-info/nvidia_cuda_runtime-*/licenses/*", "doc/EULA.txt"]:
        for path in sorted(glob.glob(os.path.join(root, pattern))):
            return "NVIDIA CUDA runtime", pathlib.Path(path).read_text(errors="replace")
    raise Missing(f"{root}: no licence of the CUDA runtime, which is linked")


def npm_notices(web):
    """Of every package that the dashboard's dependencies bring, in node_modules as package-lock.json has it."""
    lock = json.loads((web / "package-lock.json").read_text())
    for place, entry in sorted(lock["packages"].items()):
        if not place or entry.get("dev") or entry.get("devOptional"):
            continue
        folder = web / place
        if not folder.exists():
            if entry.get("optional") or entry.get("peer"):
                continue
            raise Missing(f"{folder}: not installed")
        about = json.loads((folder / "package.json").read_text())
        texts = [
            path.read_text(errors="replace")
            for path in sorted(folder.iterdir())
            if re.match(r"(licen[cs]e|copying|notice)", path.name, re.IGNORECASE) and path.is_file()
        ]
        if not texts:
            if not about.get("license"):
                raise Missing(f"{folder}: neither a licence file nor a licence in package.json")
            author = about.get("author", "")
            author = author.get("name", "") if isinstance(author, dict) else author
            texts = [f"License: {about['license']}\nAuthor: {author or about.get('repository', '')}\n"]
        yield f"npm package {about['name']} {about['version']}", "\n".join(texts)


def write(notices, out):
    """Each text once, under the names of all that it is of."""
    names = {}
    for name, text in notices:
        names.setdefault(text.strip(), []).append(name)
    out.write(
        "The programs of Plumbline contain what follows, each under its own terms. Plumbline's own files bear no terms of\n"
        "their own here.\n"
    )
    for text, whose in sorted(names.items(), key=lambda item: sorted(item[1])):
        out.write("\n" + "=" * 100 + "\n" + "\n".join(sorted(set(whose))) + "\n" + "=" * 100 + "\n\n" + text + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--params", action="append", required=True)
    parser.add_argument("--targets", required=True)
    parser.add_argument("--dashboard")
    arguments = parser.parse_args()
    try:
        files, cuda = set(), set()
        for params in arguments.params:
            found = archives(pathlib.Path(params).read_text().split("\n"), compiler_finds)
            files |= found[0]
            cuda |= found[1]
        packages = packages_of(files) | header_packages(pathlib.Path(arguments.targets).read_text().split())
        notices = [debian_notice(package) for package in sorted(packages)]
        if cuda:
            notices.append(cuda_notice())
        if arguments.dashboard:
            notices += npm_notices(pathlib.Path(arguments.dashboard))
    except Missing as error:
        sys.exit(f"notices.py: {error}")
    write(notices, sys.stdout)


if __name__ == "__main__":
    main()
