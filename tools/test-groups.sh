# Groups of tests one after the other, for the tools that read this file.
# shellcheck shell=sh
# shellcheck disable=SC2034  # the readers print them
# The exit status of the whole, how long each group took, the tests that passed only in a second run, and how many had one.
status=0 times='' seconds='' again=0
# What the last `cargo test` printed; next to it, a file that is there if that succeeded.
log=${log:-target/tests.log}

# Every call selects the whole workspace: with other packages cargo would build the crates again, for other features.
suite() { # options of cargo test
	rm -f "$log.passed"
	{
		# shellcheck disable=SC2046  # some options or none
		cargo test $(tools/features.sh 2>/dev/null) --profile ci --workspace --no-fail-fast "$@" 2>&1 && : >"$log.passed"
	} | tee "$log"
	[ -e "$log.passed" ]
}

counted() { grep -c "$1" "$log" || true; }
# How many tests `passed` or `failed`, by the last lines of the programs of tests.
sum_of() { sed -n "s/^test result: .* \([0-9]*\) $1;.*/\1/p" "$log" | awk '{ n += $1 } END { print n + 0 }'; }
# Whether each test that failed is named. Of a program that crashed none is, and it has no last line.
are_named() {
	[ "$(counted '^ *Running ')" = "$(counted '^test result: ')" ] &&
		[ "$(counted '^---- .* stdout ----$')" = "$(sum_of failed)" ]
}

# Where other guests take the CPU, one of some hundreds of tests may fail though the program is right. So up to three that failed are
# run a second time, one at a time, and named at the end.
group() { # name, options of the tests, options of cargo test
	name=$1 options=$2
	shift 2
	begun=$(date +%s)
	# shellcheck disable=SC2086  # several options
	if ! suite "$@" -- $options; then
		failed=$(sed -n 's/^---- \(.*\) stdout ----$/\1/p' "$log")
		count=$(sum_of failed)
		again=$((again + count))
		# A second run without these tests would succeed, too.
		# shellcheck disable=SC2086  # several names
		if [ "$count" -gt 0 ] && [ "$again" -le 3 ] && are_named &&
			suite "$@" -- --test-threads=1 --exact $failed && [ "$(sum_of passed)" -ge "$count" ]; then
			seconds="$seconds$(printf 'passed only in a second run: %s\n' $failed)
"
		else
			status=1
		fi
	fi
	times="$times$name: $(($(date +%s) - begun)) s
"
}
