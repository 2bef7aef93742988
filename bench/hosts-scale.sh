#!/bin/sh
# 32 hosts: how long until they are ready, and whether a run between them ends well.
#
# One receiver and 31 senders, each with a clock of its own that is hours apart from the others, on one bridge for control and
# one for data. `rxpath hosts check` runs twice: first the program is sent to each host, then it is there. Then one run of short
# trials, 100 datagrams/s from each sender. The hosts are foreign load to each other, so that noisy trials count (--keep-noisy). What
# control does to a trial makes it void, and a warning says what it was: `unsteady-host` that a host missed its window or that a
# clock was slewed, `clock-jump` that a clock jumped.
# Goals: ready within 20 s both times; the run ends with status 0, or 4 (one variant is not enough to compare), has all its trials,
# and none has the warning `unsteady-host`.
# Usage: bench/hosts-scale.sh [RXPATH [HOSTS [TRIALS]]]    (root; five minutes). Exit 1: a goal is missed. Exit 4: a clock jumped.
set -eu
rxpath=${1:-target/release/rxpath}
hosts=${2:-32}
trials=${3:-30}
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
cat >"$hosts_dir/many.toml" <<END
question = "Does control lose a trial?"
[load]
rate = "$(((hosts - 1) * 100))"
END
hosts_trials 200ms 200ms 500ms "$trials" >>"$hosts_dir/many.toml"
hosts_limit=600
hosts_run "$hosts_dir/many.toml"
now=0
python3 - "$hosts_dir"/runs/*/manifest.json "$trials" <<'PYTHON' || now=$?
import json
import sys

manifest, asked = json.load(open(sys.argv[1])), int(sys.argv[2])
trials, lost, jumped = manifest["trials"], 0, 0
for trial in trials:
    metrics, warnings = trial["metrics"], trial["warnings"]
    codes = [warning["code"] for warning in warnings]
    lost += "unsteady-host" in codes
    jumped += "clock-jump" in codes
    texts = [warning["text"] for warning in warnings if warning["code"] in ("unsteady-host", "clock-jump")]
    print(f"trial {trial['trial'] + 1}: offered {metrics.get('offered_pps', 0):.0f}/s, delivered {metrics.get('delivered_pps', 0):.0f}/s, "
          f"{trial['ledger']['unaccounted_packets']} unaccounted", *texts, *([f"void: {trial['void']}"] if trial["void"] else []), sep="; ")
print(f"{len(trials)} of {asked} trials, {lost} lost by control (goal: none), {jumped} with a clock that jumped, the run is {manifest['status']}")
if lost or manifest["status"] == "failed":
    sys.exit(1)
sys.exit(4 if jumped or len(trials) < asked or manifest["status"] != "complete" else 0)
PYTHON
[ $now = 0 ] || [ $status = 1 ] || status=$now
exit $status
