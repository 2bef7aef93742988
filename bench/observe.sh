#!/bin/sh
# The cost of observation: packets/s of a sender whose CPU also receives, with and without an observer, in paired
# blocks.
#
# Worst case: one packet per softirq. One CPU sends each datagram with its own system call. Without RPS the receive
# softirq runs on the same CPU right after it, so each hook fires for each packet and its time reduces the rate.
# Then the same with several packets per softirq: a GSO send of 16 that the kernel segments before the veth.
# Observers: polls is trace without stages, drops and sockets; every is trace --every-packet; walks is trace without its
# scans of sockets; hooks is three programs that do nothing (begin and end of a softirq, and its poll). Each block runs
# every observer once, in random order, and also bpftrace with two tracepoints, and perf recording them.
# Printed: the share of the rate lost against a run without an observer, with its 95 % interval over the blocks, and the
# median in ns per packet. Then each observer's own time by the kernel's BPF statistics, per packet received meanwhile,
# and the added cost of calling its programs, estimated from an empty program.
# Goals: trace at most 4 %, steal at most 5 %; with several packets per softirq no cost: at most 1 %.
# Usage: bench/observe.sh [RXPATH [BLOCKS]]. Exit 1: a goal is missed. Exit 4: an interval holds both sides of a goal, or
# the two runs without an observer differ by more than 2 %.
set -eu
rxpath=${1:-target/release/rxpath}
blocks=${2:-20}
sender=${SENDER_CPU:-1}
reader=${READER_CPU:-0}
id=rxpb$$
# Programs that do nothing, and the rules of goals, built next to the binary.
hooks=$(dirname "$rxpath")/examples/empty_hooks
judge=$(dirname "$rxpath")/examples/judge
work=$(mktemp -d)
mkfifo "$work/open"
exec 4<>"$work/open" # an input that does not end
observer=
serve=

# A background program of a shell ignores SIGINT unless it handles it: programs that do not are ended by SIGTERM.
stop() { # pid, signal
	[ -z "$1" ] || { kill -"${2:-INT}" "$1" 2>/dev/null || true; wait "$1" 2>/dev/null || true; }
}
end() {
	stop "$observer" TERM
	stop "$serve"
	ip netns del $id-tx 2>/dev/null || true
	ip netns del $id-rx 2>/dev/null || true
	rm -rf "$work"
}
trap end EXIT
trap 'exit 130' HUP INT TERM # the shell would end without the other trap

ip netns add $id-tx
ip netns add $id-rx
ip -n $id-tx link add veth type veth peer name veth netns $id-rx
ip -n $id-tx addr add 10.94.0.1/24 dev veth
ip -n $id-rx addr add 10.94.0.2/24 dev veth
ip -n $id-tx link set veth up
ip -n $id-rx link set veth up
# Off, so that a GSO send arrives as 16 packets.
ip netns exec $id-tx "$rxpath" tune plan --set veth/features/tx-udp-segmentation=off -o "$work/plan" >/dev/null
ip netns exec $id-tx "$rxpath" tune apply "$work/plan" --state-dir "$work/state" >/dev/null
# A reader that naps is rarely woken: wake-ups would run in the sender's softirq too.
ip netns exec $id-rx "$rxpath" serve udp 10.94.0.2:9000 --cpu "$reader" --nap 50us >"$work/serve" 2>&1 &
serve=$!

# Until the observer prints that it has started; at most 10 s.
until_said() { # words, file
	for _ in $(seq 200); do
		grep -q "$1" "$2" 2>/dev/null && return
		kill -0 "$observer" 2>/dev/null || break
		sleep 0.05 # between two checks of the observer's output
	done
	echo "bench: $(tail -n 1 "$2")" >&2
	exit 3
}

look() { # observer
	: >"$work/said"
	observer=
	case $1 in
	none*) return ;;
	trace) "$rxpath" trace -d 60s --json >"$work/trace.json" 2>"$work/said" & observer=$! said="tracing for" ;;
	polls)
		"$rxpath" trace -d 60s --without stages,drops,sockets --json >"$work/polls.json" 2>"$work/said" &
		observer=$! said="tracing for"
		;;
	walks)
		"$rxpath" trace -d 60s --without sockets --json >"$work/walks.json" 2>"$work/said" &
		observer=$! said="tracing for"
		;;
	every)
		"$rxpath" trace -d 60s --every-packet --json >"$work/every.json" 2>"$work/said" &
		observer=$! said="tracing for"
		;;
	steal) "$rxpath" steal -d 60s --irq-entry 5 --json >"$work/steal.json" 2>"$work/said" & observer=$! said=counting ;;
	bpftrace)
		bpftrace -e 'tracepoint:irq:softirq_entry { @at[cpu] = nsecs; }
			tracepoint:irq:softirq_exit { @took = hist(nsecs - @at[cpu]); }' >"$work/said" 2>&1 &
		observer=$! said=Attaching
		;;
	hooks)
		"$hooks" <"$work/open" >"$work/said" 2>&1 &
		observer=$! said=attached
		;;
	perf)
		perf record -q -a -o "$work/perf" -e irq:softirq_entry,irq:softirq_exit -- sleep 60 2>>"$work/said" &
		observer=$!
		echo recording >>"$work/said" # perf prints nothing itself
		said=recording
		;;
	esac
	until_said "$said" "$work/said"
	sleep 0.4 # bpftrace says "Attaching" before it has attached, perf nothing at all
}

