#!/bin/sh
# Whether the true difference of two clocks lies inside the intervals that rxpath prints.
#
# In each round a sender and a receiver are made again, each in a time namespace whose CLOCK_MONOTONIC is ahead of the
# coordinator's by a random number of nanoseconds: up to eleven days, or behind by up to half of the time since this machine
# started. That number is the truth. The rounds have five conditions in turn, for the links of control and for that of data:
# - plain: veth pairs;
# - even: each direction takes 1 ms;
# - uneven: 1 ms towards a host and 5 ms back; from the sender to the receiver 1 ms, and 5 ms back;
# - jitter: each frame takes another time, up to 2 ms;
# - busy: veth pairs, and two endless loops for each CPU of this machine.
# Two intervals are compared with the truth: that of each host and the coordinator, by the control connection, which `rxpath hosts
# check` prints; and that of sender and receiver, by datagrams on the measured path (`path_clocks` of a short run's manifest).
# Printed for each condition: the rounds in which the truth lies inside all intervals; of the control connection the width of the
# interval, the least round trip, and the largest excess of a width over its round trip.
# Goals: inside in every round; no interval of the control connection is wider than its least round trip and 15 us.
# Usage: bench/hosts-clocks.sh [RXPATH [ROUNDS]]    (root; 200 rounds of about eight seconds). Exit 1: a goal is missed. Exit 4: fewer
# than half of the runs of a condition compared clocks on the measured path.
set -eu
rxpath=${1:-target/release/rxpath}
rounds=${2:-${ROUNDS:-200}}
# shellcheck source=tools/hosts-common.sh
. "$(dirname "$0")/../tools/hosts-common.sh"
hosts_pair "$rxpath"
random='
import random, time
print(random.randrange(-int(time.clock_gettime_ns(time.CLOCK_MONOTONIC) / 2), 10**15))
'
cat >"$hosts_dir/short.toml" <<'END'
question = "How far apart are two clocks on the measured path?"
[load]
rate = "1k"
END
hosts_trials 100ms 100ms 200ms >>"$hosts_dir/short.toml"
# The wires are laid again in each round, by what the condition wants.
for host in gen1 sut; do ip -n "$hosts_id-ctl" link del $host; done
ip -n "$hosts_id-gen1" link del data
# lay wire|relay [WORDS OF THE RELAY]
laid=
lay() {
	with=$1
	shift
	for ends in 'ctl gen1 10.78.1.1 gen1 mgmt 10.78.1.2' 'ctl sut 10.78.2.1 sut mgmt 10.78.2.2' 'gen1 data 10.78.3.1 sut data 10.78.3.2'; do
		# shellcheck disable=SC2086  # six words
		$with $ends "$@"
		[ "$with" = wire ] || laid="$laid $daemon"
	done
}
# A relay's devices go with it, the end of a veth with the other one.
take_up() {
	for pid in $laid; do daemon_stop "$pid"; done
	laid=
	for ends in ctl:gen1 ctl:sut gen1:data; do
		ip -n "$hosts_id-${ends%:*}" link del "${ends#*:}" 2>/dev/null || true
	done
}
loops=
begin_loops() {
	for _ in $(seq $(($(nproc) * 2))); do
		sh -c 'while :; do :; done' &
		loops="$loops $!"
		hosts_daemons="$hosts_daemons $!"
	done
}
end_loops() {
	for pid in $loops; do daemon_stop "$pid"; done
	loops=
}
for round in $(seq "$rounds"); do
	case $((round % 5)) in
	1) condition=plain && lay wire ;;
	2) condition=even && lay relay --out 1000 --back 1000 ;;
	3) condition=uneven && lay relay --out 1000 --back 5000 ;;
	4) condition=jitter && lay relay --jitter 2000 ;;
	*) condition=busy && lay wire ;;
	esac
	of_gen1=$(python3 -c "$random")
	of_sut=$(python3 -c "$random")
	host_start_apart gen1 "$of_gen1"
	gen1=$daemon
	host_start_apart sut "$of_sut"
	sut=$daemon
	host_wait 10.78.1.2 10.78.2.2
	[ $condition != busy ] || begin_loops
	hosts_rxpath hosts check "$hosts_dir/lab.toml" --json >"$hosts_dir/said" 2>"$hosts_dir/errors" || {
		cat "$hosts_dir/errors" >&2
		exit 3
	}
	{
		printf '{"condition": "%s", "gen1": %s, "sut": %s, "said": ' $condition "$of_gen1" "$of_sut"
		tr -d '\n' <"$hosts_dir/said"
		echo '}'
	} >"$hosts_dir/round"
	# What else is wrong with such a run is no matter of clocks.
	hosts_rxpath run "$hosts_dir/short.toml" --hosts "$hosts_dir/lab.toml" --out "$hosts_dir/runs" --keep-noisy \
		>"$hosts_dir/said" 2>"$hosts_dir/errors" || true
	end_loops
	python3 - "$hosts_dir/round" "$hosts_dir"/runs/*/manifest.json >>"$hosts_dir/rounds" <<'PYTHON'
import json
import os
import sys

row, manifest = json.load(open(sys.argv[1])), {}
if os.path.exists(sys.argv[2]):
    manifest = json.load(open(sys.argv[2]))
row["path"] = manifest.get("hosts", {}).get("gen1", {}).get("path_clocks", {}).get("sut")
print(json.dumps(row))
PYTHON
	rm -rf "$hosts_dir/runs"
	host_stop gen1 "$gen1"
	host_stop sut "$sut"
	take_up
done
python3 - "$hosts_dir/rounds" <<'PYTHON'
import collections
import json
import statistics
import sys

MORE_NS = 15_000
rows = collections.defaultdict(list)
for number, line in enumerate(open(sys.argv[1]), 1):
    row = json.loads(line)
    outside, widths, trips = [], [], []
    for host, said in sorted(row["said"]["result"].items()):
        truth, middle, half = row[host], said["clock_ahead_ns"], said["clock_error_ns"]
        widths.append(2 * half)
        trips.append(said["round_trip_ns"])
        if not middle - half <= truth <= middle + half:
            outside.append(f"{host} is ahead by {truth} ns, printed was {middle} +-{half}")
    if path := row["path"]:
        truth, middle, half = row["gen1"] - row["sut"], path["ahead_ns"], path["error_ns"]
        if not middle - half <= truth <= middle + half:
            outside.append(f"gen1 is ahead of sut by {truth} ns, on the measured path it was {middle} +-{half}")
    for text in outside:
        print(f"round {number} ({row['condition']}): {text}")
    rows[row["condition"]].append((not outside, widths, trips, path))


def us(values, choose):
    return f"{choose(values) / 1e3:.1f}"


inside, wide, few = 0, 0, 0
print(f"{'':8} {'inside':>9} {'on path':>8} {'width, us':>16} {'round trip, us':>16} {'excess, us':>11} {'path +-, us':>12}")
print(f"{'':8} {'':9} {'':8} {'median':>8} {'most':>7} {'median':>8} {'most':>7} {'most':>11} {'median':>12}")
for condition, rounds in rows.items():
    widths = [width for row in rounds for width in row[1]]
    trips = [trip for row in rounds for trip in row[2]]
    paths = [row[3]["error_ns"] for row in rounds if row[3]]
    excess = [width - trip for width, trip in zip(widths, trips)]
    good = sum(row[0] for row in rounds)
    inside += good
    wide += sum(more > MORE_NS for more in excess)
    few += 2 * len(paths) < len(rounds)
    print(f"{condition:8} {f'{good}/{len(rounds)}':>9} {f'{len(paths)}/{len(rounds)}':>8} {us(widths, statistics.median):>8} "
          f"{us(widths, max):>7} {us(trips, statistics.median):>8} {us(trips, max):>7} {us(excess, max):>11} "
          f"{us(paths, statistics.median) if paths else '-':>12}")
total = sum(map(len, rows.values()))
print(f"truth inside in {inside} of {total} rounds (goal: all); {wide} of {2 * total} intervals of the control connection are wider than "
      f"the least round trip and {MORE_NS // 1000} us (goal: none)")
sys.exit(1 if inside < total or wide else 4 if few else 0)
PYTHON
