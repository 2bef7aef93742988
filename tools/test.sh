#!/bin/sh
# The whole suite: units, tests without root, tests with root; then the skips against tests/skips.toml.
set -eu
cd "$(dirname "$0")/.."

export RXPATH_SKIP_LOG="$PWD/target/skips.log"
mkdir -p target
: >"$RXPATH_SKIP_LOG"

features=$(tools/features.sh)
# shellcheck disable=SC2086  # one option or none
{
cargo test $features --profile ci --workspace --exclude rxpath --tests --no-fail-fast
cargo test $features --profile ci -p rxpath --bins --no-fail-fast
cargo test $features --profile ci -p rxpath --test it --no-fail-fast
# One lab at a time: the tests share the machine's CPUs, counters and lab lock.
cargo test $features --profile ci -p rxpath --test root --no-fail-fast -- --test-threads=1
}

tools/skips.sh "$RXPATH_SKIP_LOG" tests/skips.toml
