# ./dev test: every check that must pass before a change goes in. The last line is 'N passed, N failed, N skipped'.

source tools/dev/format.sh
source tools/dev/package.sh
source tools/dev/web.sh

# Tests the Bazel targets given behind --, with the flags before it, and notes the results for the summary.
run_tests() {
  local events="$SCRATCH/test_run_$((${#event_files[@]} + 1)).json"
  # Bazel's own status is in the events: a failure here must not keep the runs behind it from being made.
  run_bazel test --keep_going --build_event_json_file="$events" "$@" || true
  event_files+=("$events")
}

# What only --full runs: the sanitizers over the unit tests, the CLI as it is shipped, and packages as they are installed.
readonly FULL_PARTS=(asan tsan release packages)

# One of those parts, over the targets given or all it is for. What has passed since it last changed is not run again,
# so that a part that was interrupted goes on where it was.
run_full_part() {
  local part="$1"
  shift
  local unit_tests=(//common/... //kernels/... //worker/... //server/... //client/... //tests/fuzz/...)
  case "$part" in
    asan)
      echo "== AddressSanitizer and UndefinedBehaviorSanitizer"
      run_tests --config=asan -- "${@:-${unit_tests[@]}}"
      ;;
    tsan)
      echo "== ThreadSanitizer"
      run_tests --config=tsan -- "${@:-${unit_tests[@]}}"
      ;;
    release)
      echo "== Release build"
      require_packages package
      unpack_static_sources
      run_tests --config=release -- "${@:-//tests/release:static_binary_test}"
      ;;
    packages)
      echo "== Packages: installed, used and purged in a Debian of their own, and as images"
      (($# == 0)) || die "packages takes no targets"
      require_packages package
      require_packages full
      unpack_static_sources
      local status=0
      { ./dev package --cpu && python3 -B tests/release/packages_test.py dist; } || status=1
      checks+=(--check "packages=$status")
      ;;
  esac
}

# The gRPC-Web clients that tests/e2e/web_clients_test.py uses, pinned by their package-lock.json.
install_web_clients() {
  local folder=tests/e2e/web
  [[ -d "$folder/node_modules" && ! "$folder/package-lock.json" -nt "$folder/node_modules" ]] && return 0
  npm ci --prefix "$folder" --no-audit --no-fund >"$SCRATCH/npm.log" 2>&1 ||
    die "cannot install the gRPC-Web clients with npm: $(grep -m1 -i 'err' "$SCRATCH/npm.log")"
  touch "$folder/node_modules"
}

# What the test of workers under Slurm runs. Where it is not to be had that test is skipped, and says what it lacks.
install_slurm() {
  (require_packages slurm) || echo "Without Slurm: tests/e2e/slurm_test.py is skipped"
}

dev_test() {
  local full=()
  if [[ "${1:-}" == --full ]]; then
    full=("${FULL_PARTS[@]}")
    shift
  fi
  local event_files=() checks=()
  local part
  for part in "${full[@]}"; do
    [[ "${1:-}" == "$part" ]] || continue
    shift
    require_packages test
    run_full_part "$part" "$@"
    python3 bazel/test_summary.py "${checks[@]}" "${event_files[@]}"
    return
  done
  [[ "${1:-}" != --* ]] || die "test takes --full or Bazel targets, not '$1'"
  require_packages test
  install_buildifier
  install_web_clients
  install_slurm

  local status=0
  check_format || status=1
  checks+=(--check "formatting=$status")
  run_tests -- "${@:-//...}"
  if (($# == 0)); then
    echo "== Dashboard"
    status=0
    test_dashboard || status=1
    checks+=(--check "dashboard=$status")
  fi
  for part in "${full[@]}"; do run_full_part "$part"; done

  python3 bazel/test_summary.py "${checks[@]}" "${event_files[@]}"
}
