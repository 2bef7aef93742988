#!/bin/sh
# Experiments between hosts, one benchmark after the other: clocks, kills, scale, starts under load. An hour and a half on a quiet
# machine, of which the kills take 15 minutes.
# Usage: tools/bench-hosts.sh [clocks|kills|scale|start|livelock|ratio|size ...]    (root; ROUNDS of clocks, kills and livelock).
# Exit 1: a goal was missed, whatever the others did. Exit 4: some were inconclusive, all others reached.
set -eu
cd "$(dirname "$0")/.."
rxpath=${RXPATH:-target/release/rxpath}
[ $# -gt 0 ] || set -- clocks kills scale start livelock ratio size
# shellcheck source=tools/bench-rows.sh
. tools/bench-rows.sh
for row; do
	bench_row "$row" "bench/hosts-$row.sh" "$rxpath"
done
exit "$status"
