#!/bin/sh
# Whether an experiment by endpoints (`ssh = "local"`) delivers the rate of the same experiment in the lab.
#
# The lab makes its two namespaces; the hosts are two namespaces with a link like the lab's. Sender and reader have a CPU each. Three
# loads, of which LOADS chooses:
# - paced: 50,000 datagrams/s at a fixed rate, which both can take. The rate shows whether endpoints measure the window that they
#   say and count what is in it. The speed of the CPU plays no part.
# - work: the reader works for 10 us on each datagram, and about twice as many as it can take are sent at a fixed rate (open loop). Its
#   socket is always full and the reader never waits, so wake-ups play no part and caches a small one. What an endpoint takes from the
#   reader's CPU is missing from the delivered rate, and from the reader's share of its CPU. That share is the rate times the CPU time
#   of a datagram. Unlike the rate it does not change with the speed of the CPU.
# - flood: small datagrams as fast as they can be sent, to a reader that does nothing with them. Caches and wake-ups decide the rate,
#   which differs from process to process.
# A run has TRIALS short trials (5 of WINDOW, 1 s), each with processes of its own, and its rate is their median. Caches and
# queues are those of the processes, and each reader calibrates its work. A longer trial does not average that, more trials do: five of
# a second take about as long as three of two seconds. Two of five with a rate that other load changed do not move the median far.
# Void trials do not count. A run is left out if half of its trials or more are void.
# Each block has for each load one run between hosts and two in the lab, in random order. Printed for each load: the delivered rate
# between hosts relative to the mean of the two in the lab, less one, with its 95 % interval over the blocks; and the second run in
# the lab relative to the first, which is the noise. For work the same is printed of the reader's share of its CPU. Then the cost of
# measuring in the windows of the runs between hosts, of each endpoint: CPU time as a share of one CPU, and bytes/s over its control
# connection (`endpoint_cost` of the manifest), median and largest. A short window is the harder case: what is read at its ends is a
# larger share of it.
# Goals: each ratio is within 0.98 to 1.02; in each window at most 1 % of a CPU and 2 kB/s.
# Usage: bench/hosts-ratio.sh [RXPATH [BLOCKS]]    (root; a quiet machine; 20 blocks of two minutes; LOADS="work"). Exit 1: a
# goal is missed: of the costs, in every window. Exit 4: an interval or the costs are on both sides of a goal, or the noise of a load is
# not within 2 %.
set -eu
rxpath=$(realpath "${1:-target/release/rxpath}")
blocks=${2:-${BLOCKS:-20}}
loads=${LOADS:-paced work flood}
trials=${TRIALS:-5}
window=${WINDOW:-1s}
for load in $loads; do
	case $load in
	paced | work | flood) ;;
	*) echo "hosts-ratio: LOADS has $load: paced, work and flood are known" >&2; exit 2 ;;
	esac
done
judge=$(dirname "$rxpath")/examples/judge
[ -x "$judge" ] || { echo "hosts-ratio: there is no $judge (make bench-hosts builds it)" >&2; exit 3; }
# shellcheck source=tools/hosts-common.sh
. "$(dirname "$0")/../tools/hosts-common.sh"
# shellcheck source=tools/bench-rows.sh
. "$(dirname "$0")/../tools/bench-rows.sh"
hosts_need python3
hosts_begin
for name in tx rx; do
	host $name
	ip netns exec "$hosts_id-$name" sh -c 'echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6; echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6'
