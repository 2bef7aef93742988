#!/bin/sh
# Experiments between two hosts that are namespaces of this machine, each with a NIC: an e1000e sends over the wire to the NIC of
# driver $1. Prints what the check of the hosts says, and what each of the runs says that the other words name:
# - quiet: nothing is lost.
# - astray: each other second the frames have an address that no card has.
# - ring: the ring of the receiver is as small as its driver allows, and the sender's kernel cuts each aggregate of 64 datagrams just
#   before the card. Its driver tells the card of them at once, and QEMU hands over all of them before it runs the machine again. So
#   the ring, which has room for 31, loses the others. It is empty again when the next aggregate comes, 32 ms later.
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
driver=$1
shift
runs=$*
tx=$(named e1000e); rx=$(named $driver)
own=$(cat /sys/class/net/$rx/address)
back=$(cat /sys/class/net/$tx/address)
# A small ring stays when the NIC moves to another namespace.
echo "@@set"
case $runs in *ring*)
	rxpath tune plan --set $rx/rings/rx=32 -o /tmp/ring.toml 2>&1 && rxpath tune apply /tmp/ring.toml 2>&1
	;;
esac
host sut $rx 10.9.0.2
to_sut=$in_host
host gen $tx 10.9.0.1
tries=0; until $in_host ping -q -c 1 -W 1 10.9.0.2 >/dev/null || [ $tries -ge 60 ]; do tries=$((tries + 1)); done
to() { $in_host arp -i $tx -s 10.9.0.2 $1; }
to $own
# ARP of the receiver would be packets of others in its counters.
$to_sut arp -i $rx -s 10.9.0.1 $back
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
scenario() { # name, rate, ramp and longest settle, measure, blocks; keys of [load]
	cat >/tmp/$1.toml <<-END
		question = "Where do a few datagrams go?"
		[load]
		rate = "$2"
		$6
		[serve]
		rcvbuf = "1MiB"
		[trials]
		ramp = "$3"
		settle = "$3"
		measure = "$4"
		blocks = $5
		max_blocks = $5
		aa = false
	END
}
scenario few 500 1s 3s 1
scenario many 2k 200ms 1s 20 'size = 100
		batch = 1
		gso = 64'
said() { echo "@@$1 errors"; cat /tmp/$1.err; echo "@@$1"; cat /tmp/$1; }
echo "@@devices"; echo "$tx $rx"
rxpath hosts check /tmp/lab.toml --json >/tmp/check 2>/tmp/check.err
echo "status $?" >>/tmp/check.err
said check

run() { # name, scenario
	rxpath run /tmp/$2.toml --hosts /tmp/lab.toml --keep-noisy --out /tmp/runs --json >/tmp/$1 2>/tmp/$1.err
	echo "status $?" >>/tmp/$1.err
}
for name in $runs; do
	case $name in
	ring) run ring many ;;
	quiet) run quiet few ;;
	astray)
		run astray few & run=$!
		until ps | grep -q '[l]oad udp'; do kill -0 $run 2>/dev/null || break; usleep 50000; done
		while kill -0 $run 2>/dev/null; do
			sleep 1
			to 02:00:00:00:00:99
			sleep 1
			to $own
		done
		;;
	esac
	said $name
done
echo "@@end"
