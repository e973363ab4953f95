#!/bin/bash
# Runs a compiler in a folder whose name says nothing of the build's, on files that were all written in one second: nvcc
# makes names within its objects of the folder that it finds the source in, links resolved, and keeps the files' times
# beside the numbers of lines.
#   fixed_folder.sh NAME OUTPUT FILE... -- COMMAND...
# COMMAND reads FILEs and writes OUTPUT, all relative to here. NAME is the command's own: of two builds one waits.
set -euo pipefail

readonly NAME="$1" OUTPUT="$2" FROM="$PWD"
shift 2
files=()
while [[ "$1" != -- ]]; do
  files+=("$1")
  shift
done
shift

readonly AT="/tmp/plumbline-build/$NAME"
mkdir -p "${AT%/*}"
exec 9>"$AT.lock"
flock 9
rm -rf "$AT"
mkdir "$AT"
trap 'rm -rf "$AT"' EXIT
export TMPDIR="$AT/tmp"
mkdir "$TMPDIR"
cp --parents --dereference "${files[@]}" "$AT"
find "$AT" -type f -exec touch --date=@0 {} +
mkdir -p "$AT/$(dirname "$OUTPUT")"
(cd "$AT" && "$@")
cp "$AT/$OUTPUT" "$FROM/$OUTPUT"
