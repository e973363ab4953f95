#!/bin/sh
# TypeScript of the API, from the same proto files as every other program's.
set -eu
cd "$(dirname "$0")"
rm -rf src/gen
mkdir -p src/gen
cd ..
protoc -I . --plugin=protoc-gen-es=web/node_modules/.bin/protoc-gen-es --es_out=web/src/gen \
  --es_opt=target=ts,import_extension=js proto/plumbline/v1/*.proto proto/google/rpc/*.proto
