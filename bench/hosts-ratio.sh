#!/bin/sh
# Whether an experiment by endpoints (`ssh = "local"`) delivers the rate of the same experiment in the lab.
#
# Both run one scenario: a flood of small datagrams, sender on one CPU, reader on the other. The lab makes its two namespaces;
# the hosts are two namespaces with a link like the lab's. Each block has one run between hosts and two in the lab, in random
# order. Printed: the delivered rate between hosts relative to that of the lab, less one, with its 95 % interval over the
# blocks, and the same of the two runs in the lab, which is the noise. Then what measuring costs in the windows of the runs between
# hosts, of each endpoint: CPU time as a share of one CPU, and bytes/s over its control connection (`endpoint_cost` of the manifest),
# median and largest.
# Goals: the ratio is within 0.98 to 1.02; in each window at most 1 % of a CPU and 2 kB/s.
# Usage: bench/hosts-ratio.sh [RXPATH [BLOCKS]]    (root; a quiet machine; 20 blocks of half a minute). Exit 1: a goal is missed: of the
# costs, in every window. Exit 4: the interval or the costs are on both sides of a goal, or the noise is not within 2 %.
set -eu
rxpath=$(realpath "${1:-target/release/rxpath}")
blocks=${2:-${BLOCKS:-20}}
judge=$(dirname "$rxpath")/examples/judge
[ -x "$judge" ] || { echo "hosts-ratio: there is no $judge (make bench-hosts builds it)" >&2; exit 3; }
# shellcheck source=tools/hosts-common.sh
. "$(dirname "$0")/../tools/hosts-common.sh"
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
cat >"$hosts_dir/flood.toml" <<'END'
question = "What does a flood deliver?"
[serve]
cpu = "@receiver"
[load]
cpu = "@sender"
size = 32
END
hosts_trials 500ms 1s 2s >>"$hosts_dir/flood.toml"
# The rate of the trial that counts; nothing if other load disturbed each of them.
run() { # kind
	words=
	[ "$1" != hosts ] || words="--hosts $hosts_dir/lab.toml"
	now=0
	# shellcheck disable=SC2086  # none or two words
	timeout --foreground -k 30 120 "$rxpath" run "$hosts_dir/flood.toml" $words --wait --out "$hosts_dir/runs" \
		>/dev/null 2>"$hosts_dir/errors" || now=$?
	case $now in
	0 | 4 | 5) ;;
	*)
		cat "$hosts_dir/errors" >&2
		exit 3
		;;
	esac
	python3 - "$hosts_dir/costs" "$hosts_dir"/runs/*/manifest.json <<'PYTHON' || exit 3
import json
import sys

trials = [trial for trial in json.load(open(sys.argv[2]))["trials"] if not trial["void"]]
for trial in trials[:1]:
    print(trial["metrics"]["delivered_pps"])
    # The lab has no endpoints.
    with open(sys.argv[1], "a") as costs:
        for host in trial.get("hosts", {}).values():
            if cost := host.get("endpoint_cost"):
                print(json.dumps(cost), file=costs)
PYTHON
	rm -rf "$hosts_dir/runs"
}
: >"$hosts_dir/costs"
for block in $(seq "$blocks"); do
	for kind in $(printf '%s\n' lab again hosts | shuf); do
		rate=$(run "$kind") || exit 3
		[ -n "$rate" ] || { echo "block $block: other load disturbed $kind"; continue; }
		echo "$block $kind $rate" >>"$hosts_dir/rates"
	done
done
[ -s "$hosts_dir/rates" ] || exit 4
relative() { # kind
	awk -v kind="$1" '{ rate[$1, $2] = $3; if ($1 > blocks) blocks = $1 } END {
		for (b = 1; b <= blocks; b++) if (rate[b, "lab"] > 0 && rate[b, kind] > 0) print rate[b, kind] / rate[b, "lab"] - 1
	}' "$hosts_dir/rates"
}
awk '{ sum[$2] += $3; n[$2]++ } END { for (kind in n) printf "%s: %.0f datagrams/s in the mean of %d runs\n", kind, sum[kind] / n[kind], n[kind] }' \
	"$hosts_dir/rates"
noise=0
said=$(relative again | "$judge" within 0.02) || noise=4
echo "two runs in the lab, ratio less one: $said, goal: within 0.02"
status=0
said=$(relative hosts | "$judge" within 0.02) || status=$?
echo "hosts and lab, ratio less one: $said, goal: within 0.02"
[ $noise = 0 ] || status=$noise
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
# A missed goal hides what is inconclusive.
case $status:$now in
*:0 | 1:*) ;;
*) status=$now ;;
esac
exit $status
