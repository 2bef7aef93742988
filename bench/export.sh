#!/bin/sh
# The cost of `rxpath export`, by its own account and by the kernel's: threads by /proc/PID/task/TID/schedstat, in ns (ticks
# of /proc/PID/stat are a twentieth of what a quiet phase takes), BPF programs by the kernel's run-time statistics
# (kernel.bpf_stats_enabled, which costs each program two clock readings meanwhile, one of which it counts as the program's).
#
# One exporter runs all the time, with its default windows and budget, in the namespace that receives. The rates follow
# each other in rounds, so that other work on the machine meets all of them. Only CPU time is compared.
# RATES has datagrams per second. 860000x16 sends them by 16 in one send (UDP_SEGMENT): a veth pair passes each send on as one
# packet, and UDP cuts it at the socket. Single datagrams at such a rate need more CPUs than a sender gets on a small machine, so
# the rows say what arrived of what was asked for.
# Printed for each phase: datagrams/s that reached UDP, and in percent of one CPU: threads and programs by the kernel, both by
# the exporter, the estimated entries of the programs, and the sum. Then the sum of each rate over all rounds, the account of
# threads and that of programs apart, memory, and the number of series. With phases of 300 s or more also the highest sum over
# any five minutes of a phase.
# Goals: each rate under 1 % of one CPU, with such phases in any five minutes; the exporter's account within 20 % of the kernel's.
# Usage: bench/export.sh [RXPATH [ROUNDS [SECONDS]]], or PHASE_SECONDS=SECONDS. Exit 1: a goal is missed.
set -eu
rxpath=${1:-target/release/rxpath}
rounds=${2:-3}
seconds=${3:-${PHASE_SECONDS:-60}}
rates=${RATES:-"0 50000 350000 860000x16"}
long=300 # the goal is about any five minutes
id=rxpe$$
work=$(mktemp -d)
stats=$(cat /proc/sys/kernel/bpf_stats_enabled)
exporter=
serve=
load=

stop() {
	[ -z "$1" ] || { kill -TERM "$1" 2>/dev/null || true; wait "$1" 2>/dev/null || true; }
}
end() {
	stop "$load"
	stop "$serve"
	stop "$exporter"
	echo "$stats" >/proc/sys/kernel/bpf_stats_enabled
	ip netns del $id-tx 2>/dev/null || true
	ip netns del $id-rx 2>/dev/null || true
	rm -rf "$work"
}
trap end EXIT
trap 'exit 130' HUP INT TERM

ip netns add $id-tx
ip netns add $id-rx
ip -n $id-tx link add veth type veth peer name veth netns $id-rx
ip -n $id-tx addr add 10.77.9.1/24 dev veth
ip -n $id-rx addr add 10.77.9.2/24 dev veth
for end in tx rx; do ip -n $id-$end link set veth up; done

echo 1 >/proc/sys/kernel/bpf_stats_enabled
"$rxpath" export --netns $id-rx --listen unix:"$work/socket" --check-every 0s 2>"$work/said" &
exporter=$!
while ! curl -sf --unix-socket "$work/socket" http://h/metrics >"$work/page" 2>/dev/null; do
	kill -0 $exporter || { cat "$work/said"; exit 1; }
	sleep 0.2
done
ip netns exec $id-rx "$rxpath" serve udp 10.77.9.2:4800 >/dev/null 2>&1 &
serve=$!

