# ./dev lint: pyflakes over every Python file, and clang-tidy, as .clang-tidy configures it, over every C++ source; or
# over those named.

# Fails, listing them, if pyflakes finds anything in the files given, or in any of the tree: names that are not used, or
# not there.
check_python() {
  local sources=("$@") found
  ((${#sources[@]})) || mapfile -t sources < <(find_sources -name '*.py')
  # Benchmarks free a GPU's memory with del, behind lambdas that pyflakes reads as if they were called after it.
  found="$(pyflakes3 "${sources[@]}" 2>&1 | grep -vE '^(\./)?tests/gpu/[^:]*:[0-9:]+ undefined name ')" || true
  [[ -n "$found" ]] || return 0
  printf '%s\n' "$found"
  return 1
}

# What Bazel passes, and the defines of third_party/system.
lint_cxx() {
  # Generated headers must be there to be included.
  run_bazel build //proto/... || return
  local flags=(
    -std=c++17 -march=x86-64-v3 -I. -Ibazel-bin
    -DSPDLOG_FMT_EXTERNAL -DSPDLOG_COMPILED_LIB -DSPDLOG_SHARED_LIB
    -DCPPHTTPLIB_BROTLI_SUPPORT -DCPPHTTPLIB_OPENSSL_SUPPORT -DCPPHTTPLIB_ZLIB_SUPPORT
  )
  printf '%s\0' "$@" |
    xargs -0 --max-procs="$(nproc)" -I{} clang-tidy --quiet {} -- "${flags[@]}" 2>&1 |
    { grep -v ' warnings generated.$' || true; }
}

dev_lint() {
  require_packages lint
  local python=() cxx=() file status=0
  for file in "$@"; do
    if [[ "$file" == *.py ]]; then python+=("$file"); else cxx+=("$file"); fi
  done
  (($#)) || mapfile -t cxx < <(find_sources -name '*.cc')
  if (($# == 0 || ${#python[@]})); then check_python "${python[@]}" || status=1; fi
  if ((${#cxx[@]})); then lint_cxx "${cxx[@]}" || status=1; fi
  return "$status"
}
