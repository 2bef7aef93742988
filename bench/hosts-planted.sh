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
# - qdisc: a class of HTB at the sender's device lets less pass than the load sends, and its queue has room for ten frames. In the
#   part shared it also has the datagrams of the second load. The place is `qdisc`. The truth is the drops of the root in `tc -s`. In
#   the part shared it is what the sender offered less what came to the relay.
# - netfilter: an nftables rule on the receiver's input drops one in four. The truth is its counter, the place `netfilter`. No counter
#   of a host shows whose packets a rule dropped. So in the part exact the experiment has a network namespace of its own on each host
#   (`netns` of the inventory).
# - checksum: the relay corrupts each 20th datagram of the first 800. The truth is its count, the place `checksum`.
# - socket: the reader sleeps for 5 of each 10 ms and its socket has room for five datagrams. The truth is what the receiver's device
#   took from the relay less what the receiver read, and the place `socket-buffer`.
# Losses in a ring are planted by `make rig`. Losses in the per-CPU backlog cannot be planted in a host: net.core.netdev_max_backlog
# is one setting of the whole machine, and a TAP device hands its packets to IP without that backlog.
# Printed for each trial: the truth, the number and the interval of its place, and the remainder of the ledger.
# Goals of exact: the number is the truth in every trial, and the remainder is 0.
# Goals of shared: the truth lies inside in every trial, and nothing is unaccounted for: the remainder is 0, or 0 lies inside its
# bounds.
# Usage: bench/hosts-planted.sh [RXPATH [TRIALS]]    (root; 20 trials of each in each part, some two minutes a place and part;
# PARTS="shared exact", of which exact is always first; PLACES="relay egress"). Exit 1: a goal is missed. Exit 4: a trial had no loss.
set -eu
rxpath=${1:-target/release/rxpath}
trials=${2:-${ROUNDS:-20}}
places=${PLACES:-relay egress qdisc netfilter checksum socket}
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
# Frames of the load: 173 bytes of payload, which no probe of a path has. Length of the frame 215, of its IP packet 201, of its
# datagram 181.
size=173 frame=215 port=4321
# The second load's.
foreign_port=5000
# Each place is a function with four words:
# - facts: sets `term`, the place of the ledger, and what the truth of a part is in `exact` and `shared`: a sum of what the relay
#   counts (came, dropped, corrupted, taken), of what the ledger has (offered, delivered, in_flight) and of `counted`. Sets `words` of
#   the relay, `rate` and `serve` (keys) of the scenario, and `own`, the part with a network namespace of its own, where they differ
#   from those of `plant`.
# - plant: plants the loss, where the relay does not.
# - undo: ends it, where it outlives the data devices.
# - count: prints a counter of the loss. `counted` is what it rose by in the trial.
place_relay() {
	case $1 in
	facts) term=network exact=dropped shared=dropped words='--drop 20 --first 800' ;;
	esac
}
# Frames of another length pass; one in four by a random number (SKF_AD_RANDOM) is dropped (TC_ACT_SHOT).
place_egress() {
	case $1 in
	facts) term=egress-hook exact=counted shared='offered -came' ;;
	plant)
		inside gen1 tc qdisc add dev data clsact &&
			inside gen1 tc filter add dev data egress bpf da bytecode \
				"7,128 0 0 0,21 0 4 $frame,32 0 0 4294963256,84 0 0 3,21 0 1 0,6 0 0 2,6 0 0 4294967295"
		;;
	count) dropped clsact ;;
	esac
}
# 2.5 Mbit/s are 1,450 of the load's frames a second. The class limits only what a filter names, so no probe of a path is lost.
into_class() { inside gen1 tc filter add dev data parent 1: protocol ip u32 "$@" flowid 1:1; }
place_qdisc() {
	case $1 in
	facts) term=qdisc exact=counted shared='offered -came' ;;
	plant)
		inside gen1 tc qdisc add dev data root handle 1: htb &&
			inside gen1 tc class add dev data parent 1: classid 1:1 htb rate 2500kbit &&
			inside gen1 tc qdisc add dev data parent 1:1 pfifo limit 10 &&
			into_class match ip dport $port 0xffff match u16 201 0xffff at 2 &&
			into_class match ip dport $foreign_port 0xffff
		;;
	count) dropped htb ;;
	esac
}
place_netfilter() {
	case $1 in
	facts) term=netfilter exact=counted shared=counted own=exact ;;
	plant)
		inside sut nft -f - <<-END
			table ip planted {
				counter lost {}
				chain input {
					type filter hook input priority 0;
					udp dport $port udp length 181 numgen random mod 4 0 counter name lost drop
				}
			}
		END
		;;
	undo) inside sut nft delete table ip planted ;;
	count) inside sut nft list counter ip planted lost | sed -n 's/.*packets \([0-9]*\).*/\1/p' ;;
	esac
}
place_checksum() {
	case $1 in
	facts) term=checksum exact=corrupted shared=corrupted words='--corrupt 20 --first 800' ;;
	esac
}
place_socket() {
	case $1 in
	facts)
		term=socket-buffer exact='taken -delivered -in_flight'
		shared=$exact
		rate=5k serve='rcvbuf = "4KiB"\nsleep = "5ms"\nevery = "10ms"'
		;;
	esac
}
for place in $places; do
	command -v "place_$place" >/dev/null || {
		echo "hosts-planted: PLACES has $place, which is no place" >&2
		exit 1
	}
