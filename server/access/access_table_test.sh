#!/bin/bash
# docs/access.md holds the table that the build makes from the API's options.
set -eu
if ! diff <(grep '^|' docs/access.md) server/access/access_table.md; then
  echo 'docs/access.md is not what server/access/access_table.md is: replace its table' >&2
  exit 1
fi
