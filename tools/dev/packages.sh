# Debian packages: installs what deploy/packages.txt names and this machine lacks.

# Packages that subcommand $1 of ./dev needs, one a line.
packages_for() {
  awk -v command="$1" '
    /^[[:space:]]*(#|$)/ { next }
    !/#/ { print $1; next }
    { only = $0; sub(/^[^#]*#/, "", only); if (index(" " only " ", " " command " ")) print $1 }
  ' deploy/packages.txt
}

# Of the packages named on standard input, those that are neither installed nor provided by an installed one. A kubectl
# of somebody else's is as good as Debian's, which could not be installed beside it.
missing_packages() {
  grep -vxFf <(
    dpkg-query --show --showformat='${db:Status-Abbrev}\t${Package}, ${Provides}\n' |
      awk -F'\t' '/^ii/ { gsub(/ \([^)]*\)/, "", $2); gsub(/, */, "\n", $2); print $2 }' | grep .
    ! have kubectl || echo kubernetes-client
  ) || true
}

# Installs the packages that subcommand $1 needs. Touches neither apt nor the network when all are there.
require_packages() {
  have dpkg-query || die "needs the Debian 12 packages of deploy/packages.txt, and this system has no dpkg"
  local missing=()
  mapfile -t missing < <(packages_for "$1" | missing_packages)
  ((${#missing[@]})) || return 0

  local as_root=()
  if ((EUID != 0)); then
    have sudo || die "missing packages, and neither root nor sudo to install them: ${missing[*]}"
    as_root=(sudo)
    [[ -t 0 ]] || as_root+=(--non-interactive)
  fi
  have apt-get || die "missing packages, and no apt-get to install them: ${missing[*]}"

  echo "Installing ${#missing[@]} packages: ${missing[*]}"
  if ! {
    "${as_root[@]}" apt-get update &&
      "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install --yes --no-install-recommends "${missing[@]}"
  } >"$SCRATCH/apt.log" 2>&1; then
    die "cannot install ${missing[*]}: $(grep -m1 -E '^(E|sudo):' "$SCRATCH/apt.log" || tail -n1 "$SCRATCH/apt.log")"
  fi
}

# Unpacks into third_party/static what a static build compiles from Debian's source packages, since Debian has no
# archive of it. Uses package lists of its own, so that it needs neither root nor source entries in the system's.
unpack_static_sources() {
  local into=third_party/static
  [[ -d "$into/prometheus-cpp" ]] && return 0
  local apt="$SCRATCH/apt"
  mkdir -p "$apt/sources" "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/unpacked"
  local file
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
    case "$file" in
      *.list) [[ ! -f "$file" ]] || sed -n 's/^deb /deb-src /p' "$file" >"$apt/sources/${file##*/}" ;;
      *.sources) sed 's/^Types:.*/Types: deb-src/' "$file" >"$apt/sources/${file##*/}" ;;
    esac
  done
  local options=(
    -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$apt/sources"
    -o Dir::State::lists="$apt/lists" -o Dir::Cache="$apt/cache" -o APT::Sandbox::User=root
  )
  if ! (
    apt-get "${options[@]}" update && cd "$apt/unpacked" && apt-get "${options[@]}" source prometheus-cpp
  ) >"$SCRATCH/apt.log" 2>&1; then
    die "cannot get the sources of prometheus-cpp: $(grep -m1 '^E:' "$SCRATCH/apt.log")"
  fi
  # Only what is compiled: the rest has BUILD files of its own, which would join this tree's.
  mkdir -p "$apt/prometheus-cpp/core"
  cp -r "$apt"/unpacked/prometheus-cpp-*/core/{src,include} "$apt/prometheus-cpp/core"
  mv "$apt/prometheus-cpp" "$into"
}
