# What every subcommand of ./dev uses. Sourced, with the working directory at the root of the tree.

# Says in one line what is wrong, and ends the script with status 2.
die() {
  echo "./dev: $*" >&2
  exit 2
}

have() {
  command -v "$1" >/dev/null 2>&1
}

# Whether this machine has a GPU.
have_gpu() {
  [[ -e /dev/nvidia0 ]] || { have nvidia-smi && nvidia-smi -L 2>/dev/null | grep -q '^GPU'; }
}

# bazel COMMAND with this machine's configuration. Arguments as Bazel's, after the command.
run_bazel() {
  local command="$1"
  shift
  local flags=()
  have_gpu || flags+=(--config=cpu)
  bazel "$command" "${flags[@]}" "$@"
}

# The tree's own files whose names match the find(1) expression given, one a line: nothing generated or installed.
find_sources() {
  find . \( -name .git -o -name node_modules -o -name 'bazel-*' -o -path ./dist -o -path ./gpu-pack -o -path './third_party/static/*/*' \) \
    -prune -o -type f \( "$@" \) -print | sort
}

# A folder for what a subcommand writes on its way; gone when the script ends.
SCRATCH="$(mktemp -d -t plumbline.XXXXXX)"

# Processes that a subcommand started and that must not outlive it.
STARTED_PIDS=()

clean_up() {
  local status=$?
  trap - EXIT
  if ((${#STARTED_PIDS[@]})); then
    kill "${STARTED_PIDS[@]}" 2>/dev/null || true
    local pid
    for pid in "${STARTED_PIDS[@]}"; do
      timeout 10 tail --pid="$pid" -f /dev/null || kill -KILL "$pid" 2>/dev/null || true
    done
  fi
  rm -rf "$SCRATCH"
  # In CI nothing may outlive the script. Elsewhere Bazel's server stays, and the next build is the faster for it.
  [[ -z "${CI:-}" ]] || bazel shutdown >/dev/null 2>&1 || true
  exit "$status"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
