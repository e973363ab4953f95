#!/bin/bash
# Runs the parts of a GPU pack (`./dev gpu pack`) on a machine with a GPU, from the pack's own folder:
#   run.sh [PART...]     default: every part that has not passed yet
# Parts, each under nine minutes:
#   tests      every GPU test, and the candidate's bytes beside another process on the card
#   ptx        the same with the kernels that any card of compute capability 8.0 runs, compiled by the driver, and the gates of
#              a block replay; but for the provider, whose cuBLAS has no such code
#   gates      block replay at the released size: every gate, and the figures of a recorded PyTorch run
#   controls   every negative control of a block replay
#   pytorch    the provider against PyTorch on this machine, node by node
#   decoder    the decoders against PyTorch on this machine
#   plugin     CUDA plug-ins, right and wrong ones, and a Triton kernel judged by what it wrote
#   capture    tools/capture against the captures of the tree, where PyTorch has a diffusers with the model beside it
#   full-model the whole model forward and backward at the released size, against a recorded PyTorch run
#   steps      eight steps of the released size and canvas, candidate and provider, and a worker that is killed
#   seed       a seed from noise to media on a small canvas, candidate and provider
#   files      a checkpoint of 30 GB on disk: loading it, and taking runs up again
#   selftest   every capture and every negative control on this device
#   bench      times of a block and of its operations, candidate and provider, beside PyTorch's: a table, and
#              results/bench.json
#   sanitizer  compute-sanitizer's memcheck, racecheck and initcheck over every kernel at small sizes
# Run only when it is named, on a machine with two GPUs:
#   two-gpus   a seed on each: speed, bytes, and a worker that is killed
# full-model, steps, seed and files are coordinator, worker and command line as processes of their own; what they have done stays
# in results/full/ and results/files/, and a part that did not fit its limit goes on there when it is run again.
# Logs go to results/ (and to $OUT where that is set); the last lines are a table.
set -uo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")"
readonly PARTS=(tests gates controls selftest pytorch decoder plugin capture full-model steps seed files ptx bench sanitizer)
readonly PART_LIMIT_S=540
# Every kernel at small sizes: all operations of golden, provider and candidate, plain and Hopper's own, the fused ones, the
# decoders', conversion, synthesis, noise, comparison, a plug-in and its guards.
SANITIZED='*OddSizes*:*AlignedSizes*:FusedCuda.*:Sm90Product/*:Cuda/DecoderOperationsTest.*'
SANITIZED+=':CudaDevice.Converts*:CudaSynthetic.*:NoiseCuda.*Sequence*:CudaPluginTest.*:*NormsOfManyRows*/520'
readonly PRODUCT_SHARDS=6
export SANITIZED PRODUCT_SHARDS
mkdir -p results

if [[ ! -x plumbline || programs.tar.xz -nt plumbline ]]; then
  python3 -c 'import tarfile; tarfile.open("programs.tar.xz").extractall()'
  touch gpu_tests plumbline plumbline-server plumbline-worker write_checkpoint
fi

# PyTorch's own cuBLAS, where PyTorch is installed: the provider is compared with it.
blas="$(python3 -c 'import glob, importlib.util
spec = importlib.util.find_spec("nvidia")
for place in spec.submodule_search_locations if spec else []:
    for file in glob.glob(place + "/*/lib/libcublas.so.*"):
        print(file.rsplit("/", 1)[0])' 2>/dev/null | head -1)"
[[ -z "$blas" ]] || export LD_LIBRARY_PATH="$blas${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"

run_tests() {
  ./gpu_tests test || return 1
  if grep -q '^no CUDA device' results/tests.log; then return 0; fi
  # Again with another process that keeps the card busy.
  local digest='--gtest_filter=BlockPromises.SaysTheDigestOfABlock' other alone beside
  alone="$(./gpu_tests test "$digest" | grep '^block digest')"
  ./gpu_tests bench candidate >results/busy.log &
  other=$!
  until [[ -s results/busy.log ]] || ! kill -0 "$other" 2>/dev/null; do sleep 0.2; done
  beside="$(./gpu_tests test "$digest" | grep '^block digest')"
  kill "$other" 2>/dev/null || echo "the other process had ended before"
  wait "$other" 2>/dev/null
  echo "alone:                  $alone"
  echo "beside another process: $beside"
  [[ "$alone" == "$beside" ]]
}

