#!/bin/sh
# Experiments with a machine that is up, from the other end of its NICs: tools/rig.sh runs it with --outside, guest1 is an igb and
# guest2 a virtio_net. ssh comes by the NIC that is not measured. Prints for each NIC what the check of the hosts says with the
# program $1, and what a run says of which every other second's frames are lost on the wire. For the igb also a quiet run, one with
# more datagrams than the machine takes, and one from there, and 20 short ones with the clock of the machine 500 ppm fast and 500 ppm
# slow in turn, and those of guest_clocks.sh. And what is in the machine before and after all of them.
# The virtio_net of QEMU 10 gets no such load: it receives nothing any more after one.
set -u
rxpath=$1
dir=$(mktemp -d)
run=
# ended: ends the run that goes on, and waits until it has undone what it made in the machine.
ended() {
	[ -z "$run" ] || { pkill --parent "$run"; wait "$run"; }
	rm -rf "$dir"
}
trap ended EXIT
trap 'exit 130' HUP INT TERM # the shell would end without the other trap
cd "$dir" || exit 1

# inventory NUMBER OF THE NIC, OF THAT FOR SSH, role here, role there
inventory() {
	cat <<-END
		[hosts.here]
		ssh = "local"
		role = "$3"
		addr = ["10.79.$1.1"]
		[hosts.guest]
		ssh = "guest$2.lab"
		role = "$4"
		addr = ["10.79.$1.2"]
	END
}
# scenario RATE, MEASURE, RCVBUF, RAMP AND LONGEST SETTLE
scenario() {
	cat <<-END
		question = "Where do datagrams between two kernels go?"
		[load]
		rate = "$1"
		[serve]
		rcvbuf = "$3"
		[trials]
		ramp = "$4"
		settle = "$4"
		measure = "$2"
		max_blocks = 1
		aa = false
	END
}
# said NAME WORDS..: what they say, and their exit status.
said() {
	name=$1
	shift
	"$rxpath" "$@" --json >out 2>errors
	echo "status $?" >>errors
	echo "@@$name errors"
	cat errors
	echo "@@$name"
	cat out
}
ran() { said "$1" run "$2.toml" --hosts "$3.toml" --trials 1 --keep-noisy --out "runs/$1"; }
# Programs of rxpath, its files but the copy that stays, settings of the devices.
inside() {
	echo "@@$1"
	ssh guest1.lab '
		for exe in /proc/[0-9]*/exe; do readlink "$exe"; done | grep rxpath
		find / /run /tmp /dev/shm -xdev -name "*rxpath*" ! -path "/root/.cache/rxpath*" ! -name rxpath.lock
		ls -d /proc/sys/net/ipv4/conf/* /run/netns 2>/dev/null
		ip -d link; tc qdisc; sysctl -a 2>/dev/null | grep -E "^net[.]core|^kernel[.]sched|^net[.]ipv4[.](udp|tcp)_"
		cat /sys/class/net/eth*/queues/rx-*/rps_cpus /proc/irq/*/smp_affinity_list /sys/class/net/eth*/threaded'
}

# astray NAME, INVENTORY, NUMBER OF THE NIC
astray() {
	peer=10.79.$3.2 tap=tap$3
	own=$(ip neigh show "$peer" dev "$tap" | sed -n 's/.*lladdr \([^ ]*\).*/\1/p')
	to() { ip neigh replace "$peer" dev "$tap" lladdr "$1" nud permanent; }
	ran "$1" few "$2" >"$1.said" &
	run=$!
	until pgrep --ns $$ --nslist net -x rxpath -a | grep -q ' load udp'; do
		kill -0 $run 2>/dev/null || break
		# why: the sender is not started yet
		sleep 0.1
	done
	while kill -0 $run 2>/dev/null; do
		# why: a second in which frames arrive
		sleep 1
		to 02:00:00:00:00:99
		# why: and one in which no card has their address
		sleep 1
		to "$own"
	done
	run=
	cat "$1.said"
}

scenario 500 12s 1MiB 1s >few.toml
scenario 20k 4s 64KiB 1s >many.toml
# Long enough that the drift is known to less than 500 ppm where a slow machine knows a clock to a millisecond.
scenario 500 3s 1MiB 100ms >short.toml
inventory 1 2 sender receiver >igb.toml
inventory 2 1 sender receiver >virtio_net.toml
inventory 1 2 receiver sender >back.toml
inside before
said 'igb check' hosts check igb.toml
said 'virtio_net check' hosts check virtio_net.toml
ran quiet few igb
ran many many igb
astray 'igb astray' igb 1
astray 'virtio_net astray' virtio_net 2
ran back few back
for round in $(seq 20); do
	ppm=500
	[ $((round % 2)) = 1 ] || ppm=-500
	# A frequency of 65536 is 1 ppm.
	ssh guest2.lab adjtimex -q -f $((ppm * 65536)) || exit 1
	ran "slewed $round" short igb
done
# shellcheck source=tests/rig/guest_clocks.sh
. "${0%/*}/guest_clocks.sh"
inside after
echo @@end
