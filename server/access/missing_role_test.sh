#!/bin/bash
# A service whose method has no `access` option stops the build, which names the method.
set -u
output="$(server/access/generate_gates header "$1" 2>&1)"
status=$?
echo "$output"
[[ "$status" == 1 && "$output" == *plumbline.v1.UnguardedService.Unguarded* ]]
