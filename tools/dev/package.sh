# ./dev package: the programs to carry to other machines, in dist/. They need glibc 2.36 and libm, nothing else.

dev_package() {
  require_packages package
  unpack_static_sources
  local programs=(//client:plumbline //server:plumbline-server //worker:plumbline-worker)
  run_bazel build --config=release "${programs[@]}"
  mkdir -p dist
  local program
  for program in "${programs[@]}"; do
    program="${program#//}"
    install -m 755 "bazel-bin/${program/://}" dist/
  done
  ls -lh dist
}
