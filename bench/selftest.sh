#!/bin/sh
# How many limits made on purpose `rxpath diagnose` recognises: every case DRAWS times (5), on a machine with nothing else
# running. Exit 1: a trial that counts was taken for another limit; 4: other load kept too many trials from counting.
set -eu
"${1:-target/release/rxpath}" diagnose --selftest --draws "${DRAWS:-5}" --out "$(mktemp -d)"
