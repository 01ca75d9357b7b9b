#!/bin/sh
# Lint, assemble and run a kernel that nvcc compiled. Needs ptx-lint, ptx-as and ptx-run on the PATH, and nothing else.
set -eu
here=$(dirname "$0")
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

show() { printf '\n$ %s\n' "$*"; "$@"; }

show ptx-lint "$here/vecadd.ptx" && echo "no findings"
show ptx-lint --requirements "$here/vecadd.ptx"
show ptx-as "$here/vecadd.ptx" -o "$out/vecadd.ptxo"
show ptx-as --info "$out/vecadd.ptxo"
show ptx-run "$out/vecadd.ptxo" --grid 4 --block 256 \
    --arg 'arange:f32[1024]' --arg 'fill:f32[1024]=0.5' --arg 'zeros:f32[1024]' --arg 1024
