#!/bin/bash
# The CUDA examples build with nvcc and the header alone, and what comes out is a plug-in: it loads and declares what the
# loader accepts, with a GPU or without.
set -euo pipefail

readonly PROBE="$PWD/$1"
readonly NVCC="${CUDA_PATH:-/usr/local/cuda}/bin/nvcc"
if [[ ! -x "$NVCC" ]]; then
  echo "skipped: there is no nvcc"
  exit 0
fi

cd examples/plugin
for name in attention wrong; do
  "$NVCC" -O1 -shared -Xcompiler -fPIC,-Wall,-Wextra -gencode arch=compute_80,code=compute_80 -DWRONG=OVERRUN \
    -DNAME='"overrun"' -I"$(dirname ../../kernels/plugin/plumbline_plugin.h)" -o "$TEST_TMPDIR/$name.so" "$name.cu"
  answer="$("$PROBE" --probe-plugin-object "$TEST_TMPDIR/$name.so" 3>&1 >/dev/null)"
  if [[ "$answer" != good ]]; then
    echo "FAILED: $name.cu: the probe says '$answer'" >&2
    exit 1
  fi
done
