#!/bin/sh
# What `rxpath export` costs and whether its numbers are true, one benchmark after the other: about two hours on a quiet machine.
# Usage: tools/bench-eco.sh [cost|rate|steal|scrape|memory|verdict ...]    (root).
# Exit 1: a goal was missed, whatever the others did. Exit 4: some were inconclusive, all others reached.
set -eu
cd "$(dirname "$0")/.."
rxpath=${RXPATH:-target/release/rxpath}
[ $# -gt 0 ] || set -- cost rate steal scrape memory verdict
for program in ip curl python3 awk; do
	command -v $program >/dev/null || { echo "bench-eco: $program is missing" >&2; exit 3; }
done
# shellcheck source=tools/bench-rows.sh
. tools/bench-rows.sh
for row; do
	case $row in
	cost) bench=bench/export.sh ;;
	*) bench=bench/export-$row.sh ;;
	esac
	bench_row "$row" "$bench" "$rxpath"
done
exit "$status"