metric() { # name with labels, of the page
	awk -v name="$1" 'index($0, name " ") == 1 { print $NF; found = 1 } END { if (!found) print 0 }' "$work/page"
}
# A window ends, so that the page has all up to now: then the counters of both sides.
now() {
	before=$(metric rxpath_window_seconds_total)
	while :; do
		curl -sf --unix-socket "$work/socket" http://h/metrics >"$work/page"
		[ "$(metric rxpath_window_seconds_total)" = "$before" ] || break
		sleep 0.02
	done
	threads=$(cat /proc/$exporter/task/*/schedstat | awk '{ ns += $1 } END { print ns / 1e9 }')
	programs=$(cat /proc/$exporter/fdinfo/* 2>/dev/null | awk '/^run_time_ns:/ { ns += $2 } END { print ns / 1e9 }')
	# Read or lost at the socket: InDatagrams and InErrors. Those in the queue are few.
	datagrams=$(ip netns exec $id-rx awk '/^Udp: [0-9]/ { printf "%.0f", $2 + $4 }' /proc/net/snmp)
	echo "$(metric rxpath_window_seconds_total) $datagrams $threads $programs" \
		"$(metric 'rxpath_agent_cpu_seconds_total{part="user"}')" \
		"$(metric 'rxpath_agent_cpu_seconds_total{part="bpf"}')" \
		"$(metric 'rxpath_agent_cpu_seconds_total{part="bpf_entry"}')"
}
# For one phase: the time of all windows so far, and the exporter's account, at each of its pages that is read.
account() {
	awk '/^rxpath_window_seconds_total / { s = $NF } /^rxpath_agent_cpu_seconds_total\{/ { cpu += $NF }
		END { printf "%.6f %.9f\n", s, cpu }' "$work/page" >>"$work/account"
}
# The phase itself. A short one asks for no page meanwhile.
phase() {
	: >"$work/account"
	account
	if [ "$seconds" -lt $long ]; then
		sleep "$seconds"
		return
	fi
	ends=$(($(date +%s) + seconds))
	while [ "$(date +%s)" -lt $ends ]; do
		sleep 10 # as often as windows end
		curl -sf --unix-socket "$work/socket" http://h/metrics >"$work/page"
		account
	done
}
# In percent of one CPU: the most over five minutes of this phase, from one end of a window to another.
highest() {
	awk -v long=$long '{ s[NR] = $1; cpu[NR] = $2 } END {
		for (i = 1; i <= NR; i++) {
			for (j = i + 1; j <= NR && s[j] - s[i] < long; j++);
			if (j <= NR) { share = (cpu[j] - cpu[i]) / (s[j] - s[i]) * 100; if (share > most) most = share }
		}
		printf "%.3f", most
	}' "$work/account"
}

echo "round rate datagrams/s | kernel: threads programs | exporter: threads programs entries | sum (% of one CPU)"
round=0
while [ $round -lt "$rounds" ]; do
	round=$((round + 1))
	for rate in $rates; do
		case $rate in *x*) segments="--gso ${rate#*x}" ;; *) segments= ;; esac
		if [ "$rate" != 0 ]; then
			# shellcheck disable=SC2086  # two words or none
			ip netns exec $id-tx "$rxpath" load udp 10.77.9.2:4800 --rate "${rate%x*}" $segments --size 64 -d 3600s \
				>/dev/null 2>&1 &
			load=$!
		fi
		from=$(now)
		phase
		to=$(now)
		account
		stop "$load"
		load=
		echo "$round $rate $from $to" | awk '{
			s = $10 - $3
			printf "%d %s %.0f | %.3f %.3f | %.3f %.3f %.3f | %.3f\n", $1, $2, ($11 - $4) / s,
				($12 - $5) / s * 100, ($13 - $6) / s * 100, ($14 - $7) / s * 100, ($15 - $8) / s * 100,
				($16 - $9) / s * 100, ($14 - $7 + $15 - $8 + $16 - $9) / s * 100
		}' | tee -a "$work/phases"
		[ "$seconds" -lt $long ] || echo "$rate $(highest)" >>"$work/long"
	done
done
echo
awk '{
	n[$2]++; pps[$2] += $3; kernel[$2] += $5 + $6; own[$2] += $8 + $9; sum[$2] += $12
	kernel_threads[$2] += $5; own_threads[$2] += $8; kernel_programs[$2] += $6; own_programs[$2] += $9
} END {
	for (rate in n) {
		ratio = own[rate] / kernel[rate]
		asked = rate; sub(/x.*/, "", asked)
		printf "rate %s: %.0f of %d datagrams/s arrived, %.3f %% of one CPU, own account %.2f of the kernel'\''s" \
			" (threads %.2f, programs %.2f)\n", rate, pps[rate] / n[rate], asked, sum[rate] / n[rate], ratio,
			own_threads[rate] / kernel_threads[rate], own_programs[rate] / kernel_programs[rate]
		if (sum[rate] / n[rate] >= 1 || ratio < 0.8 || ratio > 1.2) bad = 1
	}
	exit bad
}' "$work/phases" && status=0 || status=1
[ "$seconds" -lt $long ] || awk '{ if ($2 > most[$1]) most[$1] = $2; rates[$1] } END {
	for (rate in rates) {
		printf "rate %s: at most %.3f %% of one CPU in any five minutes\n", rate, most[rate]
		if (most[rate] >= 1) bad = 1
	}
	exit bad
}' "$work/long" || status=1
awk '/^VmRSS|^VmHWM/ { printf "%s %.1f MB\n", $1, $2 * 1024 / 1e6 }' /proc/$exporter/status
echo "maps: $(metric 'rxpath_agent_memory_bytes{kind="bpf_maps"}') bytes; series: $(grep -vc '^#' "$work/page")"
grep -E '^rxpath_agent_(shed|cost|budget)' "$work/page"
exit $status
