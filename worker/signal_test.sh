#!/bin/bash
# SIGTERM ends a worker in good order, also one that no coordinator answers: libraries start threads before main() that
# do not block the signal. The exit status is 0, or what --preempted-exit-status says.
set -euo pipefail

readonly WORKER="$PWD/worker/plumbline-worker"

# Runs a worker with FLAG..., sends it SIGNALS, a list, and wants exit status EXPECTED. EXPECTED SIGNALS [FLAG...]
end_with() {
  local expected="$1" signals="$2" log="$TEST_TMPDIR/worker.log" pid signal status=0
  shift 2
  rm -f "$log"
  "$WORKER" --server="unix:$TEST_TMPDIR/nobody.sock" --state-dir="$TEST_TMPDIR/state" "$@" 2>"$log" &
  pid=$!
  until grep -qs ' started ' "$log"; do
    kill -0 "$pid" || { cat "$log"; exit 1; }
    sleep 0.05
  done
  for signal in $signals; do kill -"$signal" "$pid" || true; done
  wait "$pid" || status=$?
  cat "$log"
  [[ "$status" == "$expected" ]] || { echo "exit status $status; expected $expected"; exit 1; }
  grep -q ' draining ' "$log"
}

end_with 0 TERM
end_with 85 TERM --preempted-exit-status=85
# A scheduler may say it more than once: that is no order to drop everything.
end_with 85 "TERM TERM TERM" --preempted-exit-status=85
! grep -q ' stopping ' "$TEST_TMPDIR/worker.log" || { echo "SIGTERM said twice was taken for two orders"; exit 1; }

# Flags alone: no coordinator, no folder.
rm -rf "$TEST_TMPDIR/state"
said="$("$WORKER" --check-flags --server=unix:/nobody --state-dir="$TEST_TMPDIR/state" --token-file=/nowhere --memory=1GiB)"
[[ "$said" == plumbline-worker*"takes these flags" ]] || { echo "--check-flags says '$said'"; exit 1; }
[[ ! -e "$TEST_TMPDIR/state" ]] || { echo "--check-flags made a folder"; exit 1; }
for wrong in --memory=some --label=x --grace=-1 --tokenfile=/nowhere word; do
  status=0
  said="$("$WORKER" --check-flags --server=unix:/nobody "$wrong" 2>&1)" || status=$?
  [[ "$status" == 2 && "$said" == "plumbline-worker: "* ]] || { echo "--check-flags takes $wrong: $said"; exit 1; }
done

# Wrong use and a folder that is taken are neither of it.
status=0
"$WORKER" --server=unix:/nobody --preempted-exit-status=256 || status=$?
[[ "$status" == 2 ]] || { echo "exit status $status for a flag that is wrong; expected 2"; exit 1; }
mkdir -p "$TEST_TMPDIR/state"
status=0
flock "$TEST_TMPDIR/state/lock" "$WORKER" --server="unix:$TEST_TMPDIR/nobody.sock" --state-dir="$TEST_TMPDIR/state" \
  --preempted-exit-status=85 || status=$?
[[ "$status" == 75 ]] || { echo "exit status $status for a folder in use; expected 75"; exit 1; }
