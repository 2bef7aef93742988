#!/bin/sh
# What `rxpath export` costs and whether its numbers are true, one benchmark after the other: one and a half hours on a quiet machine.
# Usage: tools/bench-eco.sh [cost|rate|steal|scrape|memory|verdict ...]    (root). The worst exit status is that of the whole.
set -eu
cd "$(dirname "$0")/.."
rxpath=${RXPATH:-target/release/rxpath}
[ $# -gt 0 ] || set -- cost rate steal scrape memory verdict
for program in ip curl python3 awk; do
	command -v $program >/dev/null || { echo "bench-eco: $program is missing" >&2; exit 3; }
done
status=0
for row; do
	case $row in
	cost) bench=bench/export.sh ;;
	*) bench=bench/export-$row.sh ;;
	esac
	[ -x "$bench" ] || { echo "bench-eco: no $bench" >&2; exit 2; }
	echo "== $bench"
	now=0
	"$bench" "$rxpath" || now=$?
	case $now in
	0) echo "$row: reached" ;;
	4) echo "$row: inconclusive" ;;
	*) echo "$row: not reached (exit status $now)" ;;
	esac
	[ $now -le $status ] || status=$now
done
exit $status
