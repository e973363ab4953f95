# ./dev test: every check that must pass before a change goes in. The last line is 'N passed, N failed, N skipped'.

source tools/dev/format.sh
source tools/dev/lint.sh
source tools/dev/package.sh
source tools/dev/web.sh

# Tests the Bazel targets behind --, with the flags before it, as the run of the name given, and notes the results for
# the summary.
run_tests() {
  local name="$1"
  shift
  local events="$SCRATCH/test_run_$name.json" started=$SECONDS
  # Bazel's own status is in the events: a failure here must not keep the runs behind it from being made.
  run_bazel test --keep_going --build_event_json_file="$events" "$@" || true
  runs+=(--run "$name=$events")
  took "$name" "$started"
}

# Runs a check that is no Bazel test, the command behind the name, and notes its result for the summary. One that ends
# its shell, as die does, ends itself alone.
run_check() {
  local name="$1" status=0 started=$SECONDS
  shift
  ("$@") || status=1
  runs+=(--check "$name=$status")
  took "$name" "$started"
}

took() {
  local seconds=$((SECONDS - $2))
  printf -- '-- %s took %d min %d s\n' "$1" $((seconds / 60)) $((seconds % 60))
}

# What only --full runs: the sanitizers over the unit tests, the CLI as it is shipped, and packages as they are installed.
readonly FULL_PARTS=(asan tsan release packages)

# What a part needs beyond what every test does.
prepare_full_part() {
  case "$1" in
    release)
      require_packages package
      unpack_static_sources
      ;;
    packages)
      require_packages package
      require_packages full
      unpack_static_sources
      ;;
  esac
}

# One of those parts, over the targets given or all it is for. What has passed since it last changed is not run again,
# so that a part that was interrupted goes on where it was; packages are installed anew each time.
run_full_part() {
  local part="$1"
  shift
  local unit_tests=(//common/... //kernels/... //worker/... //server/... //client/... //tests/fuzz/...)
  case "$part" in
    asan)
      echo "== AddressSanitizer and UndefinedBehaviorSanitizer"
      run_tests asan --config=asan -- "${@:-${unit_tests[@]}}"
      ;;
    tsan)
      echo "== ThreadSanitizer"
      run_tests tsan --config=tsan -- "${@:-${unit_tests[@]}}"
      ;;
    release)
      echo "== Release build"
      run_tests release --config=release -- "${@:-//tests/release:static_binary_test}"
      ;;
    packages)
      echo "== Packages: installed, used and purged in a Debian of their own, and as images"
      run_check packages test_packages
      ;;
  esac
}

test_packages() {
  ./dev package --cpu && python3 -B tests/release/packages_test.py dist
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

# --full PART [TARGET...]
test_one_part() {
  local part="$1"
  shift
  [[ " ${FULL_PARTS[*]} " == *" $part "* ]] || die "--full takes ${FULL_PARTS[*]} or nothing, not '$part'"
  [[ "$part" != packages ]] || (($# == 0)) || die "--full packages takes no targets"
  require_packages test
  prepare_full_part "$part"
  run_full_part "$part" "$@"
}

# Everything, or the targets given; with `full` set the parts behind it.
test_all() {
  local part
  require_packages test
  install_buildifier
  install_web_clients
  install_slurm
  # What a part lacks is said now, not after what comes before it.
  [[ -z "$full" ]] || for part in "${FULL_PARTS[@]}"; do prepare_full_part "$part"; done

  run_check formatting check_format
  run_check python check_python
  run_tests tests -- "${@:-//...}"
  if (($# == 0)); then
    echo "== Dashboard"
    run_check dashboard test_dashboard
  fi
  [[ -z "$full" ]] || for part in "${FULL_PARTS[@]}"; do run_full_part "$part"; done
}

dev_test() {
  local runs=() full=""
  trap 'echo "./dev: interrupted. The same command goes on behind the tests that have passed" >&2; exit 130' INT
  if [[ "${1:-}" == --full ]]; then
    full=yes
    shift
  fi
  [[ "${1:-}" != --* ]] || die "test takes --full or Bazel targets, not '$1'"
  if [[ -n "$full" ]] && (($#)); then
    test_one_part "$@"
  else
    test_all "$@"
  fi
  python3 bazel/test_summary.py "${runs[@]}"
}
