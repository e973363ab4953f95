#!/bin/bash
# make_secrets.sh FOLDER [NAME...]: an authority of its own, the coordinator's certificate for NAME... (host names or IP
# addresses; plumbline-server and its names in the namespace plumbline always), and an access file with an admin, a
# submitter and the workers' token. Needs openssl and plumbline in PATH. What is there stays: delete a file to have it
# made anew.
set -euo pipefail
umask 077

(($# >= 1)) || { sed -n '2,5s/^# //p' "$0" >&2; exit 2; }
folder="$1"
shift
mkdir -p "$folder"
cd "$folder"

names=plumbline-server
for suffix in .plumbline .plumbline.svc .plumbline.svc.cluster.local; do
  names+=",DNS:plumbline-server$suffix"
done
for name in "$@"; do
  if [[ "$name" =~ ^[0-9.]+$ || "$name" == *:* ]]; then names+=",IP:$name"; else names+=",DNS:$name"; fi
done

if [[ ! -e ca.pem ]]; then
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -sha256 -days 3650 \
    -subj "/CN=Plumbline's own authority" -keyout ca.key -out ca.pem 2>/dev/null
fi
if [[ ! -e server.pem ]]; then
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=plumbline-server \
    -addext "subjectAltName=DNS:$names" -keyout server.key.new -out server.csr 2>/dev/null
  openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -sha256 -days 397 \
    -copy_extensions copy -out server.pem.new 2>/dev/null
  mv server.key.new server.key
  mv server.pem.new server.pem
  rm -f server.csr
fi
for name in admin submitter worker; do
  [[ -e "$name.token" ]] && continue
  plumbline token create --file=access.json --name="$name" --role="$name" >"$name.token.new"
  mv "$name.token.new" "$name.token"
  echo "$folder/$name.token: the token of $name, kept nowhere else"
done
