# ./dev demo: the main jobs end to end, as separate processes on this machine.

# Waits until FILE exists. Ends the script if the process that is to write it (PID, called NAME) has ended.
wait_for_file() {
  local file="$1" pid="$2" name="$3"
  until [[ -s "$file" ]]; do
    kill -0 "$pid" 2>/dev/null || die "$name ended before it was ready: $(tail -n 1 "$SCRATCH/$name.log")"
    sleep 0.05
  done
}

# The string value of KEY in the JSON object in FILE.
json_string() {
  python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$1" "$2"
}

# A worker of SERVER that keeps its files under NAME; its process is $!.
start_worker() {
  bazel-bin/worker/plumbline-worker --server="$1" --checkpoint-root="$ROOT/tests/golden" --metrics=127.0.0.1:0 \
    --grpc=127.0.0.1:0 --state-dir="$SCRATCH/$2" >"$SCRATCH/$2.log" 2>&1 &
  STARTED_PIDS+=("$!")
}

dev_demo() {
  require_packages demo
  run_bazel build //server:plumbline-server //worker:plumbline-worker //client:plumbline

  echo "== Server and worker"
  bazel-bin/server/plumbline-server --listen=127.0.0.1:0 --http=127.0.0.1:0 --data-dir="$SCRATCH/server" \
    --ready-file="$SCRATCH/server.json" >"$SCRATCH/server.log" 2>&1 &
  local server_pid=$!
  STARTED_PIDS+=("$server_pid")
  wait_for_file "$SCRATCH/server.json" "$server_pid" server
  local server
  server="$(json_string "$SCRATCH/server.json" listen)"

  start_worker "$server" worker
  local worker_pid=$!
  echo "server at $server, HTTP at $(json_string "$SCRATCH/server.json" http)"

  echo "== Block replay of tests/golden/checkpoint, forward and backward"
  bazel-bin/client/plumbline submit block-replay --server="$server" --checkpoint="$ROOT/tests/golden/checkpoint" \
    --layouts=tiny --backward --wait &
  local client_pid=$! ended status=0
  STARTED_PIDS+=("$client_pid")
  # Without its worker the client would wait for ever.
  wait -n -p ended "$client_pid" "$server_pid" "$worker_pid" || status=$?
  case "$ended" in
    "$server_pid") die "server ended during the replay: $(tail -n 1 "$SCRATCH/server.log")" ;;
    "$worker_pid") die "worker ended during the replay: $(tail -n 1 "$SCRATCH/worker.log")" ;;
  esac
  [[ "$status" == 0 ]] || return "$status"
  demo_generation "$server" "$worker_pid"
}

# Three seeds, first by the provider, then by the candidate, whose worker is told to end while it is in the middle of
# the second one; another worker goes on at the next step. All are decoded, and the candidate's videos are measured
# against the provider's, beside the provider's own spread. SERVER, WORKER_PID: of what runs.
demo_generation() {
  local server="$1" worker_pid="$2"
  write_demo_generation
  echo "== Generation of three seeds by the provider: as it is, with other attention kernels, and once more"
  local reference spread repeat job
  reference="$(submit_demo_generation "$server" contract --composition=provider)"
  spread="$(submit_demo_generation "$server" contract --composition=provider/sdpa-math)"
  # Of a contract with other bounds, so that it is another run and nothing is taken from the first.
  repeat="$(submit_demo_generation "$server" contract-again --composition=provider)"
  await_demo_jobs "$server" "$reference" "$spread" "$repeat"

  echo "== Generation of three seeds by the candidate, preempted on purpose in the middle of its second seed"
  job="$(submit_demo_generation "$server" contract --preflight --against="$reference" --spread="$spread" \
    --repeat="$repeat")"
  until [[ "$(steps_of_second_seed "$server" "$job")" -ge $((DEMO_STEPS / 4)) ]]; do
    kill -0 "$worker_pid" 2>/dev/null || die "worker ended too early: $(tail -n 1 "$SCRATCH/worker.log")"
    sleep 0.05
  done
  kill -TERM "$worker_pid"
  wait "$worker_pid"
  echo "the worker has handed its task back; another one goes on"
  start_worker "$server" worker-2
  await_demo_jobs "$server" "$job"
  bazel-bin/client/plumbline report "$job" --server="$server"
}

# The name of a new generation job. SERVER CONTRACT [FLAG...]
submit_demo_generation() {
  bazel-bin/client/plumbline submit generation --server="$1" --checkpoint="$ROOT/tests/golden/checkpoint" \
    --contract="$SCRATCH/$2.json" --conditioning="$SCRATCH/conditioning.safetensors" "${@:3}"
}

# Waits until jobs have ended. SERVER JOB...
await_demo_jobs() {
  local job
  for job in "${@:2}"; do
    bazel-bin/client/plumbline jobs watch "$job" --server="$1" >>"$SCRATCH/watch.log" || true
  done
}

DEMO_STEPS=40

# How many steps of its second seed a job has done. SERVER JOB
steps_of_second_seed() {
  bazel-bin/client/plumbline jobs get "$2" --server="$1" --format=json | python3 -c '
import json, sys
task = json.load(sys.stdin)["tasks"][1]
ended = task["state"] not in ("JOB_STATE_QUEUED", "JOB_STATE_RUNNING")
print(sys.argv[1] if ended else task.get("progress", {}).get("done", 0))' "$DEMO_STEPS"
}

# A small generation's conditioning file and contracts.
write_demo_generation() {
  local write="$ROOT/tests/e2e/write_generation.py" conditioning="$SCRATCH/conditioning.safetensors"
  PYTHONPATH="$ROOT" python3 "$write" "$ROOT/tests/golden" "$SCRATCH/contract.json" "$conditioning" "$DEMO_STEPS"
  python3 - "$SCRATCH" <<'PYTHON'
import json, sys

with open(f"{sys.argv[1]}/contract.json") as file:
    contract = json.load(file)
with open(f"{sys.argv[1]}/contract-again.json", "w") as file:
    json.dump({**contract, "bounds": {"psnr_db_min": 29}}, file)
PYTHON
}