rate() { # options of the sender
	ip netns exec $id-tx "$rxpath" load udp 10.94.0.2:9000 --flood --cpu "$sender" -d 1s --json "$@" 2>/dev/null |
		sed -n 's/^ *"sent_pps": \([0-9.]*\).*/\1/p' | head -n 1
}

run() { # name, options of the sender
	name=$1
	shift
	for block in $(seq "$blocks"); do
		for kind in $(printf '%s\n' none none2 trace walks every polls steal hooks bpftrace perf | shuf); do
			look "$kind"
			pps=$(rate "$@")
			[ -n "$pps" ] || { echo "bench: the sender sent nothing while $kind observed" >&2; exit 3; }
			echo "$block $kind $pps"
			[ "$kind" = hooks ] && stop "$observer" TERM || stop "$observer"
			observer=
		done
	done >"$work/$name"
}

# One row per observer. A goal is reached only by a whole interval, so noise never reaches one.
table() { # name, goals as OBSERVER:LIMIT
	name=$1
	shift
	echo "   without an observer: $(awk '$2 == "none" { print $3 }' "$work/$name" | middle) packets/s (median)"
	printf '   %-10s %10s  %s\n' observer ns/packet "share of the rate lost (95 % interval)"
	worst=0
	for kind in none2 trace walks every polls steal hooks bpftrace perf; do
		awk -v kind=$kind '{ pps[$1, $2] = $3; if ($1 > n) n = $1 } END {
			for (b = 1; b <= n; b++) print 1 - pps[b, kind] / pps[b, "none"], 1e9 / pps[b, kind] - 1e9 / pps[b, "none"] }' \
			"$work/$name" >"$work/lost"
		goal=nothing
		[ $kind = none2 ] && goal="within 0.02"
		for each in "$@"; do [ "${each%:*}" = $kind ] && goal="at-most ${each#*:}"; done
		status_of=0
		# shellcheck disable=SC2086  # a word and a limit
		said=$(cut -d ' ' -f 1 "$work/lost" | "$judge" $goal) || status_of=$?
		# Two runs without an observer that differ: too noisy for any verdict.
		[ $kind = none2 ] && [ $status_of -ne 0 ] && status_of=4
		[ $status_of -gt $worst ] && worst=$status_of
		printf '   %-10s %10.1f  %s%s\n' $kind "$(cut -d ' ' -f 2 "$work/lost" | middle)" "$said" \
			"$([ "$goal" = nothing ] || echo ", goal: $goal")"
	done
	return $worst
}

middle() { sort -n | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

# An observer's own time and runs per packet, by the kernel's statistics, while packets arrive.
own_cost() { # load, kind, options of the observer -- options of the sender
	load=$1 kind=$2 && shift 2
	options=
	while [ "$1" != -- ]; do options="$options $1" && shift; done
	shift
	ip netns exec $id-tx "$rxpath" load udp 10.94.0.2:9000 --flood --cpu "$sender" -d 4s --json "$@" >"$work/sent" 2>/dev/null &
	observer=$!
	sleep 1 # until it sends at its pace
	# shellcheck disable=SC2086  # a list of options
	"$rxpath" $options -d 2s --json >"$work/own.json" 2>/dev/null
	wait "$observer" || true
	observer=
	part() { sed -n "/\"probe_cost\": {/,/\"programs\"/s/^ *\"$1\": \([0-9.e+-]*\).*/\1/p" "$work/own.json" | head -n 1; }
	pps=$(sed -n 's/^ *"sent_pps": \([0-9.]*\).*/\1/p' "$work/sent" | head -n 1)
	awk -v load="$load" -v kind="$kind" -v run="$(part run_time_s)" -v runs="$(part runs_count)" \
		-v packets="$(awk -v pps="$pps" 'BEGIN { print 2 * pps }')" -v price="$(price)" 'BEGIN {
		printf "   %-5s %-6s %7.1f ns per packet in %.2f runs, and %.0f ns to call them (%.0f each)\n", load, kind,
			1e9 * run / packets, runs / packets, price * runs / packets, price }'
}

# Cost of calling an empty program, ns: a third of the cost per packet of three of them, at one packet per softirq.
price() {
	awk '{ pps[$1, $2] = $3; if ($1 > n) n = $1 } END {
		for (b = 1; b <= n; b++) print (1e9 / pps[b, "hooks"] - 1e9 / pps[b, "none"]) / 3 }' "$work/one" | middle
}

status=0
echo "one packet per softirq, $blocks blocks:"
run one
table one trace:0.04 polls:0.04 steal:0.05 || status=$?
echo "16 packets per softirq, $blocks blocks:"
run many --gso 16
table many trace:0.01 polls:0.01 steal:0.01 || { now=$?; [ $now -gt $status ] && status=$now; }
echo "own time by the kernel's BPF statistics, while packets arrive:"
for load in "one" "many --gso 16"; do
	# shellcheck disable=SC2086  # a list of options
	set -- $load && name=$1 && shift
	own_cost "$name" trace trace -- "$@"
	own_cost "$name" walks trace --without sockets -- "$@"
	own_cost "$name" every trace --every-packet -- "$@"
	own_cost "$name" polls trace --without stages,drops,sockets -- "$@"
	own_cost "$name" steal steal --irq-entry 5 -- "$@"
done
exit $status
