#!/bin/sh
# The cost of the viewer: CPU time of `rxpath watch` at one update per second on a 120 x 40 screen, with and without
# BPF.
#
# Scheduler time (ns) of all threads of the process over 20 s, from its third second on. Time that its BPF programs take
# from other tasks is not included. Its screen is a pseudo-terminal, so drawing is included.
# Goal: under 1 % of a CPU with and without BPF, on an idle host.
# Usage: bench/watch.sh [RXPATH [SECONDS]]. Exit 1: the goal is missed. Exit 4: other tasks used more than a tenth of
# the CPUs, so the machine is too busy for a verdict.
set -eu
rxpath=${1:-target/release/rxpath}
seconds=${2:-20}
work=$(mktemp -d)
screen=

end() {
	[ -z "$screen" ] || { kill "$screen" 2>/dev/null || true; wait "$screen" 2>/dev/null || true; }
	rm -rf "$work"
}
trap end EXIT
trap 'exit 130' INT TERM # the shell would end without the other trap

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
	before=$(ran_ns "$pid")
	# shellcheck disable=SC2046  # two numbers
	set -- $(busy)
	from=$(date +%s%N)
	sleep "$seconds" # the measured time
	after=$(ran_ns "$pid")
	span=$(($(date +%s%N) - from))
	now=$(busy)
	printf q >&3
	exec 3>&-
	wait "$screen" || true
	screen=
	: >"$work/pid"
	awk -v what="watch${options:+ $options}" -v ns=$((after - before)) -v span=$span -v was="$1 $2" -v now="$now" 'BEGIN {
		split(was, a); split(now, b)
		own = ns / span
		cpus = 0; while ((getline line < "/proc/stat") > 0) if (line ~ /^cpu[0-9]/) ++cpus
		all = b[2] > a[2] ? (b[1] - a[1]) / (b[2] - a[2]) : 0
		others = all - own / cpus
		busy = others > 0.1; good = own < 0.01
		printf "%-15s %5.2f %% of a CPU (goal: under 1 %%), others %.0f %% of the machine: %s\n", what, 100 * own,
			100 * others, busy ? "too busy for a verdict" : good ? "right" : "MISSED"
		exit busy ? 4 : !good }' || { now=$?; [ $now -gt $status ] && status=$now; }
done
exit $status
