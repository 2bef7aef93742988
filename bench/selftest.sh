#!/bin/sh
# How many planted limits `rxpath diagnose` recognises: every case DRAWS times (5), on an otherwise idle machine.
# Exit 1: a valid trial was diagnosed as another limit; 4: other load made too many trials invalid.
# OUT=DIR keeps the trials and the report there; without it they are removed.
set -eu
out=${OUT:-}
[ -n "$out" ] || {
	out=$(mktemp -d)
	trap 'rm -rf "$out"' EXIT
	trap 'exit 130' HUP INT TERM # the shell would end without the other trap
}
"${1:-target/release/rxpath}" diagnose --selftest --draws "${DRAWS:-5}" --out "$out"
