# ./dev soak: a coordinator and its workers killed again and again, and everything that was acknowledged checked.

dev_soak() {
  local kills="${1:-10000}"
  (($# <= 2)) && [[ "$kills" =~ ^[0-9]+$ ]] || die "soak takes a number of kills and a seed"
  require_packages build
  run_bazel build //server/testing:soak //server:plumbline-server
  bazel-bin/server/testing/soak --server=bazel-bin/server/plumbline-server --kills="$kills" ${2:+--seed="$2"}
}
