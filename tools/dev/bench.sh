# ./dev bench: what coordinator and decoders must be as fast as, against their peers in the same run, and how fast
# videos are compared; with --gpu, what the kernels must be as fast as.

# Runs the pack's own benchmark, so that what is measured here is what is measured where nothing can be built.
bench_gpu() {
  (($# == 0)) || die "bench --gpu takes no arguments"
  source tools/dev/gpu.sh
  [[ -e "$GPU_PACK/run.sh" ]] || dev_gpu pack
  dev_gpu run bench
}

# Passes on what a benchmark prints, and adds the rows of the last table among it to file $1.
tee_rows() {
  tee >(grep '^| [0-9]' >>"$1" || true)
}

dev_bench() {
  if [[ "${1:-}" == --gpu ]]; then
    shift
    bench_gpu "$@"
    return
  fi
  (($# <= 1)) || die "bench takes one folder at most"
  require_packages build
  # Optimised, as they are shipped: the coordinator and what loads it share the machine.
  run_bazel build --compilation_mode=opt //server/bench:step_store_bench //server/bench:store_start_bench \
    //server/bench:load_bench //server:plumbline-server //worker/media/bench:compare_bench \
    //worker/jobs/decode/bench:decode_bench

  local server=bazel-bin/server/plumbline-server rows="$SCRATCH/rows"
  echo "== Steps of 14.4 MB written one after another, synced"
  bazel-bin/server/bench/step_store_bench "$@" | tee_rows "$rows"

  echo "== Start with many jobs and runs"
  bazel-bin/server/bench/store_start_bench --server="$server" "$@" | tee_rows "$rows"

  echo "== Two videos of the released size compared"
  bazel-bin/worker/media/bench/compare_bench "$@"

  echo "== A thousand workers, a hundred watchers, ten thousand tasks"
  bazel-bin/server/bench/load_bench --server="$server" --folder="${1:-${TMPDIR:-/tmp}}" | tee_rows "$rows"

  # Kernels are compiled with their own options in every build.
  echo "== Small decoders against their matrix products"
  bazel-bin/worker/jobs/decode/bench/decode_bench 2

  echo "== The coordinator, with everything that loads it on the same machine"
  printf '| | work | must | measured | |\n| --- | --- | --- | --- | --- |\n'
  sort "$rows"
}
