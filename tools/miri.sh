#!/bin/sh
# Runs the unit tests of every source file with unsafe code under Miri, each by itself, and writes what it said into
# docs/results/miri.md. Modules that the page names are done: a stopped run goes on with the next one; take a line out to
# run its tests again. What Miri does not have (most system calls of sockets, BPF) is named and not counted as passed.
# Usage: tools/miri.sh [CRATE...]
set -eu
cd "$(dirname "$0")/.."
page=docs/results/miri.md
export MIRIFLAGS="-Zmiri-disable-isolation"
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target/miri}
# Where it does not matter to what is tested, fewer cases: Miri is a thousand times slower.
export PROPTEST_CASES=16 PROPTEST_DISABLE_FAILURE_PERSISTENCE=1
found=0

cargo +nightly miri --version >/dev/null 2>&1 || rustup component add --toolchain nightly miri rust-src

miri() { # CRATE, then options of the tests
	crate=$1
	shift
	timeout "$limit" cargo +nightly miri test -q -p "$crate" --lib -- "$@" 2>&1
}

# The modules of a crate that have unsafe blocks, by their paths.
modules() {
	grep -rl 'unsafe {' "crates/$1/src" | sed "s|crates/$1/src/||; s|/mod\.rs$||; s|\.rs$||; s|/|::|g" | sort
}

[ $# -gt 0 ] || set -- rxpath-load rxpath-host rxpath-bpf
for crate; do
	# The build takes minutes, no test may. A crate that does not build has no list.
	limit=3600
	if ! all=$(miri "$crate" --list); then
		echo "$crate does not build under Miri: $(echo "$all" | grep -E '^error' | head -n 1)" >&2
		found=1
		continue
	fi
	limit=${SECONDS_EACH:-600}
	for module in $(modules "$crate"); do
		name="${crate#rxpath-}::$module"
		if grep -q "^| \`$name\` |" "$page"; then continue; fi
		passed=0 undefined='' early='' early_count=0
		for test in $(echo "$all" | sed -n "s/^\($module::.*\): test$/\1/p"); do
			if said=$(miri "$crate" "$test" --exact); then
				passed=$((passed + 1))
			elif echo "$said" | grep -qE 'Undefined Behavior|memory leaked'; then
				undefined="$undefined $test"
				found=1
				echo "$said" >&2
			else
				early_count=$((early_count + 1))
				reason=$(echo "$said" | grep -oE 'unsupported operation: .*|Kernel \{.*|panicked at .*' | tail -n 1)
				reason=$(echo "${reason:-too slow}" | sed 's/unsupported operation: //; s/|/\\|/g' | cut -c 1-80)
				case $early in *"$reason"*) ;; *) early="$early; $reason" ;; esac
			fi
		done
		if [ "$early_count" -gt 0 ]; then
			early="$early_count: ${early#; }"
		elif [ "$passed" -eq 0 ]; then
			early='it has no unit tests'
		fi
		echo "| \`$name\` | $(date -u +%F) | $passed | $early | ${undefined:-none} |" | tee -a "$page"
	done
done
exit $found
