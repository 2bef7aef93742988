#!/bin/sh
# 32 hosts: how long until they are ready, and whether a run between them ends well.
#
# One receiver and 31 senders, each with a clock of its own that is hours apart from the others, on one bridge for control and
# one for data. `rxpath hosts check` runs twice: first the program is sent to each host, then it is there. Then one run of a short
# scenario, 100 datagrams/s from each sender.
# Goals: ready within 20 s both times; the run ends with status 0, or 4 (one trial is not enough to compare), and its trial counts.
# Usage: bench/hosts-scale.sh [RXPATH [HOSTS]]    (root; two minutes). Exit 1: a goal is missed.
set -eu
rxpath=${1:-target/release/rxpath}
hosts=${2:-32}
# shellcheck source=tools/hosts-common.sh
. "$(dirname "$0")/../tools/hosts-common.sh"
hosts_many "$rxpath" "$hosts"
status=0
for what in "the program is sent" "the program is there"; do
	began=$(date +%s%N)
	hosts_rxpath hosts check "$hosts_dir/lab.toml" >"$hosts_dir/said" 2>"$hosts_dir/errors" || {
		cat "$hosts_dir/errors" >&2
		exit 1
	}
	echo "$(($(date +%s%N) - began))" | awk -v hosts="$hosts" -v what="$what" '{
		printf "%d hosts ready after %.1f s, %s (goal: 20 s)\n", hosts, $1 / 1e9, what
		exit !($1 <= 20e9)
	}' || status=1
done
hosts_run udp-batching --trials 1 \
	--set load.rate="$(((hosts - 1) * 100))" --set trials.max_blocks=1 --set trials.aa=false --set trials.paired=false \
	--set trials.ramp=200ms --set trials.settle=200ms --set trials.measure=500ms
python3 - "$hosts_dir"/runs/*/manifest.json <<'PYTHON' || status=1
import json
import sys

manifest = json.load(open(sys.argv[1]))
for trial in manifest["trials"]:
    metrics = trial["metrics"]
    print(f"{trial['variant']}: offered {metrics['offered_pps']:.0f}/s, delivered {metrics['delivered_pps']:.0f}/s, "
          f"{trial['ledger']['unaccounted_packets']} unaccounted" + (f"; void: {trial['void']}" if trial["void"] else ""))
voids = [trial for trial in manifest["trials"] if trial["void"]]
print(f"{len(manifest['trials'])} trials, {len(voids)} void (goal: none), the run is {manifest['status']}")
sys.exit(bool(voids) or not manifest["trials"] or manifest["status"] != "complete")
PYTHON
exit $status
