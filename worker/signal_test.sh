#!/bin/bash
# SIGTERM ends a worker with exit status 0, also one that no coordinator answers: libraries start threads before main()
# that do not block the signal.
set -euo pipefail

readonly WORKER="$PWD/worker/plumbline-worker"
readonly LOG="$TEST_TMPDIR/worker.log"

"$WORKER" --server="unix:$TEST_TMPDIR/nobody.sock" --state-dir="$TEST_TMPDIR/state" 2>"$LOG" &
pid=$!
until grep -q ' started ' "$LOG"; do
  kill -0 "$pid" || { cat "$LOG"; exit 1; }
  sleep 0.05
done
kill -TERM "$pid"
status=0
wait "$pid" || status=$?
cat "$LOG"
[[ "$status" == 0 ]] || { echo "exit status $status; expected 0"; exit 1; }
grep -q ' draining ' "$LOG"
