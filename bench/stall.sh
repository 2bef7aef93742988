#!/bin/sh
# The open loop against a server that stalls for 100 ms in every second, at 20,000 requests/s.
# A request due x ms into the stall waits 100 - x ms for its end, and then less than x ms for the requests before it.
# One in 1000 requests is due in the first ms, one in 100 in the first 10 ms. So p99.9 is 99 to 100 ms and p99 is 90 to
# 98 ms, from the first second on. In a closed loop only 100 requests wait, and p99 does not show the stall.
# Exit 1: the percentiles differ. Needs two otherwise idle CPUs.
set -eu
rxpath=${1:-target/release/rxpath}
addr=127.0.0.1:8099

"$rxpath" serve http $addr --cpu 1 >/dev/null &
server=$!
stalls=
out=$(mktemp)
trap 'rm -f "$out"; kill $stalls 2>/dev/null || true; kill -CONT $server; kill $server' EXIT
trap 'exit 130' HUP INT TERM # the shell would end without the other trap
until ss -Hltn sport = :8099 | grep -q LISTEN; do sleep 0.05; done

# Stalls begin 1 s apart by the clock, however long a stall takes.
(while :; do
	sleep "$(date +%N | sed 's/^0*//' | awk '{ printf "%.6f", (1e9 - $1) / 1e9 }')"
	kill -STOP $server; sleep 0.1; kill -CONT $server
done) &
stalls=$!

value() { sed -n "/\"$2\": {/,/}/s/.*\"$3\": \([0-9.]*\).*/\1/p" "$1" | head -n 1; }
status=0
for seconds in 2 10; do
	"$rxpath" load http http://$addr/ -c 100 --cpu 0 --rate 20k -d ${seconds}s --json >"$out"
	awk -v s=$seconds -v p99="$(value "$out" response_time_us p99)" -v p999="$(value "$out" response_time_us p999)" \
		-v service="$(value "$out" service_time_us p99)" \
		-v rps="$(sed -n 's/.*"achieved_rps": \([0-9.]*\).*/\1/p' "$out")" 'BEGIN {
		# The delay of a server that does not stall adds to the stall.
		good = p99 >= 88e3 && p99 <= 98e3 + service && p999 >= 98e3 && p999 <= 103e3 + service
		printf "%2d s: %.0f requests/s, response p99 %.1f ms (90 to 98), p99.9 %.1f ms (99 to 100), service p99 %.1f ms: %s\n",
			s, rps, p99 / 1e3, p999 / 1e3, service / 1e3, good ? "right" : "WRONG"
		exit !good }' || status=1
done
exit $status
