#!/bin/sh
# An experiment between two hosts that are namespaces of this machine, each with a NIC: an e1000e sends over the wire to
# the NIC of driver $1. Prints what the check of the hosts says, what a run says, and what one says in which frames are lost.
named() { for at in /sys/class/net/*/device/driver; do case $(readlink $at) in */$1) at=${at#/sys/class/net/}; echo ${at%%/*};; esac; done; }
host() { # name, NIC, address: a namespace of that name with the NIC
	unshare -n sleep 3000 & pid=$!
	until [ "$(readlink /proc/$pid/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do usleep 10000; done
	mkdir -p /run/netns
	: >/run/netns/$1
	mount -o bind /proc/$pid/ns/net /run/netns/$1
	ip link set $2 netns $pid
	in_host="nsenter -t $pid -n"
	# Frames of nobody else: what is lost is known to the frame.
	$in_host sh -c 'echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6'
	$in_host ip link set lo up
	$in_host ip addr add $3/24 dev $2
	$in_host ip link set $2 up
}
tx=$(named e1000e); rx=$(named $1)
own=$(cat /sys/class/net/$rx/address)
host sut $rx 10.9.0.2
host gen $tx 10.9.0.1
tries=0; until $in_host ping -q -c 1 -W 1 10.9.0.2 >/dev/null || [ $tries -ge 60 ]; do tries=$((tries + 1)); done
to() { $in_host arp -i $tx -s 10.9.0.2 $1; }
to $own
cat >/tmp/lab.toml <<END
[hosts.gen]
ssh = "local"
role = "sender"
netns = "gen"
[hosts.sut]
ssh = "local"
role = "receiver"
netns = "sut"
END
cat >/tmp/few.toml <<END
question = "Where do a few datagrams go?"
[load]
rate = "500"
[serve]
rcvbuf = "1MiB"
[trials]
ramp = "1s"
settle = "1s"
measure = "3s"
max_blocks = 1
aa = false
END
said() { echo "@@$1 errors"; cat /tmp/$1.err; echo "@@$1"; cat /tmp/$1; }
echo "@@devices"; echo "$tx $rx"
rxpath hosts check /tmp/lab.toml --json >/tmp/check 2>/tmp/check.err
echo "status $?" >>/tmp/check.err
said check

run() { # name
	rxpath run /tmp/few.toml --hosts /tmp/lab.toml --trials 1 --keep-noisy --out /tmp/runs --json >/tmp/$1 2>/tmp/$1.err
	echo "status $?" >>/tmp/$1.err
}

run quiet
said quiet

# Each other second the sender's frames have an address that no card has: they are lost on the wire.
run astray & run=$!
until ps | grep -q '[l]oad udp'; do kill -0 $run 2>/dev/null || break; usleep 50000; done
while kill -0 $run 2>/dev/null; do
	sleep 1
	to 02:00:00:00:00:99
	sleep 1
	to $own
done
said astray
echo "@@end"
