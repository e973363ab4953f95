#!/bin/sh
# Fails where a kernel library calls a transcendental of the C library, whose last bits depend on
# the machine. Arguments: the library's files (archives are looked into, others passed over).
set -eu
status=0
archives=0
for file in "$@"; do
  case "$file" in *.a) ;; *) continue ;; esac
  archives=$((archives + 1))
  found=$(nm --undefined-only --format=posix "$file" | cut -d' ' -f1 |
    grep -E '^(a?(sin|cos|tan)h?|atan2|sincos|exp|exp2|exp10|expm1|log|log2|log10|log1p|pow|cbrt|hypot|erfc?|[lt]gamma)[fl]?$' |
    sort -u | tr '\n' ' ') || true
  if [ -n "$found" ]; then
    echo "$file calls the C library's $found: use kernels/numerics/elementary.h"
    status=1
  fi
done
if [ "$archives" -eq 0 ]; then
  echo "no archive among: $*"
  status=1
fi
exit $status
