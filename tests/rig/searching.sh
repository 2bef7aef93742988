#!/bin/sh
# Searches on the traffic that an e1000e in a namespace of its own sends to an igb: kills a search while a setting is on,
# and prints what a search says that ends by itself.
unshare -n sleep 3000 & peer=$!
sleep 1
named() { for at in /sys/class/net/*/device/driver; do case $(readlink $at) in */$1) at=${at#/sys/class/net/}; echo ${at%%/*};; esac; done; }
tx=$(named e1000e); rx=$(named igb)
in_peer() { nsenter -t $peer -n "$@"; }
fail() { echo "@@failed $*"; tail -n 5 /tmp/load /tmp/serve; cat /tmp/search.err /tmp/searched; exit 1; }
ip link set $tx netns $peer
ip addr add 10.9.0.2/24 dev $rx
in_peer ip addr add 10.9.0.1/24 dev $tx
in_peer ip link set $tx up
tries=0; until in_peer ping -q -c 1 -W 1 10.9.0.2 >/dev/null || [ $tries -ge 60 ]; do tries=$((tries + 1)); done
rxpath serve udp 10.9.0.2:4736 -d 3000s --wait >/tmp/serve 2>&1 &
in_peer rxpath load udp 10.9.0.2:4736 -d 3000s --rate 500 >/tmp/load 2>&1 &
# A second in which something came.
until grep -qE '^ +[0-9.]+ +[1-9]' /tmp/serve; do usleep 100000; done

is_on() { rxpath tune plan --set $rx/$1 2>&1 | grep -q 'already set'; }
is_undone() { ! is_on $1 && rxpath tune status --state-dir /tmp/state | grep -q 'nothing is changed'; }
# In the shell's own place: a kill of the shell's process is one of the search.
search() { # the setting, the time
	exec rxpath tune auto --live $rx --yes --allow host,queues,link --objective "min busy_cpu_us_per_packet" \
		--settings nothing --try $rx/$1 --budget $2 --slice 2s --settle 1s --state-dir /tmp/state --out /tmp/out --json \
		2>/tmp/search.err
}
for set in coalesce/rx-usecs=100 rings/rx=512; do
	search $set 1000s >/tmp/searched & pid=$!
	until is_on $set; do kill -0 $pid || fail "never on: $set"; done
	kill -KILL $pid
	wait $pid
	[ $? = 137 ] || fail "ended by itself: $set"
	tries=0; until is_undone $set; do tries=$((tries + 1)); [ $tries -lt 15 ] || fail "still on: $set"; sleep 1; done
	echo "@@killed $set"
done
(search coalesce/rx-usecs=100 180s) >/tmp/searched
echo "@@status $?"
is_undone coalesce/rx-usecs=100 || fail 'on at the end'
echo @@answer; cat /tmp/searched
