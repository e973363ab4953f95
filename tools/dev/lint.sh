# ./dev lint: clang-tidy, as .clang-tidy configures it, over every C++ source or those named.

dev_lint() {
  require_packages lint
  local sources=("$@")
  ((${#sources[@]})) || mapfile -t sources < <(find_sources -name '*.cc')
  # Generated headers must be there to be included.
  run_bazel build //proto/...
  # What Bazel passes, and the defines of third_party/system.
  local flags=(
    -std=c++17 -march=x86-64-v3 -I. -Ibazel-bin
    -DSPDLOG_FMT_EXTERNAL -DSPDLOG_COMPILED_LIB -DSPDLOG_SHARED_LIB
    -DCPPHTTPLIB_BROTLI_SUPPORT -DCPPHTTPLIB_OPENSSL_SUPPORT -DCPPHTTPLIB_ZLIB_SUPPORT
  )
  printf '%s\0' "${sources[@]}" |
    xargs -0 --max-procs="$(nproc)" -I{} clang-tidy --quiet {} -- "${flags[@]}" 2>&1 |
    { grep -v ' warnings generated.$' || true; }
}