# What racecheck said, but for races between a bulk copy and reads behind its barrier where it reports the same of
# BulkCopyRing, which is right: it does not count arrivals at a barrier as an order.
races() {
  grep 'Race reported between' "$1" | {
    if grep -q 'Race reported between Write access at .*ptx::LoadBytes' results/racecheck-control.log; then
      grep -v 'Write access at .*ptx::LoadBytes'
    else
      cat
    fi
  }
}

run_sanitizer() {
  local tool tests shard status=0 environment=()
  PATH="$PATH:/usr/local/cuda/bin"
  if ! command -v compute-sanitizer >/dev/null; then
    echo "compute-sanitizer is not there: not run"
    return 3
  fi
  # Side by side: each takes little of the card. racecheck takes longest, so that it runs as several.
  local -A runs=() filters=(
    [memcheck]="$SANITIZED"
    # What TMA stores, initcheck does not see: products of Hopper's are not for it.
    [initcheck]="${SANITIZED/Sm90Product\/\*:/}"
    [racecheck-candidate]="CandidateCuda.*Sizes*"
    [racecheck-fused]="FusedCuda.*:*NormsOfManyRows*/520"
    [racecheck-others]="$SANITIZED:-Candidate*:FusedCuda.*:Sm90Product/*:*NormsOfManyRows*"
    [racecheck-control]="BulkCopyRing.*"
  )
  for ((shard = 0; shard < PRODUCT_SHARDS; ++shard)); do filters[racecheck-products-$shard]='Sm90Product/*'; done
  for tool in "${!filters[@]}"; do
    environment=()
    if [[ $tool == racecheck-products-* ]]; then
      environment=("GTEST_TOTAL_SHARDS=$PRODUCT_SHARDS" "GTEST_SHARD_INDEX=${tool##*-}")
    fi
    env "${environment[@]}" compute-sanitizer --tool "${tool%%-*}" --error-exitcode 9 ./gpu_tests test --gtest_brief=1 \
      --gtest_filter="${filters[$tool]}" >"results/$tool.log" 2>&1 &
    runs[$tool]=$!
  done
  for tool in "${!runs[@]}"; do
    wait "${runs[$tool]}"
    tests=$?
    echo "== $tool, of ${filters[$tool]}: status $tests"
    cat "results/$tool.log"
    case "$tool" in
      racecheck-control) grep -q '^\[  PASSED  \] 1 test' "results/$tool.log" || status=1 ;;
      racecheck*)
        # Its own status says whether there are races; whether the tests came to their end, gtest's last lines.
        if ! grep -q 'RACECHECK SUMMARY' "results/$tool.log" || ! grep -q '^\[  PASSED  \]' "results/$tool.log" ||
          grep -q '^\[  FAILED' "results/$tool.log"; then
          status=1
        fi
        ;;
      *) ((tests == 0)) || status=1 ;;
    esac
  done
  for tool in "${!filters[@]}"; do
    [[ $tool == racecheck-* && $tool != racecheck-control ]] || continue
    echo "$tool: $(races "results/$tool.log" | wc -l) races that are not the control's"
    [[ -z "$(races "results/$tool.log")" ]] || status=1
  done
  return "$status"
}

run_bench() {
  ./gpu_tests bench candidate results/candidate.json && ./gpu_tests bench provider/default results/provider.json &&
    ./gpu_tests bench difference && ./gpu_tests bench loading || return 1
  if ! python3 -c 'import torch' 2>/dev/null; then
    echo "PyTorch is not there: no ratios"
    return 0
  fi
  python3 pytorch_bench.py results/pytorch.json &&
    python3 bench_table.py results/{candidate,provider,pytorch,bench}.json || return 1
  [[ -z "${OUT:-}" ]] || cp results/bench.json "$OUT/"
}

