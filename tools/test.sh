#!/bin/sh
# The whole suite: units, tests without root, tests with root; then the skips against tests/skips.toml.
set -eu
cd "$(dirname "$0")/.."

export RXPATH_SKIP_LOG="$PWD/target/skips.log"
mkdir -p target
: >"$RXPATH_SKIP_LOG"

# Tests write thousands of small files: in memory, where there is room for them and programs may run there.
in_memory=$(mktemp -d -p /dev/shm 2>/dev/null || true)
if [ -n "$in_memory" ]; then
	trap 'rm -rf "$in_memory"' EXIT
	trap 'exit 130' HUP INT TERM
	printf '#!/bin/sh\n' >"$in_memory/program"
	chmod +x "$in_memory/program"
	# As /tmp: some tests run programs as another user.
	chmod 1777 "$in_memory"
	free_kb=$(df --output=avail "$in_memory" | tail -n 1)
	if [ "$free_kb" -gt 4000000 ] && "$in_memory/program" 2>/dev/null; then export TMPDIR="$in_memory"; fi
fi

# Every call selects the whole workspace: with other packages cargo would build the crates again, for other features.
suite() { # options of cargo test; what it prints is also in target/tests.log
	{
		# shellcheck disable=SC2046  # some options or none
		cargo test $(tools/features.sh 2>/dev/null) --profile ci --workspace --no-fail-fast "$@" 2>&1 || echo "exit status $?"
	} | tee target/tests.log
	! tail -n 1 target/tests.log | grep -q '^exit status'
}
# Whether each program of tests came to its end: of one that crashed no test is named.
is_whole() { [ "$(grep -c '^ *Running ' target/tests.log)" = "$(grep -c '^test result: ' target/tests.log)" ]; }
# Where other guests take the CPU, one of some hundreds of tests may fail though the program is right. So up to three that failed are
# run a second time, one at a time, and named at the end.
run() { # name, options of the tests, options of cargo test
	name=$1 options=$2
	shift 2
	begun=$(date +%s)
	# shellcheck disable=SC2086  # several options
	if ! suite "$@" -- $options; then
		failed=$(sed -n 's/^---- \(.*\) stdout ----$/\1/p' target/tests.log | sort -u)
		again=$((again + $(printf '%s' "$failed" | grep -c '' || true)))
		# shellcheck disable=SC2086  # several names
		if [ -n "$failed" ] && is_whole && [ "$again" -le 3 ] && suite "$@" -- --test-threads=1 --exact $failed; then
			seconds="$seconds$(printf 'passed only in a second run: %s\n' $failed)
"
		else
			status=1
		fi
	fi
	times="$times$name: $(($(date +%s) - begun)) s
"
}
tools/features.sh >/dev/null
status=0 times='' seconds='' again=0

# Units, and the integration tests of each crate: tests/NAME.rs or tests/NAME/main.rs.
set -- --lib --bins
for name in $(find crates/*/tests -maxdepth 2 \( -path '*/tests/*/main.rs' -printf '%h\n' \) -o \
	\( -path '*/tests/*.rs' -not -path '*/tests/*/*' -printf '%f\n' \) | sed 's|.*/||; s|\.rs$||' | sort -u); do
	set -- "$@" --test "$name"
done
case " $* " in *" --test it "*) ;; *) set -- "$@" --test it ;; esac
# The build counts in no group, and without it there is nothing to run.
begun=$(date +%s)
suite "$@" --test root --no-run || exit 1
times="build: $(($(date +%s) - begun)) s
"
# Many wait for programs that they start: more of them at a time than there are CPUs.
run 'units and tests/it' "--test-threads=$(($(nproc) + 6))" "$@"
# What counts packets runs in parallel, each test in namespaces and a /run of its own. What measures CPU time, or counts
# what the whole machine does, runs alone.
run 'tests/root, in parallel' '--skip alone:: --test-threads=5' --test root
run 'tests/root, alone' 'alone:: --test-threads=1' --test root

printf '%s' "$times$seconds"
tools/skips.sh "$RXPATH_SKIP_LOG" tests/skips.toml
exit $status
