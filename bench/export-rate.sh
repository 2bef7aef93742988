#!/bin/sh
# What `rxpath export` costs a sender whose CPU also receives, in packets/s: paired blocks with and without an exporter.
#
# The worst case of bench/observe.sh: one packet a softirq, sent and received on one CPU, so that each hook's time reduces the
# rate. The exporter runs with its default budget and windows of a second; it starts before the measured time. Each block has
# one run with it and two without, in random order. Printed: the share of the rate lost, with its 95 % interval over the
# blocks, and the same of the two runs without an exporter, which is the noise.
# Goal: less than 1 % lost.
# Usage: bench/export-rate.sh [RXPATH [BLOCKS [SECONDS]]]. Exit 1: the goal is missed. Exit 4: an interval holds both sides of
# it, or the noise is above 2 %.
set -eu
rxpath=${1:-target/release/rxpath}
blocks=${2:-20}
seconds=${3:-4}
sender=${SENDER_CPU:-1}
reader=${READER_CPU:-0}
judge=$(dirname "$rxpath")/examples/judge
# shellcheck source=bench/export-common.sh
. "$(dirname "$0")/export-common.sh"
pair
# A reader that naps is rarely woken: wake-ups would run in the sender's softirq too.
ip netns exec $id-rx "$rxpath" serve udp 10.77.9.2:4800 --cpu "$reader" --nap 50us >/dev/null 2>&1 &
serve=$!
rate() {
	ip netns exec $id-tx "$rxpath" load udp 10.77.9.2:4800 --flood --cpu "$sender" -d "${seconds}s" --json 2>/dev/null |
		sed -n 's/^ *"sent_pps": \([0-9.]*\).*/\1/p' | head -n 1
}
for block in $(seq "$blocks"); do
	for kind in $(printf '%s\n' none again export | shuf); do
		[ "$kind" != export ] || { export_start --interval 1s; next_window; }
		echo "$block $kind $(rate)" >>"$work/rates"
		stop "$exporter"
		exporter=
	done
done
lost() { # kind
	awk -v kind="$1" '{ rate[$1, $2] = $3; if ($1 > blocks) blocks = $1 } END {
		for (b = 1; b <= blocks; b++) if (rate[b, "none"] > 0 && rate[b, kind] > 0) print 1 - rate[b, kind] / rate[b, "none"]
	}' "$work/rates"
}
noise=0
said=$(lost again | "$judge" within 0.02) || noise=4
echo "two runs without an exporter, share of the rate: $said, goal: within 0.02"
status=0
said=$(lost export | "$judge" at-most 0.01) || status=$?
echo "export, share of the rate lost: $said, goal: at most 0.01"
[ $noise = 0 ] || status=$noise
exit $status
