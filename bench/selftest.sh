#!/bin/sh
# How many planted limits `rxpath diagnose` recognises: every case DRAWS times (5), on an otherwise idle machine.
# Exit 1: a valid trial was diagnosed as another limit; 4: other load made too many trials invalid.
set -eu
"${1:-target/release/rxpath}" diagnose --selftest --draws "${DRAWS:-5}" --out "$(mktemp -d)"
