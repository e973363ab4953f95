# ./dev fuzz: every fuzzer of tests/fuzz, or those named, for a minute each (SECONDS_EACH), beginning with its corpus.

dev_fuzz() {
  require_packages fuzz
  local names=("$@") name failed=()
  ((${#names[@]})) || mapfile -t names < <(cd tests/fuzz && ls ./*_fuzz.cc | sed 's|^\./||; s|_fuzz\.cc$||')
  for name in "${names[@]}"; do
    [[ -e "tests/fuzz/${name}_fuzz.cc" ]] || die "there is no fuzzer '$name' in tests/fuzz"
  done
  run_bazel build --config=fuzz $(printf '//tests/fuzz:%s_fuzzer ' "${names[@]}")
  for name in "${names[@]}"; do
    echo "== $name"
    mkdir -p "$SCRATCH/$name"
    # What is new goes to the scratch folder; a crash is kept where it can be looked at.
    "bazel-bin/tests/fuzz/${name}_fuzzer" -max_total_time="${SECONDS_EACH:-60}" -timeout=10 -rss_limit_mb=2048 \
      -artifact_prefix="$PWD/fuzz-$name-" -print_final_stats=0 "$SCRATCH/$name" "tests/fuzz/corpus/$name" \
      >"$SCRATCH/$name.log" 2>&1 || failed+=("$name")
    tail -n 1 "$SCRATCH/$name.log"
  done
  ((${#failed[@]} == 0)) || die "found something: ${failed[*]}; see fuzz-NAME-crash-*, and keep it in tests/fuzz/corpus"
}
