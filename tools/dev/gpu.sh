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
  bazel build --config=release --config=cuda //tests/gpu:gpu_tests
  rm -rf "$GPU_PACK"
  mkdir -p "$GPU_PACK"
  local made name
  made="$(mktemp -d)"
  gpu_plugins "$made"
  # The one program under all its names.
  cp bazel-bin/tests/gpu/gpu_tests "$made/"
  for name in plumbline plumbline-server plumbline-worker write_checkpoint; do ln "$made/gpu_tests" "$made/$name"; done
  # A window wide enough that what the program has embedded of the captures is there once.
  tar -C "$made" -c . -C "$PWD" tests/golden tools/capture |
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
