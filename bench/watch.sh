#!/bin/sh
# The cost of the viewer: CPU time of `rxpath watch` at one update per second on a 120 x 40 screen, with and without
# BPF.
#
# Scheduler time (ns) of all threads of the process in 7 slices of 5 s, from its third second on. Time that its BPF programs take
# from other tasks is not included. Its screen is a pseudo-terminal, so drawing is included.
# Goal: at most 1 % of a CPU with and without BPF, on an idle host.
# Usage: bench/watch.sh [RXPATH [SECONDS]]. Exit 1: the goal is missed. Exit 4: tasks used more than a tenth of the CPUs,
# or the interval holds both sides of the goal.
set -eu
rxpath=${1:-target/release/rxpath}
seconds=${2:-5} # of a slice
slices=7
judge=$(dirname "$rxpath")/examples/judge
work=$(mktemp -d)
screen=

end() {
	[ -z "$screen" ] || { kill "$screen" 2>/dev/null || true; wait "$screen" 2>/dev/null || true; }
	rm -rf "$work"
}
trap end EXIT
trap 'exit 130' HUP INT TERM # the shell would end without the other trap

ran_ns() { cat /proc/"$1"/task/*/schedstat | awk '{ sum += $1 } END { printf "%.0f", sum }'; }
busy() { awk '/^cpu / { print $2 + $3 + $4 + $7 + $8 + $9, $2 + $3 + $4 + $5 + $6 + $7 + $8 + $9; exit }' /proc/stat; }

mkfifo "$work/keys"
status=0
for options in "" --no-bpf; do
	# The shell writes its pid and becomes the viewer.
	script -qefc "stty rows 40 cols 120; echo \$\$ >$work/pid; exec $rxpath watch $options" /dev/null \
		<"$work/keys" >/dev/null 2>"$work/said" &
	screen=$!
	exec 3>"$work/keys" # kept open: the viewer ends at the end of its input
	for _ in $(seq 100); do
		[ -s "$work/pid" ] && break
		sleep 0.05 # between two checks for the pid
	done
	pid=$(cat "$work/pid")
	sleep 3 # its start and its first frames
	# shellcheck disable=SC2046  # two numbers
	set -- $(busy)
	: >"$work/shares"
	for _ in $(seq $slices); do
		before=$(ran_ns "$pid") from=$(date +%s%N)
		sleep "$seconds" # the measured time
		after=$(ran_ns "$pid")
		echo "$((after - before)) $(($(date +%s%N) - from))" | awk '{ print $1 / $2 }' >>"$work/shares"
	done
	now=$(busy)
	printf q >&3
	exec 3>&-
	wait "$screen" || true
	screen=
	: >"$work/pid"
	others=$(awk -v was="$1 $2" -v now="$now" 'BEGIN {
		split(was, a); split(now, b); print int(b[2] > a[2] ? 100 * (b[1] - a[1]) / (b[2] - a[2]) : 0) }')
	good=0
	said=$("$judge" at-most 0.01 <"$work/shares") || good=$?
	[ "$others" -le 10 ] || { good=4; said="$said, but the machine is too busy for a verdict"; }
	[ $good -gt $status ] && status=$good
	echo "watch${options:+ $options}: $said of a CPU, goal: at most 0.01; all tasks used $others % of the machine"
done
exit $status
