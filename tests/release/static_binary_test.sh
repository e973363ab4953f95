#!/bin/bash
# The release build's promise: the CLI, with its embedded server and worker, is one file under 64 MiB that runs on a
# machine with none of our packages but glibc and libm. Such a machine is made here as a folder to chroot into.
# Only right for a release build: bazel test --config=release //tests/release:static_binary_test
set -euo pipefail

readonly BINARY="$1"
readonly MAX_BYTES=$((64 << 20))
readonly MACHINE="$TEST_TMPDIR/machine"

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

# Runs a program of $MACHINE as if there were nothing else; a user namespace stands in for root where that is needed.
on_bare_machine() {
  local enter=(chroot "$MACHINE")
  ((EUID == 0)) || enter=(unshare --map-root-user "${enter[@]}")
  env --ignore-environment HOME=/tmp PATH="$PATH" "${enter[@]}" "$@"
}

bytes="$(stat --dereference --format=%s "$BINARY")"
echo "size: $bytes bytes of at most $MAX_BYTES"
((bytes < MAX_BYTES)) || fail "the binary has $bytes bytes, $MAX_BYTES are allowed"

# What the dynamic linker has to find: glibc and libm, by name.
needed="$(objdump -p "$BINARY" | awk '$1 == "NEEDED" { print $2 }')"
while read -r library; do
  case "$library" in
    libc.so.6 | libm.so.6 | ld-linux-x86-64.so.2) ;;
    *) fail "the binary needs $library; only libc, libm and the dynamic linker are allowed" ;;
  esac
done <<<"$needed"
newest="$(objdump -T "$BINARY" | grep -oP 'GLIBC_\K[0-9.]+' | sort --version-sort | tail -n 1)"
[[ "$(printf '%s\n2.36\n' "$newest" | sort --version-sort | tail -n 1)" == 2.36 ]] ||
  fail "the binary needs glibc $newest; 2.36 is allowed"

mkdir -p "$MACHINE/lib64" "$MACHINE/lib/x86_64-linux-gnu" "$MACHINE/tmp"
cp --dereference /lib64/ld-linux-x86-64.so.2 "$MACHINE/lib64/"
cp --dereference /lib/x86_64-linux-gnu/{libc.so.6,libm.so.6} "$MACHINE/lib/x86_64-linux-gnu/"
cp --dereference "$BINARY" "$MACHINE/plumbline"

on_bare_machine /plumbline --help >"$TEST_TMPDIR/help.txt" || fail "plumbline --help does not run"
grep -q block-replay "$TEST_TMPDIR/help.txt" || fail "plumbline --help does not name block-replay"

# The embedded server and worker run a whole job: a gate that passes ends with status 0.
on_bare_machine /plumbline submit block-replay --checkpoint=synthetic:tiny --layouts=tiny --backward --wait \
  >"$TEST_TMPDIR/report.txt" 2>&1 || {
  status=$?
  cat "$TEST_TMPDIR/report.txt"
  fail "the embedded block replay ended with status $status"
}
grep -q first_failure "$TEST_TMPDIR/report.txt" || fail "the block replay printed no verdict"
