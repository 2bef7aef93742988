#!/bin/sh
# The stolen time of `rxpath export`, compared with what a victim of known work lost in the same minutes.
#
# RPS steers each packet to the victim's CPU. The victim is the loop of `rxpath steal --probe`, which sums the gaps in its own
# time; it runs under a name of its own, as which the exporter reports it. Both are seconds per second: the loop's since it
# began, the exporter's over the windows in which the loop had a series. Printed for each rate: truth, the exporter's value, and
# the share of the time that its probes counted. Then whether the rows of all victims, programs and devices have one sum.
# Goals: within 10 % of the truth; sums within 1 %.
# Usage: bench/export-steal.sh [RXPATH [SECONDS]]. Exit 1: a goal is missed.
set -eu
rxpath=$(realpath "${1:-target/release/rxpath}")
seconds=${2:-300}
victim=${VICTIM_CPU:-1}
sender=${SENDER_CPU:-0}
# shellcheck source=bench/export-common.sh
. "$(dirname "$0")/export-common.sh"
pair
ip netns exec $id-rx sh -c "printf %x \$((1 << $victim)) >/sys/class/net/veth/queues/rx-0/rps_cpus"
ip netns exec $id-rx "$rxpath" serve udp 10.77.9.2:4800 --cpu "$sender" >/dev/null 2>&1 &
serve=$!
ln -s "$rxpath" "$work/rxvictim"
series() { metric "rxpath_task_cpu_stolen_seconds_total{by=\"$1\",task=\"rxvictim\"}"; }
rest() { echo "$(series irq_entry) $(series other)" | awk '{ printf "%.9f", $1 + $2 }'; }
# Windows so far, what was taken from the victim, and from all: by victim, by program; by the network, by victim and by device.
now() {
	next_window
	echo "$(metric rxpath_window_seconds_total) $(series network) $(rest)" \
		"$(sum 'rxpath_cpu_stolen_seconds_total{') $(sum 'rxpath_task_cpu_stolen_seconds_total{')" \
		"$(sum 'rxpath_cpu_stolen_seconds_total{' 'by="network"') $(sum 'rxpath_device_cpu_stolen_seconds_total{')"
}
value() { sed -n "/\"victim\": {/,\$s/^ *\"$1\": \([0-9.e-]*\).*/\1/p" "$work/truth" | head -n 1; }

status=0
for rate in ${RATES:-50000 100000 200000}; do
	export_start --interval 2s --budget "${BUDGET:-1%}"
	ip netns exec $id-tx "$rxpath" load udp 10.77.9.2:4800 --rate "$rate" --size 64 --cpu "$sender" -d 3600s >/dev/null 2>&1 &
	load=$!
	"$work/rxvictim" steal --probe --cpu "$victim" -d "${seconds}s" --json >"$work/truth" 2>/dev/null &
	others=$!
	# It has a series after two windows among the first, and what it had before is in `other`.
	until [ "$(series network)" != 0 ]; do
		kill -0 "$others" 2>/dev/null || { echo "bench: the victim never had a series" >&2; exit 3; }
		next_window
	done
	from=$(now)
	sleep $((seconds / 2)) # the measured time
	to=$(now)
	counted=$(metric 'rxpath_counted_ratio{probe="tasks, softirqs, polls and latency"}')
	wait "$others" || true
	others=
	stop "$load"
	load=
	stop "$exporter"
	exporter=
	echo "$from $to" | awk -v rate="$rate" -v counted="$counted" -v gaps="$(value gaps_s)" -v asked="$(value asked_s)" \
		-v on="$(value on_cpu_s)" 'BEGIN { if (asked <= 0) { print "bench: the victim said nothing"; exit 1 } } {
		off = asked > on ? asked - on : 0
		truth = (gaps - off) / asked
		found = ($9 + $10 - $2 - $3) / ($8 - $1)
		error = found / truth - 1
		victims = $11 - $4; tasks = $12 - $5; network = $13 - $6; devices = $14 - $7
		printf("%d packets/s: %.4f s/s lost, %.4f s/s reported (%+.1f %%), counted %s of the time\n", rate, truth, found,
			error * 100, counted)
		printf "   sums: victims %.3f s, programs %.3f s; network by victim %.3f s, by device %.3f s\n", victims, tasks, network, devices
		far = error > 0.1 || error < -0.1
		uneven = tasks > 1.01 * victims || tasks < 0.99 * victims || devices > 1.01 * network || devices < 0.99 * network
		exit far || uneven
	}' || status=1
done
exit $status
