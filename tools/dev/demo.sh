# ./dev demo: the main job end to end, as three separate processes on this machine.

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

  bazel-bin/worker/plumbline-worker --server="$server" --checkpoint-root="$ROOT/tests/golden" \
    --metrics=127.0.0.1:0 --state-dir="$SCRATCH/worker" >"$SCRATCH/worker.log" 2>&1 &
  local worker_pid=$!
  STARTED_PIDS+=("$worker_pid")
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
  return "$status"
}
