#!/bin/sh
# Whether losses that are planted between two hosts are in the ledger at their place: exactly where nothing else uses the hosts, inside
# the bounds of the place while other programs use them.
#
# Each host is a set of namespaces. Between them is tools/hosts-relay.py, which counts the frames of the load. Each trial is a run of
# its own. Two parts:
# - exact: no other program sends on the wire. IPv6 is off, and the neighbours are permanent, so that the kernel sends no ARP there.
#   Only the ssh of rxpath uses the hosts too, on a device of its own.
# - shared: others send at the same time: a second pair of `rxpath load udp` and `serve udp`, and TCP of iperf3 where that is
#   installed. Counters hold the packets of others too, and the ledger's terms are intervals.
# The losses of both:
# - relay: each 20th datagram of the first 800 is dropped by the relay. The truth is its count, the place `network`.
# - egress: a filter in classic BPF drops one in four at the sender's device. The place is `egress-hook`. The truth is the drops of
#   `clsact` in `tc -s`. In the part shared it is what the sender offered less what came to the relay.
# - socket: the reader sleeps for 5 of each 10 ms and its socket has room for five datagrams. The truth is what the receiver's device
#   took from the relay less what the receiver read, and the place `socket-buffer`.
# Printed for each trial: the truth, the number and the interval of its place, and the remainder of the ledger.
# Goals of exact: the number is the truth in every trial, and the remainder is 0.
# Goals of shared: the truth lies inside in every trial, and nothing is unaccounted for: the remainder is 0, or 0 lies inside its
# bounds.
# Usage: bench/hosts-planted.sh [RXPATH [TRIALS]]    (root; 20 trials of each in each part, some six minutes a part;
# PARTS="shared exact", of which exact is always first; PLACES="relay egress"). Exit 1: a goal is missed. Exit 4: a trial had no loss.
set -eu
rxpath=${1:-target/release/rxpath}
trials=${2:-${ROUNDS:-20}}
places=${PLACES:-relay egress socket}
parts=${PARTS:-shared exact}
for part in $parts; do
	case $part in
	shared | exact) ;;
	*)
		echo "hosts-planted: PARTS has $part, which is neither shared nor exact" >&2
		exit 1
		;;
	esac
