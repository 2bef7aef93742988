#!/bin/sh
# Experiments between hosts, one benchmark after the other: clocks, kills, scale, starts under load. Three hours on a quiet machine,
# of which the kills take two.
# Usage: tools/bench-hosts.sh [clocks|kills|scale|start|livelock|ratio|size ...]    (root; ROUNDS of clocks, kills and livelock).
# The worst exit status is that of the whole.
set -eu
cd "$(dirname "$0")/.."
rxpath=${RXPATH:-target/release/rxpath}
[ $# -gt 0 ] || set -- clocks kills scale start livelock ratio size
status=0
for row; do
	bench=bench/hosts-$row.sh
	[ -x "$bench" ] || { echo "bench-hosts: no $bench" >&2; exit 2; }
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
