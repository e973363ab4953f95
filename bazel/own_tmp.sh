#!/bin/bash
# Runs a compiler with a folder of its own for temporary files: sandboxes share /tmp and number their processes alike, and
# nvcc names its files by that number and the source's base name, so that two of them could write the same file.
#   own_tmp.sh COMMAND...
set -euo pipefail

TMPDIR="$(mktemp -d)"
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
"$@"
