#!/bin/sh
# Inside the rig: tries every setting of every NIC with the program itself, and prints what it says, to be compared outside.
# A line @@DRIVER WISH, then for each command a line @COMMAND STATUS and its JSON.
say() { echo "@$1 $2"; cat /tmp/out; [ -s /tmp/out ] || cat /tmp/err; }

try() { # driver, label, words for the plan...
	echo "@@$1 $2"
	shift 2
	rxpath tune plan --json "$@" -o /tmp/plan.toml >/tmp/out 2>/tmp/err
	say plan $?
	grep -q '^\[\[step\]\]' /tmp/plan.toml || return
	for command in "apply /tmp/plan.toml" verify undo; do
		# shellcheck disable=SC2086
		rxpath tune $command --json >/tmp/out 2>/tmp/err
		say "${command%% *}" $?
	done
	rxpath tune plan --json "$@" >/tmp/out 2>/tmp/err
	say again $?
}

irq_of() {
	for dir in "/sys/class/net/$1/device/msi_irqs" "/sys/class/net/$1/device/../msi_irqs"; do
		[ -d "$dir" ] && ls "$dir" | sort -n | head -n 2 | tail -n 1 && return
	done
	cat "/sys/class/net/$1/device/irq"
}

key() { # of so many bytes
	n=0
	while [ $n -lt "$1" ]; do
		[ $n -eq 0 ] || printf :
		printf '%02x' $((n * 7 % 256))
		n=$((n + 1))
	done
}

wishes="coalesce/rx-usecs=50 coalesce/rx-usecs=8000 coalesce/tx-usecs=60 coalesce/adaptive-rx=on coalesce/rx-frames=16
coalesce/queue-0/rx-usecs=40
rings/rx=512 rings/rx=100 rings/rx=999999 rings/tx=512
channels/combined=2 channels/combined=3 channels/combined=0
rss/indir=equal:2 rss/indir=weights:3:1 rss/indir=default flow-hash/udp4=sdfn flow-hash/udp4=sd
rss/input-xfrm=symmetric-xor
features/rx-gro=off features/tx-generic-segmentation=off features/tx-tcp-segmentation=off
features/tx-scatter-gather=off features/tx-checksum-ip-generic=off features/rx-checksum=off features/rx-hashing=off
features/rx-hashing=on features/rx-vlan-hw-parse=off features/rx-lro=off features/rx-lro=on features/rx-gro-hw=off
features/rx-ntuple-filter=on
pause/rx=off pause/tx=off pause/autoneg=off priv-flags/legacy-rx=on eee/enabled=off
link-modes/100baseT/Full=off link-modes/speed=100 fec/rs=on time-stamps/rx-filter=all time-stamps/tx-type=on
link/mtu=1400 link/mtu=9000
napi_defer_hard_irqs=2 gro_flush_timeout=20000 threaded=1
queues/rx-0/rps_cpus=1 queues/rx-0/rps_flow_cnt=1024 queues/tx-0/xps_cpus=1 napi-0/irq-suspend-timeout=20000"

for path in /sys/class/net/*/device/driver; do
	dev=${path#/sys/class/net/}
	dev=${dev%%/*}
	driver=$(basename "$(readlink "$path")")
	for wish in $wishes; do try "$driver" "$wish" --set "$dev/$wish"; done
	try "$driver" "rss/key" --set "$dev/rss/key=$(key 40)"
	try "$driver" "pause by hand" --set "$dev/pause/autoneg=off" --set "$dev/pause/rx=off"
	try "$driver" "link by hand" --set "$dev/link-modes/autoneg=off" --set "$dev/link-modes/speed=100" \
		--set "$dev/link-modes/duplex=full"
	try "$driver" "irq" --set "irq/$(irq_of "$dev")=1"
	# What a change of channels takes along comes back with it: table, masks, affinities.
	echo 3 >"/sys/class/net/$dev/queues/rx-0/rps_cpus"
	[ ! -e "/sys/class/net/$dev/queues/rx-1" ] || echo 1 >"/sys/class/net/$dev/queues/rx-1/rps_cpus"
	masks() { cat /sys/class/net/"$dev"/queues/*/rps_cpus /sys/class/net/"$dev"/queues/*/xps_cpus 2>/dev/null | tr '\n' ' '; }
	before=$(masks)
	try "$driver" "together" --set "$dev/rss/indir=equal:1" --set "$dev/channels/combined=1" --set "$dev/rings/rx=512" \
		--set "$dev/coalesce/rx-usecs=20" --set "$dev/threaded=1"
	[ "$before" = "$(masks)" ] && echo "@masks 0" || echo "@masks 1 was $before is $(masks)"
done
# What the rules want of all of them at once.
for goal in latency throughput; do try host "$goal" --goal "$goal"; done
