# ./dev format: clang-format (C, C++, CUDA, protos) and buildifier (Bazel files).

readonly BUILDIFIER=tools/format/node_modules/.bin/buildifier

clang_format_sources() {
  find_sources -name '*.h' -o -name '*.c' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh' -o -name '*.proto'
}

bazel_sources() {
  find_sources -name BUILD -o -name BUILD.bazel -o -name WORKSPACE -o -name '*.bzl'
}

# Buildifier comes as an npm package, pinned by tools/format/package-lock.json.
install_buildifier() {
  [[ -x "$BUILDIFIER" && ! tools/format/package-lock.json -nt tools/format/node_modules ]] && return 0
  npm ci --prefix tools/format --no-audit --no-fund >"$SCRATCH/npm.log" 2>&1 ||
    die "cannot install buildifier with npm: $(grep -m1 -i 'err' "$SCRATCH/npm.log")"
  touch tools/format/node_modules
}

# Prints what is not formatted, one file a line.
list_unformatted() {
  clang_format_sources | xargs --no-run-if-empty clang-format --dry-run 2>&1 |
    sed -nE 's/^([^:]+):[0-9]+:[0-9]+: warning:.*/\1/p' | sort -u
  bazel_sources | xargs --no-run-if-empty "$BUILDIFIER" -mode=check 2>&1 | sed 's/ # reformat$//' || true
}

# Fails, listing them, if any file is not formatted.
check_format() {
  local unformatted
  unformatted="$(list_unformatted)"
  [[ -n "$unformatted" ]] || return 0
  printf 'Not formatted (./dev format mends it):\n%s\n' "$unformatted"
  return 1
}

dev_format() {
  require_packages format
  install_buildifier
  case "${1:-}" in
    --check) check_format ;;
    "")
      clang_format_sources | xargs --no-run-if-empty clang-format -i
      bazel_sources | xargs --no-run-if-empty "$BUILDIFIER"
      ;;
    *) die "format takes --check or nothing, not '$1'" ;;
  esac
}
