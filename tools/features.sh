#!/bin/sh
# Options for cargo, for the full program: with BPF programs where clang and libelf are there, without them elsewhere.
set -eu
if command -v clang >/dev/null 2>&1 && pkg-config --exists libelf zlib 2>/dev/null; then
	exit 0
fi
echo 'features: no clang, libelf or zlib: built without BPF; rxpath trace and rxpath steal will say so' >&2
echo '--no-default-features --features lab'
