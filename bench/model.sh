#!/bin/sh
# The simulator's speed in packets per second of CPU time, best of five runs. Goals: 10 million on the simple path (one
# queue, one socket, regular arrivals), 3 million with everything on. Also its memory after 1 s and 10 s of simulated
# time. Exit 1: too slow, or memory grows.
set -eu
rxpath=${1:-target/release/rxpath}

speed() { "$rxpath" model simulate "$1" 2>&1 >/dev/null | sed -n 's/.*: \([0-9.]*\) M packets.*/\1/p'; }
memory() {
	"$rxpath" model simulate "$1" -d "$2" >/dev/null 2>&1 &
	pid=$!
	peak=0
	while now=$(sed -n "s/^VmHWM:[[:space:]]*\\([0-9]*\\) kB/\\1/p" /proc/$pid/status 2>/dev/null) && [ -n "$now" ]; do
		peak=$now
		sleep 0.05
	done
	wait $pid
	echo "$peak"
}

status=0
for goal in simple-path:10 whole-path:3; do
	name=${goal%:*} least=${goal#*:} all=
	for _ in 1 2 3 4 5; do all="$all $(speed "$name")"; done
	short=$(memory "$name" 1s) long=$(memory "$name" 10s)
	echo "$name $least $short $long $all" | awk '{
		best = 0
		for (i = 5; i <= NF; i++) { if ($i > best) best = $i; all = all " " $i }
		fast = best >= $2; flat = $3 > 0 && $4 <= $3 * 1.1 + 1024
		printf "%s: %.1f M packets/s of CPU time (of%s; at least %s: %s); %d kB after 1 s, %d kB after 10 s simulated: %s\n",
			$1, best, all, $2, fast ? "reached" : "MISSED", $3, $4, flat ? "flat" : "GROWS"
		exit !(fast && flat) }' || status=1
done
exit $status
