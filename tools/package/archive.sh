#!/bin/bash
# Packs a tree of stage.py as OUT/NAME-VERSION-linux-amd64.tar.zst and OUT/NAME_VERSION_amd64.deb. The same tree gives
# the same bytes, at any time and place.
#   archive.sh NAME VERSION EPOCH TREE OUT
set -euo pipefail

readonly NAME="$1" VERSION="$2" EPOCH="$3" TREE="$4" OUT="$5"
HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
SCRATCH="$(mktemp -d)"
trap 'rm -rf "$SCRATCH"' EXIT
export SOURCE_DATE_EPOCH="$EPOCH" LC_ALL=C TZ=UTC

case "$NAME" in
  plumbline) OTHER=plumbline-cuda WITH="without CUDA" PROVIDES="" ;;
  plumbline-cuda) OTHER=plumbline WITH="with CUDA" PROVIDES="Provides: plumbline (= $VERSION)" ;;
  *)
    echo "archive.sh: no package is called '$NAME'" >&2
    exit 2
    ;;
esac

installed_kib() {
  find "$TREE" -type f -printf '%s\n' | awk '{ kib += int(($1 + 1023) / 1024) } END { print kib }'
}

# Recommends: what the worker loads when it is there (MP4). The programs need glibc and libm alone, and the driver and
# cuBLAS where there is a GPU, which come from NVIDIA.
control() {
  cat <<TEXT
Package: $NAME
Version: $VERSION
Architecture: amd64
Maintainer: Plumbline <plumbline@plumbline.invalid>
Section: science
Priority: optional
Installed-Size: $(installed_kib)
Depends: libc6 (>= 2.36), systemd | systemd-standalone-sysusers, systemd | systemd-standalone-tmpfiles
Recommends: libavcodec59, libavformat59, libswscale6
Suggests: bash-completion
Conflicts: $OTHER
Replaces: $OTHER
${PROVIDES:+$PROVIDES
}Description: validates kernels of MiniMax-H3, $WITH
 Replays the graph of the MiniMax-H3 diffusion transformer node by node, forward
 and backward, and tells which node of a kernel's drifts first, against the
 provider and a float32 golden. The coordinator, the worker and the command line.
TEXT
}

mkdir -p "$OUT"
find "$TREE" -exec touch --no-dereference --date="@$EPOCH" {} +
tar --create --directory="$TREE" --sort=name --format=gnu --owner=0 --group=0 --numeric-owner \
  --mtime="@$EPOCH" --transform="s,^\./,$NAME-$VERSION/," --transform="s,^\.$,$NAME-$VERSION," . |
  zstd --quiet -15 --long=27 --single-thread --force -o "$OUT/$NAME-$VERSION-linux-amd64.tar.zst"

cp -a "$TREE" "$SCRATCH/deb"
mkdir -m 755 "$SCRATCH/deb/DEBIAN"
control >"$SCRATCH/deb/DEBIAN/control"
(cd "$TREE" && find etc -type f | sort | sed 's,^,/,') >"$SCRATCH/deb/DEBIAN/conffiles"
(cd "$TREE" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$SCRATCH/deb/DEBIAN/md5sums"
install -m 755 "$HERE"/debian/{postinst,prerm,postrm} "$SCRATCH/deb/DEBIAN/"
chmod 644 "$SCRATCH"/deb/DEBIAN/{control,conffiles,md5sums}
find "$SCRATCH/deb" -exec touch --no-dereference --date="@$EPOCH" {} +
dpkg-deb --root-owner-group -Zzstd -z15 --threads-max=1 --build "$SCRATCH/deb" "$OUT/${NAME}_${VERSION}_amd64.deb" >/dev/null
