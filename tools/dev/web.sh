# The dashboard in web/: its packages, the code made of proto/, its checks and tests, and what is served.

# npm's packages exactly as web/package-lock.json has them.
install_dashboard() {
  local lock stamp="$ROOT/web/node_modules/.plumbline-lock"
  lock="$(sha256sum <"$ROOT/web/package-lock.json")"
  [[ -f "$stamp" && "$(<"$stamp")" == "$lock" ]] && return 0
  (cd web && npm ci --ignore-scripts --no-audit --no-fund) >"$SCRATCH/npm.log" 2>&1 ||
    die "cannot install the dashboard's packages: $(grep -m1 -i 'error' "$SCRATCH/npm.log" || tail -n1 "$SCRATCH/npm.log")"
  echo "$lock" >"$stamp"
}

# web/dist/, which plumbline-server serves with --web-dir.
build_dashboard() {
  install_dashboard
  (cd web && ./generate.sh && npx tsc --noEmit && npx vite build --logLevel=warn)
}

# Logic under Vitest, then every view in Chromium against real daemons. Wants the programs built.
test_dashboard() {
  build_dashboard && (cd web && npx vitest run && npx vitest run --config vitest.e2e.config.ts)
}

# ./dev web: builds the dashboard. --pictures: also the README's pictures, from the browser tests.
dev_web() {
  require_packages web
  case "${1:-}" in
    "") build_dashboard ;;
    --pictures)
      run_bazel build //server:plumbline-server //worker:plumbline-worker //client:plumbline
      build_dashboard
      (cd web && PLUMBLINE_PICTURES="$ROOT/docs/pictures" npx vitest run --config vitest.e2e.config.ts)
      ;;
    *) die "web takes --pictures or nothing, not '$1'" ;;
  esac
}