done
# shellcheck source=tools/hosts-common.sh
. "$(dirname "$0")/../tools/hosts-common.sh"
hosts_need ss tc
hosts_pair "$rxpath"
# The relay is the wire for data.
ip -n "$hosts_id-gen1" link del data
host_start_apart gen1
host_start_apart sut
host_wait 10.78.1.2 10.78.2.2
# Frames of the load: 173 bytes of payload, which no probe of a path has. Length of the frame 215, else it passes; one in four by a
# random number (SKF_AD_RANDOM) is dropped (TC_ACT_SHOT).
size=173 frame=215
one_in_four="7,128 0 0 0,21 0 4 $frame,32 0 0 4294963256,84 0 0 3,21 0 1 0,6 0 0 2,6 0 0 4294967295"
scenario() { # name, rate, keys of [serve]
	{
		printf 'question = "Where are the losses?"\n[serve]\n%b\n[load]\nrate = "%s"\nsize = %s\n' "$3" "$2" "$size"
		hosts_trials 100ms 100ms 400ms
	} >"$hosts_dir/$1.toml"
}
scenario relay 2k 'rcvbuf = "8MiB"'
scenario egress 2k 'rcvbuf = "8MiB"'
scenario socket 5k 'rcvbuf = "4KiB"\nsleep = "5ms"\nevery = "10ms"'
# Starts a program on a host until the end of the place.
foreign=
on_host() { # host, words
	host=$1
	shift
	ip netns exec "$hosts_id-$host" "$@" >/dev/null 2>"$hosts_dir/other" &
	foreign="$foreign $!"
	hosts_daemons="$hosts_daemons $!"
}
listens() { # -u or -t, port
	ip netns exec "$hosts_id-sut" ss -Hln "$1" "sport = :$2" | grep -q .
}
until_listens() {
	left=100
	until listens "$1" "$2"; do
		left=$((left - 1))
		[ $left -gt 0 ] || {
			cat "$hosts_dir/other" >&2
			echo "hosts-planted: nothing listens on port $2" >&2
			exit 3
		}
		sleep 0.05 # until it listens
	done
}
begin_foreign() {
	on_host sut "$hosts_dir/rxpath" serve udp 10.78.3.2:5000
	until_listens -u 5000
	on_host gen1 "$hosts_dir/rxpath" load udp 10.78.3.2:5000 --rate 1k --size 300 -d 3600s
	command -v iperf3 >/dev/null || { echo "without iperf3: it is not installed"; return 0; }
	on_host sut iperf3 -s -p 5201
	until_listens -t 5201
	on_host gen1 iperf3 -c 10.78.3.2 -p 5201 -b 4M -t 3600
}
# The kernel's own frames: none of IPv6 on either device, and no ARP between the hosts.
address() { ip netns exec "$hosts_id-$1" cat /sys/class/net/data/address; }
neighbour() { # host, address, host that has it
	ip -n "$hosts_id-$1" neigh replace "$2" lladdr "$(address "$3")" dev data nud permanent
}
begin_alone() {
	for host in gen1 sut; do
		# shellcheck disable=SC2016  # a word of that shell
		ip netns exec "$hosts_id-$host" sh -c 'for device in data mgmt; do
			off=/proc/sys/net/ipv6/conf/$device/disable_ipv6
			[ ! -e $off ] || echo 1 >$off
		done'
	done
	neighbour gen1 10.78.3.2 sut
	neighbour sut 10.78.3.1 gen1
}
# Packets that filters of tc dropped at the sender's device; nothing without a filter.
filtered() {
	ip netns exec "$hosts_id-gen1" tc -s qdisc show dev data | sed -n '/^qdisc clsact/,/^qdisc/s/.*(dropped \([0-9]*\),.*/\1/p'
}
plant() { # part, place
	part=$1 place=$2
	words=
	[ "$place" != relay ] || words='--drop 20 --first 800'
	rm -f "$hosts_dir/counts"
	# shellcheck disable=SC2086  # none or four words
	relay gen1 data 10.78.3.1 sut data 10.78.3.2 --port 4321 --frame $frame --counts "$hosts_dir/counts" $words
	wire=$daemon
	if [ "$place" = egress ]; then
		ip netns exec "$hosts_id-gen1" tc qdisc add dev data clsact
		ip netns exec "$hosts_id-gen1" tc filter add dev data egress bpf da bytecode "$one_in_four"
	fi
	case $part in
	exact) begin_alone ;;
	shared) begin_foreign ;;
	esac
	until [ -s "$hosts_dir/counts" ]; do
		kill -0 "$wire" || exit 3
		sleep 0.05 # until the relay has counted
	done
	for trial in $(seq "$trials"); do
		cp "$hosts_dir/counts" "$hosts_dir/before"
		filtered_before=$(filtered)
		hosts_run "$hosts_dir/$place.toml"
		for pid in $foreign; do
			kill -0 "$pid" 2>/dev/null || {
				cat "$hosts_dir/other" >&2
				echo "hosts-planted: other traffic ended" >&2
				exit 3
			}
		done
		filtered_now=$(filtered)
		filtered_here=$((${filtered_now:-0} - ${filtered_before:-0}))
		python3 - "$part" "$place" "$trial" "$filtered_here" "$hosts_dir/before" "$hosts_dir/counts" \
			"$hosts_dir"/runs/*/manifest.json >>"$hosts_dir/rows" <<'PYTHON'
import json
import sys
import time

part, place, trial, filtered, before, counts, manifest = sys.argv[1:]
PLACES = {"relay": "network", "egress": "egress-hook", "socket": "socket-buffer"}


def read(name):
    with open(name) as file:
        return json.load(file)


before, after, same = read(before), read(counts), 0
limit = time.monotonic() + 30
while same < 5:
    if time.monotonic() > limit:
        sys.exit("hosts-planted: the relay's counts go on")
    time.sleep(0.1)  # why: the relay writes its counts so often
    now = read(counts)
    same = same + 1 if now == after else 0
    after = now
by_relay = {name: after[name] - before[name] for name in after}
trials = read(manifest)["trials"]
if len(trials) != 1:
    sys.exit(f"hosts-planted: {len(trials)} trials in a run of one")
ledger = trials[0]["ledger"]
offered, delivered, in_flight = (ledger[name] for name in ("offered_packets", "delivered_packets", "in_flight_packets"))
is_exact = part == "exact"
truth = {"relay": by_relay["dropped"], "egress": int(filtered) if is_exact else offered - by_relay["came"],
         "socket": by_relay["taken"] - delivered - in_flight}[place]
shown, least, most = 0, 0, 0
for drop in ledger["drops"]:
    if drop["place"] != PLACES[place]:
        continue
    shown += drop["packets"]
    bounds = drop.get("bounds")
    if drop["exact"]:
        bounds = {"least_packets": drop["packets"], "most_packets": drop["packets"]}
    # Without bounds only the lower one is known.
    bounds = bounds or {"least_packets": drop["packets"], "most_packets": None}
    least += bounds["least_packets"]
    most = None if most is None or bounds["most_packets"] is None else most + bounds["most_packets"]
rest, bounds = ledger["unaccounted_packets"], ledger.get("unaccounted_bounds")
has_zero = rest is None and bounds is not None and bounds["least_packets"] <= 0 <= bounds["most_packets"]
closes = rest == 0 or (has_zero and not is_exact)
inside = shown == truth if is_exact else least <= truth and (most is None or truth <= most)
print(json.dumps({"part": part, "place": place, "trial": trial, "truth": truth, "shown": shown, "least": least, "most": most,
                  "inside": inside, "closes": closes, "is_number": rest == 0, "rest": rest, "bounds": bounds,
                  "offered": offered, "relay": by_relay}))
PYTHON
		tail -n 1 "$hosts_dir/rows"
		rm -rf "$hosts_dir/runs"
	done
	for pid in $foreign $wire; do daemon_stop "$pid"; done
	foreign=
}
# Exact is first, because TCP connections of the other programs may outlive these programs.
for part in exact shared; do
	case " $parts " in
	*" $part "*) for place in $places; do plant "$part" "$place"; done ;;
	esac
done
python3 - "$hosts_dir/rows" <<'PYTHON'
import collections
import json
import sys

rows = collections.defaultdict(list)
for line in open(sys.argv[1]):
    row = json.loads(line)
    rows[row["part"], row["place"]].append(row)
missed = none = 0
for (part, place), trials in rows.items():
    inside, closes = sum(row["inside"] for row in trials), sum(row["closes"] for row in trials)
    numbers, bare = sum(row["is_number"] for row in trials), sum(row["truth"] <= 0 for row in trials)
    widths = sorted(row["most"] - row["least"] for row in trials if row["most"] is not None)
    shown = f"median {widths[len(widths) // 2]}, widest {widths[-1]}" if widths else "none has an upper end"
    planted = [row["truth"] for row in trials]
    where = "exactly shown" if part == "exact" else "inside"
    print(f"{part}, {place}: {min(planted)} to {max(planted)} datagrams lost in a trial, {where} in {inside} of "
          f"{len(trials)} (goal: all); width of the intervals: {shown}; nothing "
          f"unaccounted for in {closes} (goal: all), of these {numbers} by a number and not by bounds")
    missed += inside < len(trials) or closes < len(trials)
    none += bare
sys.exit(1 if missed else 4 if none else 0)
PYTHON
