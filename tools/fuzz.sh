#!/bin/sh
# Fuzzes every parser of outside input, for MINUTES (10) of CPU time each, and writes what ran and what it found into
# docs/results/fuzz.md. Targets that the page names are done: a stopped run goes on with the next one; take a line out to
# run its target again.
# Usage: tools/fuzz.sh [TARGET...]
set -eu
cd "$(dirname "$0")/../fuzz"
seconds=$((${MINUTES:-10} * 60))
page=../docs/results/fuzz.md
found=0

command -v cargo-fuzz >/dev/null || cargo install cargo-fuzz --version 0.13.1 --locked --quiet
cargo +nightly fuzz build parser
# A copy: another build may replace the program while it runs.
program=$(mktemp)
trap 'rm -f "$program"' EXIT
trap 'exit 130' HUP INT TERM # the shell would end without the other trap
cp ../target/x86_64-unknown-linux-gnu/release/parser "$program" 2>/dev/null || cp target/*/release/parser "$program"
chmod +x "$program"

# User and system time of ended children, in whole seconds (proc(5), stat, fields cutime and cstime).
spent() {
	awk -v hz="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); print int(($14 + $15) / hz) }' "/proc/$$/stat"
}

# shellcheck disable=SC2046  # names of targets
[ $# -gt 0 ] || set -- $(ls corpus)
for target; do
	if grep -q "^| $target |" "$page"; then continue; fi
	# What it learns is kept outside of the corpus: that one is replayed by every test run and stays small.
	learned=../target/fuzz-corpus/$target
	log=../target/fuzz-$target.log
	mkdir -p "$learned" artifacts
	# Turns of two minutes: a run that is ended, by kill of its process group too, loses no more than its last one.
	state=../target/fuzz-$target.state
	inputs=0 cpu=0
	[ ! -f "$state" ] || read -r inputs cpu <"$state"
	began=$(($(spent) - cpu))
	while [ "$cpu" -lt "$seconds" ]; do
		if ! RXPATH_FUZZ_TARGET=$target "$program" "$learned" "corpus/$target" -max_total_time=120 \
			-timeout=10 -rss_limit_mb=2048 -artifact_prefix="artifacts/$target-" >"$log" 2>&1; then
			found=1
			echo "$target FOUND: $(grep -E "panicked|ERROR|SUMMARY" "$log" | head -n 2 | tr '\n' ' '); input in fuzz/artifacts, log in target/" >&2
			continue 2
		fi
		inputs=$((inputs + $(sed -n 's/^Done \([0-9]*\) runs in .*/\1/p' "$log")))
		cpu=$(($(spent) - began))
		echo "$inputs $cpu" >"$state"
	done
	rm -f "$state"
	echo "| $target | $(date -u +%F) | $inputs | $cpu | nothing |" | tee -a "$page"
done
exit $found
