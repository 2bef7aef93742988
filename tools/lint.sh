#!/bin/sh
# Everything that CI asserts about the source without running it.
set -eu
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
features=$(tools/features.sh)
agent='--features bpf'
[ -z "$features" ] || agent=

"$cargo" fmt --all --check
long=$(git ls-files '*.rs' | xargs wc -l | awk '$1 > 450 && $2 != "total"')
if [ -n "$long" ]; then
	printf 'longer than 450 lines, split by idea:\n%s\n' "$long" >&2
	exit 1
fi
git ls-files '*.sh' .ci/run | xargs shellcheck -S warning -e SC2317
# shellcheck disable=SC2086  # some options or none
{
"$cargo" clippy --profile ci --all-targets --workspace $features -- -D warnings
# rxpath-agent: the program without the feature lab. The crates below it have been linted.
"$cargo" clippy --profile ci -p rxpath --no-deps --no-default-features $agent -- -D warnings
# Not of the binary: its doc comments are the text of --help. It is selected all the same: for other features cargo would check
# the dependencies again.
RUSTDOCFLAGS='-D warnings' "$cargo" doc --profile ci --workspace --lib --no-deps --quiet $features
}
"$cargo" deny --log-level error check bans licenses sources
"$cargo" machete crates

# One build for three promises: the oldest Rust, a machine without clang (no BPF), and arm64.
oldest=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
arm=aarch64-unknown-linux-gnu
library=$(rustup run "$oldest" rustc --print target-libdir --target $arm 2>/dev/null || true)
if { [ -n "$library" ] && [ -d "$library" ]; } ||
	timeout 300 rustup toolchain install "$oldest" --profile minimal --target $arm >&2; then
	CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/oldest RUSTFLAGS='-D warnings' \
		rustup run "$oldest" cargo check --workspace --no-default-features --features lab --target $arm
else
	grep -q '^\[skip.oldest_rust\]$' tests/skips.toml
	echo "skipped: oldest_rust: no Rust $oldest with the standard library for $arm here (rustup toolchain install $oldest --target $arm)"
fi
