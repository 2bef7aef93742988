#!/bin/sh
# Fuzzes every parser of outside input, MINUTES (10) each, and says what ran and what it found. Targets that are done are
# listed in target/fuzz-done: a stopped run goes on with the next one; remove the file to begin again.
# Usage: tools/fuzz.sh [TARGET...]
set -eu
cd "$(dirname "$0")/../fuzz"
seconds=$((${MINUTES:-10} * 60))
done=../target/fuzz-done
found=0

command -v cargo-fuzz >/dev/null || cargo install cargo-fuzz --version 0.13.1 --locked --quiet
mkdir -p ../target
touch "$done"
cargo +nightly fuzz build parser
# shellcheck disable=SC2046  # names of targets
[ $# -gt 0 ] || set -- $(ls corpus)
for target; do
	if grep -q "^$target " "$done"; then continue; fi
	# What it learns is kept outside of the corpus: that one is replayed by every test run and stays small.
	learned=../target/fuzz-corpus/$target
	log=../target/fuzz-$target.log
	mkdir -p "$learned" artifacts
	if RXPATH_FUZZ_TARGET=$target cargo +nightly fuzz run parser "$learned" "corpus/$target" -- \
		-max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -artifact_prefix="artifacts/$target-" >"$log" 2>&1; then
		line=$(sed -n 's/^Done \([0-9]*\) runs in \([0-9]*\) second.*/\1 inputs in \2 s, nothing found/p' "$log")
		echo "$target $line" | tee -a "$done"
	else
		found=1
		echo "$target FOUND: $(grep -E "panicked|ERROR|SUMMARY" "$log" | head -n 2 | tr '\n' ' '); input in fuzz/artifacts, log in target/" >&2
	fi
done
exit $found
