#!/bin/sh
# Writes what the binary is made of, as CycloneDX JSON: all crates of Cargo.lock that it needs, and the C libraries in it.
# Usage: tools/sbom.sh FILE [OPTIONS of cargo]    (--no-default-features for rxpath-agent)
set -eu
cd "$(dirname "$0")/.."
out=${1:?file to write}
shift
cargo=${CARGO:-cargo}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
tools/setup.sh sbom
# It writes one file next to the manifest of each crate; only that of the binary is wanted.
name=rxpath-sbom-of-release
clean() { rm -f crates/*/$name.json; }
trap clean EXIT
trap 'exit 130' HUP INT TERM # the shell would end without the other trap
"$cargo" cyclonedx --quiet --format json --spec-version 1.5 --manifest-path crates/rxpath/Cargo.toml "$@" --features vendored \
	--target x86_64-unknown-linux-gnu --override-filename $name
source=$("$cargo" metadata --locked --format-version 1 "$@" --features vendored --manifest-path crates/rxpath/Cargo.toml |
	python3 -c 'import json, os, sys; print(next(os.path.dirname(p["manifest_path"]) for p in json.load(sys.stdin)["packages"] if p["name"] == "libbpf-sys"))')
mkdir -p "$(dirname "$out")"
# Not the folders of this machine.
python3 tools/sbom.py crates/rxpath/$name.json "$source" "$(clang --version | head -n 1)" | sed "s#$PWD#/rxpath#g" >"$out"
