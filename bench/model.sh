#!/bin/sh
# The simulator's speed in packets per second of CPU time, with the interval of seven runs. Goals: 10 million on the simple path (one
# queue, one socket, regular arrivals), 3 million with everything on. Also its memory after 1 s and 10 s of simulated
# time. Exit 1: too slow, or memory grows. Exit 4: too noisy to tell.
set -eu
rxpath=${1:-target/release/rxpath}
judge=$(dirname "$rxpath")/examples/judge

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
	name=${goal%:*} least=${goal#*:} now=0
	said=$(for _ in 1 2 3 4 5 6 7; do speed "$name"; done | "$judge" --ratio at-least "$least") || now=$?
	[ $now -gt $status ] && status=$now
	short=$(memory "$name" 1s) long=$(memory "$name" 10s)
	echo "$name: $said million packets/s of CPU time, goal: at least $least"
	grows=flat
	if [ "$short" -eq 0 ] || [ "$long" -gt $((short * 11 / 10 + 1024)) ]; then grows=GROWS status=1; fi
	echo "$name: $short kB after 1 s, $long kB after 10 s simulated: $grows"
done
exit $status
