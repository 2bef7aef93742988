#!/bin/sh
# Experiments between hosts, one benchmark after the other: clocks, kills, planted losses, scale, starts under load, rates of
# the lab. About two and a half hours on a quiet machine, of which clocks, kills and ratio take half an hour each.
# Usage: tools/bench-hosts.sh [clocks|kills|planted|scale|start|livelock|ratio|size ...]    (root; ROUNDS of clocks, kills, planted and livelock;
# LOADS of ratio).
# Exit 1: a goal was missed, whatever the others did. Exit 4: some were inconclusive, all others reached.
set -eu
cd "$(dirname "$0")/.."
rxpath=${RXPATH:-target/release/rxpath}
[ $# -gt 0 ] || set -- clocks kills planted scale start livelock ratio size
# shellcheck source=tools/bench-rows.sh
. tools/bench-rows.sh
for row; do
	bench_row "$row" "bench/hosts-$row.sh" "$rxpath"
done
exit "$status"
