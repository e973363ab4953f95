# ./dev gpu: what needs a GPU, packed so that a machine with one and no network can run it alone.

readonly GPU_PACK=gpu-pack
readonly GPU_PACK_MOST_KIB=$((40 * 1024))

# The plug-ins of examples/plugin as their author builds them, in FOLDER/plugins/.
gpu_plugins() {
  local folder="$1/plugins" name
  local nvcc=("${CUDA_PATH:-/usr/local/cuda}/bin/nvcc" -O2 -shared -Xcompiler -fPIC -gencode arch=compute_80,code=compute_80
    -Ikernels/plugin)
  mkdir -p "$folder"
  "${nvcc[@]}" -o "$folder/attention.so" examples/plugin/attention.cu
  for name in unwritten overrun changes_input scratch_overrun bad_pointer neighbours; do
    "${nvcc[@]}" "-DWRONG=${name^^}" "-DNAME=\"cuda_$name\"" -o "$folder/$name.so" examples/plugin/wrong.cu
  done
  gcc -O2 -fPIC -shared -ffp-contract=off -Ikernels/plugin -o "$folder/swiglu.so" examples/plugin/swiglu.c -lm
  cp examples/plugin/swiglu_triton.py "$folder/"
}

# Builds the program of all GPU tests and benchmarks as a release, and puts it with what it reads and the script that
# runs it into gpu-pack/. Needs the CUDA toolkit, no GPU.
gpu_pack() {
  [[ -x "${CUDA_PATH:-/usr/local/cuda}/bin/nvcc" ]] || die "gpu pack needs the CUDA toolkit (nvcc)"
  require_packages package
  unpack_static_sources
  # Not run_bazel: that leaves CUDA out where there is no GPU.
  bazel build --config=release --config=cuda //tests/gpu:gpu_tests //client:plumbline //server:plumbline-server \
    //worker:plumbline-worker //worker/checkpoint:write_checkpoint
  rm -rf "$GPU_PACK"
  mkdir -p "$GPU_PACK"
  local made
  made="$(mktemp -d)"
  gpu_plugins "$made"
  # One archive with a window wide enough that what the programs have in common, captures too, is there once.
  tar -C bazel-bin/tests/gpu -ch gpu_tests -C "$PWD/bazel-bin/client" plumbline -C "$PWD/bazel-bin/server" \
    plumbline-server -C "$PWD/bazel-bin/worker" plumbline-worker -C "$PWD/bazel-bin/worker/checkpoint" \
    write_checkpoint -C "$PWD" tests/golden tools/capture -C "$made" plugins |
    xz --lzma2=preset=6,dict=256MiB --stdout >"$GPU_PACK/programs.tar.xz"
  rm -rf "$made"
  install -m 755 tests/gpu/run.sh tests/gpu/*.py "$GPU_PACK/"
  local kib
  kib="$(du -sk "$GPU_PACK" | cut -f1)"
  ((kib <= GPU_PACK_MOST_KIB)) || die "$GPU_PACK is $kib KiB; at most $GPU_PACK_MOST_KIB may be carried"
  echo "$GPU_PACK: $kib KiB. On a machine with a GPU: bash $GPU_PACK/run.sh"
}

dev_gpu() {
  local command="${1:-}"
  shift || true
  case "$command" in
    pack)
      (($# == 0)) || die "gpu pack takes no arguments"
      gpu_pack
      ;;
    run)
      [[ -e "$GPU_PACK/run.sh" ]] || die "there is no $GPU_PACK; make it with ./dev gpu pack"
      bash "$GPU_PACK/run.sh" "$@"
      ;;
    *) die "gpu takes 'pack' or 'run [PART]', not '$command'" ;;
  esac
}
