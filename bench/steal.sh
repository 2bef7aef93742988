#!/bin/sh
# Stolen time by the probe against a loop's own gaps, in the same run, at five rates and with nothing sent; and the share of
# its time that the victim had by its own work and by the probe.
#
# A lab of two namespaces; the receiving device steers with RPS to the victim's CPU, so that each packet interrupts it.
# Truth is the built-in victim: a loop that adds up the gaps in its own time and counts the work that it did.
# Tolerance: total stolen time within 5 % from 50,000 packets a second up, where interrupts are frequent enough for the
# calibration to average; within 10 ms a second below; the victim's share of own work within 3 percentage points of
# its work count.
# Exit 1: out of tolerance. Exit 4: something else took a fifth of the victim's CPU, the machine is too busy to tell.
set -eu
rxpath=${1:-target/release/rxpath}
victim=${VICTIM_CPU:-1}
sender=${SENDER_CPU:-0}
id=rxpb$$

ip netns add $id-tx
trap 'ip netns del $id-tx 2>/dev/null; ip netns del $id-rx 2>/dev/null; rm -f "$out"' EXIT
trap 'exit 130' INT TERM # the shell would end without the other trap
ip netns add $id-rx
out=$(mktemp)
ip -n $id-tx link add veth type veth peer name veth netns $id-rx
ip -n $id-tx addr add 10.93.0.1/24 dev veth
ip -n $id-rx addr add 10.93.0.2/24 dev veth
ip -n $id-tx link set veth up
ip -n $id-rx link set veth up
# Nobody listens: packets end in NO_SOCKET and no ICMP goes back.
ip netns exec $id-rx sh -c "sysctl -qw net.ipv4.icmp_ratelimit=100000; printf %x \$((1 << $victim)) >/sys/class/net/veth/queues/rx-0/rps_cpus"

value() { sed -n "/\"victim\": {/,\$s/^ *\"$1\": \([0-9.e-]*\).*/\1/p" "$out" | head -n 1; }
status=0
echo '   kpps  truth s/s  measured  +estimate   error   share by work  by probe'
for kpps in ${KPPS:-0 20 50 100 200 300}; do
	load=
	if [ $kpps -gt 0 ]; then
		ip netns exec $id-tx "$rxpath" load udp 10.93.0.2:9 --rate ${kpps}k --cpu "$sender" -d 12s >/dev/null 2>&1 &
		load=$!
	fi
	"$rxpath" steal --probe --cpu "$victim" -d 3s --json >"$out" 2>/dev/null
	[ -z "$load" ] || { kill -INT $load 2>/dev/null || true; wait $load || true; }
	awk -v kpps=$kpps -v asked="$(value asked_s)" -v gaps="$(value gaps_s)" -v work="$(value got_by_work_s)" \
		-v on="$(value on_cpu_s)" -v own="$(value own_s)" -v hard="$(value hardirq_s)" -v rx="$(value net_rx_s)" \
		-v tx="$(value net_tx_s)" -v other="$(value other_softirq_s)" -v mixed="$(value mixed_softirq_s)" \
		-v irq="$(value irq_entry_estimated_s)" -v hyp="$(value hypervisor_steal_s)" 'BEGIN {
		off = asked > on ? asked - on : 0
		truth = gaps - off; spans = hard + rx + tx + other + mixed; all = spans + irq + hyp
		error = truth > 0 ? all / truth - 1 : 0
		byWork = work / on; byProbe = own / on
		ok = (kpps >= 50 ? error <= 0.05 && error >= -0.05 : all - truth <= 0.01 * asked && truth - all <= 0.01 * asked) \
			&& byProbe - byWork <= 0.03 && byWork - byProbe <= 0.03
		busy = off > asked / 5
		printf "%7d %10.4f %9.4f %10.4f %+7.1f %% %14.3f %9.3f  %s\n", kpps, truth / asked, spans / asked, all / asked,
			100 * error, byWork, byProbe, busy ? "too busy to tell" : ok ? "right" : "WRONG"
		exit busy ? 4 : !ok }' || { now=$?; [ $now -gt $status ] && status=$now; }
done
exit $status
