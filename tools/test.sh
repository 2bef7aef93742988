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

# shellcheck source=tools/test-groups.sh
. tools/test-groups.sh
tools/features.sh >/dev/null

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
group 'units and tests/it' "--test-threads=$(($(nproc) + 6))" "$@"
# What counts packets runs in parallel, each test in namespaces and a /run of its own. What measures CPU time, or counts
# what the whole machine does, runs alone.
group 'tests/root, in parallel' '--skip alone:: --test-threads=8' --test root
group 'tests/root, alone' 'alone:: --test-threads=1' --test root

printf '%s' "$times$seconds"
tools/skips.sh "$RXPATH_SKIP_LOG" tests/skips.toml
exit $status
