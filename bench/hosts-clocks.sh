#!/bin/sh
# Whether the true difference of two clocks lies inside the interval that `rxpath hosts check` prints.
#
# In each round a sender and a receiver are made again, each in a time namespace whose CLOCK_MONOTONIC is ahead of the
# coordinator's by a random number of nanoseconds: up to eleven days, or behind by up to half of the time since this machine
# started. That number is the truth. Printed: the rounds in which it lies inside both intervals, and of the intervals' widths
# the median and the widest, next to the round trips over ssh.
# Goal: inside in every round.
# Usage: bench/hosts-clocks.sh [RXPATH [ROUNDS]]    (root; 200 rounds of about three seconds). Exit 1: a truth lies outside.
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
for _ in $(seq "$rounds"); do
	of_gen1=$(python3 -c "$random")
	of_sut=$(python3 -c "$random")
	host_start_apart gen1 "$of_gen1"
	gen1=$daemon
	host_start_apart sut "$of_sut"
	sut=$daemon
	host_wait 10.78.1.2 10.78.2.2
	hosts_rxpath hosts check "$hosts_dir/lab.toml" --json >"$hosts_dir/said" 2>"$hosts_dir/errors" || {
		cat "$hosts_dir/errors" >&2
		exit 3
	}
	{
		printf '{"gen1": %s, "sut": %s, "said": ' "$of_gen1" "$of_sut"
		tr -d '\n' <"$hosts_dir/said"
		echo '}'
	} >>"$hosts_dir/rounds"
	host_stop gen1 "$gen1"
	host_stop sut "$sut"
done
python3 - "$hosts_dir/rounds" <<'PYTHON'
import json
import statistics
import sys

inside, widths, trips, rounds = 0, [], [], 0
for line in open(sys.argv[1]):
    row = json.loads(line)
    rounds += 1
    outside = []
    for host, said in sorted(row["said"]["result"].items()):
        truth, middle, half = row[host], said["clock_ahead_ns"], said["clock_error_ns"]
        widths.append(2 * half)
        trips.append(said["round_trip_ns"])
        if not middle - half <= truth <= middle + half:
            outside.append(f"{host} is ahead by {truth} ns, printed was {middle} +-{half}")
    inside += not outside
    for text in outside:
        print(f"round {rounds}: {text}")
us = [f"{ns / 1e3:.1f}" for ns in (statistics.median(widths), max(widths), statistics.median(trips), max(trips))]
print(f"truth inside in {inside} of {rounds} rounds, {len(widths)} intervals (goal: all)")
print(f"width of the intervals: median {us[0]} us, widest {us[1]} us; least round trips: median {us[2]} us, longest {us[3]} us")
sys.exit(inside < rounds)
PYTHON
