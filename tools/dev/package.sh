# ./dev package: what is installed on other machines, as a tar.zst and a .deb, in dist/. The programs need glibc 2.36 and
# libm, nothing else; those with CUDA are made where there is a CUDA toolkit. The same commit gives the same bytes.

source tools/dev/web.sh

readonly RELEASE_PROGRAMS=(//client:plumbline //server:plumbline-server //worker:plumbline-worker)

have_nvcc() {
  [[ -x "${CUDA_PATH:-/usr/local/cuda}/bin/nvcc" ]]
}

# VERSION+gitDATE.COMMIT, with .changed behind it where the tree is not what was committed; and in $release_epoch the
# second of the commit, which every file of a package bears.
release_version() {
  local version
  version="$(sed -n 's/.*kVersion\[\] = "\(.*\)".*/\1/p' common/version.h)"
  release_epoch="$(git log -1 --format=%ct 2>/dev/null)" || die "package needs the git repository that the tree is of"
  release_version="$version+git$(date --utc --date="@$release_epoch" +%Y%m%d).$(git rev-parse HEAD | cut -c 1-12)"
  [[ -z "$(git status --porcelain)" ]] || release_version+=.changed
}

# Package NAME of the programs as Bazel builds them with the flags given.
package_programs() {
  local name="$1" at="$SCRATCH/$1" program flags=(--config=release "${@:2}")
  mkdir -p "$at/programs"
  bazel build "${flags[@]}" "${RELEASE_PROGRAMS[@]}"
  local params=()
  for program in "${RELEASE_PROGRAMS[@]}"; do
    program="${program#//}"
    program="bazel-bin/${program/://}"
    install -m 755 "$program" "$at/programs/"
    params+=(--params="$program-2.params")
  done
  bazel cquery "${flags[@]}" --notool_deps "deps(set(${RELEASE_PROGRAMS[*]}))" 2>/dev/null |
    awk '/^\/\/third_party\/(system|static):[^.]* / { print $1 }' | sort -u >"$at/targets"
  [[ -s "$at/targets" ]] || die "Bazel does not say which libraries the programs depend on"
  python3 -B tools/package/notices.py "${params[@]}" --targets="$at/targets" --dashboard=web >"$at/notices"
  git ls-files >"$at/tracked"
  python3 -B tools/package/stage.py --package="$name" --programs="$at/programs" --notices="$at/notices" \
    --dashboard=web/dist --tracked="$at/tracked" --version="${release_version%%+*}" \
    --date="$(date --utc --date="@$release_epoch" +%Y-%m-%d)" "$at/tree"
  tools/package/archive.sh "$name" "$release_version" "$release_epoch" "$at/tree" dist
}

# Packages of the kinds given (cpu, cuda), in dist/.
make_packages() {
  local release_version release_epoch kind
  release_version
  rm -rf dist
  build_dashboard
  for kind in "$@"; do
    case "$kind" in
      cpu) package_programs plumbline --config=cpu ;;
      # Reproducible, which costs time: nvcc's objects differ from folder to folder otherwise.
      cuda) package_programs plumbline-cuda --config=cuda --define=REPRODUCIBLE=1 ;;
    esac
  done
}

# A second build of the commit, in a folder of its own and with nothing kept from the first, must give the same bytes.
package_again() {
  local again="$SCRATCH/again" file status=0
  [[ -z "$(git status --porcelain)" ]] || die "package --twice compares builds of a commit, and the tree has changes"
  git clone --quiet --no-hardlinks . "$again"
  # Bazel's whole state beside it, and no cache.
  printf 'startup --output_base=%s\nbuild --disk_cache=\n' "$SCRATCH/again-base" >"$again/user.bazelrc"
  echo "== Again, from nothing, in another folder"
  (cd "$again" && CI=1 ./dev package "$@" >"$SCRATCH/again.log" 2>&1) ||
    die "the second build failed: $(tail -n 3 "$SCRATCH/again.log")"
  for file in dist/*; do
    if cmp "$file" "$again/$file"; then
      echo "equal: $(sha256sum "$file")"
    else
      status=1
    fi
  done
  chmod -R u+w "$SCRATCH/again-base"
  return "$status"
}

dev_package() {
  local twice="" kinds=() given=()
  while (($#)); do
    case "$1" in
      --twice) twice=yes ;;
      --cpu) kinds=(cpu) given=(--cpu) ;;
      --cuda)
        have_nvcc || die "package --cuda needs the CUDA toolkit (nvcc)"
        kinds=(cuda) given=(--cuda)
        ;;
      *) die "package takes --cpu, --cuda and --twice, not '$1'" ;;
    esac
    shift
  done
  require_packages package
  unpack_static_sources
  if ((${#kinds[@]} == 0)); then
    kinds=(cpu)
    ! have_nvcc || kinds+=(cuda)
  fi
  make_packages "${kinds[@]}"
  ls -lh dist
  [[ -z "$twice" ]] || package_again "${given[@]}"
}