run_capture() {
  if ! python3 -c 'from diffusers import MiniMaxH3Transformer3DModel' 2>/dev/null; then
    echo "PyTorch with a diffusers that has MiniMaxH3Transformer3DModel is not there: not run"
    return 3
  fi
  python3 capture.py tools/capture tests/golden results/capture
}

run_seed() {
  python3 seed.py . results/full || return
  [[ -z "${OUT:-}" ]] || cp results/full/quality.txt $(ls results/full/media/*.mp4 2>/dev/null) "$OUT/"
}

run_part() {
  case "$1" in
    tests) run_tests ;;
    ptx)
      CUDA_FORCE_PTX_JIT=1 ./gpu_tests test --gtest_filter='-ProviderCuda*:*TheProvider*:*/provider' &&
        python3 block_replay.py ptx ./plumbline tests/golden
      ;;
    gates | controls | pytorch) python3 block_replay.py "$1" ./plumbline tests/golden ;;
    decoder) python3 pytorch_decoder.py ./plumbline tests/golden ;;
    plugin) python3 plugin.py ./plumbline ./plugins ;;
    selftest) ./plumbline selftest ;;
    capture) run_capture ;;
    bench) run_bench ;;
    full-model) python3 full_model.py . tests/golden results/full ;;
    steps) python3 steps.py . results/full ;;
    files) python3 files.py . results/files ;;
    seed) run_seed ;;
    two-gpus) python3 two_gpus.py . ;;
    sanitizer) run_sanitizer ;;
    *) echo "no part '$1'; there are: ${PARTS[*]}" && return 2 ;;
  esac
}
export -f run_part run_tests run_capture run_bench run_sanitizer run_seed races

table=()
failed=0
parts=("$@")
((${#parts[@]})) || parts=("${PARTS[@]}")
for part in "${parts[@]}"; do
  if [[ $# -eq 0 && -e "results/$part.passed" ]]; then
    table+=("$part|passed before|")
    continue
  fi
  start=$SECONDS
  timeout "$PART_LIMIT_S" bash -c "run_part $part" >"results/$part.log" 2>&1
  status=$?
  seconds=$((SECONDS - start))
  [[ -z "${OUT:-}" ]] || cp "results/$part.log" "$OUT/"
  if [[ $status -eq 0 ]] && grep -q '^no CUDA device' "results/$part.log"; then status=4; fi
  case $status in
    0) word=passed && touch "results/$part.passed" ;;
    3) word="not run" ;;
    4) word="skipped: no CUDA device" ;;
    5) word="not finished: run it again" ;;
    124) word="stopped at its limit" ;;
    *) word="FAILED ($status)" ;;
  esac
  [[ $status -eq 0 || $status -eq 3 || $status -eq 4 ]] || failed=1
  if [[ $part != tests && $part != ptx && $part != sanitizer ]]; then
    cat "results/$part.log"
  else
    # What failed, with what was said about it.
    awk '/^\[ RUN/ {text = ""} {text = text $0 "\n"} /^\[  FAILED  \].*ms\)/ {printf "%s", text}' "results/$part.log" |
      cut -c1-220 | head -60
    grep -E 'ERROR SUMMARY|=========.*(Invalid|Race|Uninit|error)' "results/$part.log" | sort | uniq -c | sort -rn | head -20
  fi
  table+=("$part|$word|${seconds} s $(grep -cE '^\[       OK' "results/$part.log") ok $(grep -cE '^\[  FAILED  \].*ms\)' "results/$part.log") failed $(grep -cE '^\[  SKIPPED \].*ms\)' "results/$part.log") skipped")
done

echo "== parts"
printf '%s\n' "${table[@]}" | awk -F '|' '{printf "%-11s %-24s %s\n", $1, $2, $3}'
exit "$failed"
