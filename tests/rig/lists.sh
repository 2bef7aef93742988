#!/bin/sh
# Sends bursts over a wire from an e1000e in a namespace of its own to the NIC of driver $1, and prints what its reader
# received and what a trace saw of it.
unshare -n sleep 1000 & peer=$!
sleep 1
named() { for at in /sys/class/net/*/device/driver; do case $(readlink $at) in */$1) at=${at#/sys/class/net/}; echo ${at%%/*};; esac; done; }
tx=$(named e1000e); rx=$(named $1)
ip link set $tx netns $peer
in_peer() { nsenter -t $peer -n "$@"; }
ip addr add 10.9.0.2/24 dev $rx
in_peer ip addr add 10.9.0.1/24 dev $tx
in_peer ip link set $tx up
# Polled by a timer: packets of 5 ms come in one poll, however slowly this machine runs.
echo 1000 >/sys/class/net/$rx/napi_defer_hard_irqs
echo 5000000 >/sys/class/net/$rx/gro_flush_timeout
tries=0; until in_peer ping -q -c 1 -W 1 10.9.0.2 >/dev/null || [ $tries -ge 60 ]; do tries=$((tries + 1)); done
rxpath trace -d 600s --every-packet --port 4736 --json >/tmp/trace 2>/tmp/trace.err & trace=$!
until grep -q tracing /tmp/trace.err; do usleep 10000; done
rxpath serve udp 10.9.0.2:4736 --rcvbuf 16M --idle-exit 5s --json >/tmp/serve 2>/tmp/serve.err & serve=$!
sleep 2
in_peer rxpath load udp 10.9.0.2:4736 -d 3s --flood --json >/tmp/load || cat /tmp/load
wait $serve
kill -INT $trace
wait $trace
echo @@serve; cat /tmp/serve; echo @@trace; cat /tmp/trace