done
hosts_need ss tc nft
hosts_pair "$rxpath"
# The relay is the wire for data.
ip -n "$hosts_id-gen1" link del data
host_start_apart gen1
host_start_apart sut
host_wait 10.78.1.2 10.78.2.2
{
	inventory gen1 sender 'netns = "lab"'
	inventory sut receiver 'addr = ["10.78.3.2"]' 'netns = "lab"'
} >"$hosts_dir/own.toml"
# Moves the data device of a host into its network namespace `lab`.
to_lab() { # host, address
	on_ctl ssh "$1.lab" "ip netns del lab 2>/dev/null
		ip netns add lab && ip link set data netns lab && ip -n lab addr add $2/24 dev data && ip -n lab link set data up"
}
# Runs words in the network namespace that has the data device of a host; by ssh, a shell there reads them again.
inside() { # host, words
	at=$1
	shift
	if [ "$own" = "$part" ]; then
		on_ctl ssh "$at.lab" ip netns exec lab "$@"
	else
		ip netns exec "$hosts_id-$at" "$@"
	fi
}
# Packets that a queueing discipline of the sender's device dropped, by its kind.
dropped() {
	inside gen1 tc -s qdisc show dev data | sed -n "/^qdisc $1/,/^qdisc/s/.*(dropped \([0-9]*\),.*/\1/p"
}
scenario() {
	printf 'question = "Where are the losses?"\n[serve]\n%b\n[load]\nrate = "%s"\nsize = %s\n' "$serve" "$rate" "$size"
	hosts_trials 100ms 100ms 400ms
}
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
	on_host sut "$hosts_dir/rxpath" serve udp 10.78.3.2:$foreign_port
	until_listens -u $foreign_port
	on_host gen1 "$hosts_dir/rxpath" load udp 10.78.3.2:$foreign_port --rate 1k --size 300 -d 3600s
	command -v iperf3 >/dev/null || { echo "without iperf3: it is not installed"; return 0; }
	on_host sut iperf3 -s -p 5201
	until_listens -t 5201
	on_host gen1 iperf3 -c 10.78.3.2 -p 5201 -b 4M -t 3600
}
# The kernel's own frames: none of IPv6 on either device, and no ARP between the hosts.
address() { inside "$1" cat /sys/class/net/data/address; }
neighbour() { # host, address, host that has it
	inside "$1" ip neigh replace "$2" lladdr "$(address "$3")" dev data nud permanent
}
begin_alone() {
	for of in gen1 sut; do
		inside $of sh <<-'END'
			for device in data mgmt; do
				off=/proc/sys/net/ipv6/conf/$device/disable_ipv6
				[ ! -e $off ] || echo 1 >$off
			done
		END
	done
	neighbour gen1 10.78.3.2 sut
	neighbour sut 10.78.3.1 gen1
}
begin() {
	rm -f "$hosts_dir/counts"
	# shellcheck disable=SC2086  # none or four words
	relay gen1 data 10.78.3.1 sut data 10.78.3.2 --port $port --frame $frame --counts "$hosts_dir/counts" $words
	wire=$daemon
	hosts_inventory=$hosts_dir/lab.toml
	if [ "$own" = "$part" ]; then
		hosts_inventory=$hosts_dir/own.toml
		to_lab gen1 10.78.3.1
		to_lab sut 10.78.3.2
	fi
	"place_$place" plant || {
		echo "hosts-planted: $place cannot be planted here" >&2
		exit 3
	}
	case $part in
	exact) begin_alone ;;
	shared) begin_foreign ;;
	esac
	until [ -s "$hosts_dir/counts" ]; do
		kill -0 "$wire" || exit 3
		sleep 0.05 # until the relay has counted
	done
}
plant() { # part, place
	part=$1 place=$2
	words='' own='' rate=2k serve='rcvbuf = "8MiB"'
	"place_$place" facts
	case $part in
	exact) truth=$exact ;;
	shared) truth=$shared ;;
	esac
	scenario >"$hosts_dir/$place.toml"
	begin
	for number in $(seq "$trials"); do trial "$number"; done
	"place_$place" undo
	for pid in $foreign $wire; do daemon_stop "$pid"; done
	foreign=
}
trial() { # its number
	cp "$hosts_dir/counts" "$hosts_dir/before"
	was=$("place_$place" count)
	hosts_run "$hosts_dir/$place.toml"
	for pid in $foreign; do
		kill -0 "$pid" 2>/dev/null || {
			cat "$hosts_dir/other" >&2
			echo "hosts-planted: other traffic ended" >&2
			exit 3
		}
	done
	now=$("place_$place" count)
	python3 - "$part" "$place" "$1" "$term" "$truth" $((${now:-0} - ${was:-0})) "$hosts_dir/before" "$hosts_dir/counts" \
		"$hosts_dir"/runs/*/manifest.json >>"$hosts_dir/rows" <<'PYTHON'
import json
import sys
import time

part, place, trial, term, truth, counted, before, counts, manifest = sys.argv[1:]


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
counts = {name: ledger[f"{name}_packets"] for name in ("offered", "delivered", "in_flight")}
counts.update(by_relay, counted=int(counted))
truth = sum(-counts[name[1:]] if name[0] == "-" else counts[name] for name in truth.split())
is_exact = part == "exact"
shown, least, most = 0, 0, 0
for drop in ledger["drops"]:
    if drop["place"] != term:
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
                  "offered": counts["offered"], "relay": by_relay}))
PYTHON
	tail -n 1 "$hosts_dir/rows"
	rm -rf "$hosts_dir/runs"
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