done
wire tx veth 10.78.3.1 rx veth 10.78.3.2
cat >"$hosts_dir/lab.toml" <<END
[hosts.tx]
ssh = "local"
role = "sender"
netns = "$hosts_id-tx"
[hosts.rx]
ssh = "local"
role = "receiver"
netns = "$hosts_id-rx"
END
# scenario LOAD KEYS_OF_SERVE KEYS_OF_LOAD
scenario() {
	{
		printf 'question = "What does this load deliver?"\n[serve]\ncpu = "@receiver"\n%s\n' "$2"
		printf '[load]\ncpu = "@sender"\nsize = 32\n%s\n' "$3"
		hosts_trials 300ms 1s "$window" "$trials"
	} >"$hosts_dir/$1.toml"
}
scenario paced '' 'rate = "50k"'
scenario work 'work = "10us"' 'rate = "200k"'
scenario flood '' ''
# The median rate of the trials that count and the reader's median share of its CPU; nothing if half of all trials or more are void, and
# 0 for the share if it is unknown in as many.
run() { # load, kind
	words=
	[ "$2" != hosts ] || words="--hosts $hosts_dir/lab.toml"
	now=0
	# shellcheck disable=SC2086  # none or two words
	timeout --foreground -k 30 300 "$rxpath" run "$hosts_dir/$1.toml" $words --wait --out "$hosts_dir/runs" \
		>/dev/null 2>"$hosts_dir/errors" || now=$?
	case $now in
	0 | 4 | 5) ;;
	*)
		cat "$hosts_dir/errors" >&2
		exit 3
		;;
	esac
	python3 - "$trials" "$hosts_dir/costs" "$hosts_dir"/runs/*/manifest.json <<'PYTHON' || exit 3
import json
import statistics
import sys

with open(sys.argv[3]) as file:
    trials = [trial for trial in json.load(file)["trials"] if not trial["void"]]
if 2 * len(trials) > int(sys.argv[1]):
    metrics = [trial["metrics"] for trial in trials]
    # A trial in which the reader's CPU time is unknown does not have the second one.
    timed = [one for one in metrics if one.get("receiver_cpu_ns_per_packet")]
    shares = [one["delivered_pps"] * one["receiver_cpu_ns_per_packet"] * 1e-9 for one in timed]
    share = statistics.median(shares) if 2 * len(shares) > int(sys.argv[1]) else 0
    print(statistics.median(one["delivered_pps"] for one in metrics), share)
    # The lab has no endpoints.
    with open(sys.argv[2], "a") as costs:
        for host in (host for trial in trials for host in trial.get("hosts", {}).values()):
            if cost := host.get("endpoint_cost"):
                print(json.dumps(cost), file=costs)
PYTHON
	rm -rf "$hosts_dir/runs"
}
: >"$hosts_dir/costs"
: >"$hosts_dir/rates"
for block in $(seq "$blocks"); do
	# shellcheck disable=SC2086  # a list
	for load in $(printf '%s\n' $loads | shuf); do
		for kind in $(printf '%s\n' lab again hosts | shuf); do
			rate=$(run "$load" "$kind") || exit 3
			[ -n "$rate" ] || { echo "block $block: other load disturbed $kind of $load"; continue; }
			echo "$block $load $kind $rate" >>"$hosts_dir/rates"
		done
	done
done
[ -s "$hosts_dir/rates" ] || exit 4
# Between hosts: relative to the mean in the lab. The second run in the lab: to the first.
relative() { # load, kind, column
	awk -v wanted="$1" -v kind="$2" -v column="$3" '$2 == wanted { rate[$1, $3] = $column; if ($1 > blocks) blocks = $1 } END {
		for (b = 1; b <= blocks; b++) {
			base = rate[b, "lab"]
			if (kind == "hosts" && rate[b, "again"] > 0) base = base > 0 ? (base + rate[b, "again"]) / 2 : rate[b, "again"]
			if (base > 0 && rate[b, kind] > 0) print rate[b, kind] / base - 1
		}
	}' "$hosts_dir/rates"
}
compare() { # load, column, its words
	noise=0 now=0
	said=$(relative "$1" again "$2" | "$judge" within 0.02) || noise=4
	echo "$1$3, two runs in the lab, ratio less one: $said, goal: within 0.02"
	said=$(relative "$1" hosts "$2" | "$judge" within 0.02) || now=$?
	echo "$1$3, hosts and lab, ratio less one: $said, goal: within 0.02"
	[ $noise = 0 ] || now=$noise
	worst $now
}
for load in $loads; do
	awk -v wanted="$load" '$2 == wanted { sum[$3] += $4; n[$3]++ } END {
		for (kind in n) printf "%s, %s: %.0f datagrams/s in the mean of %d runs\n", wanted, kind, sum[kind] / n[kind], n[kind]
	}' "$hosts_dir/rates"
	compare "$load" 4 ''
	[ "$load" != work ] || compare "$load" 5 ", the reader's share of its CPU"
done
now=0
python3 - "$hosts_dir/costs" <<'PYTHON' || now=$?
import json
import statistics
import sys

costs = [json.loads(line) for line in open(sys.argv[1])]
if not costs:
    print("costs of the endpoints: no run between hosts counts")
    sys.exit(4)
judged = 0
for what, field, scale, limit in [("% of a CPU", "cpu_ns", 100, 1), ("kB/s of control", "control_bytes", 1e6, 2)]:
    values = [cost[field] / cost["span_ns"] * scale for cost in costs]
    median, least, largest = statistics.median(values), min(values), max(values)
    print(f"an endpoint takes {median:.2f} {what} in the median of {len(values)} windows, {largest:.2f} at most (goal: {limit} at most)")
    if largest > limit:
        judged = 1 if judged == 1 or least > limit else 4
sys.exit(judged)
PYTHON
worst $now
exit "$status"
