#!/bin/sh
# Speed against real peers, interleaved in one run of the lab each. Exit 1: a goal was missed. Exit 4: the machine is too noisy to tell.
# Usage: tools/bench.sh [udp|frames|http|stall|outside|tcp|check|steal|observe|watch|selftest|model ...] [-- options of rxpath run]
set -eu
cd "$(dirname "$0")/.."

which=
while [ $# -gt 0 ] && [ "$1" != -- ]; do
	which="$which $1"
	shift
done
[ $# -eq 0 ] || shift
: "${which:=udp frames http stall outside tcp check steal observe watch selftest model}"

# The simulator has no peers.
[ "$which" != " model" ] || exec bench/model.sh

for peer in iperf3 trafgen nginx wrk oha sockperf perf bpftrace; do
	command -v "$peer" >/dev/null || { echo "bench: peer $peer is missing: tools/setup.sh bench installs it" >&2; exit 3; }
done
echo "peers: $(iperf3 --version | head -n 1), $(trafgen --version 2>/dev/null | head -n 1)," \
	"$(nginx -v 2>&1), $(wrk --version 2>&1 | head -n 1), $(oha --version), $(sockperf --version 2>&1 | head -n 1)"

# shellcheck source=tools/bench-rows.sh
. tools/bench-rows.sh
for bench in $which; do
	if [ -x "bench/$bench.sh" ]; then
		echo "== bench/$bench.sh"
		"bench/$bench.sh" || worst $?
		continue
	fi
	echo "== bench/$bench.toml"
	# Each runs to its end.
	target/release/rxpath run "bench/$bench.toml" "$@" || worst $?
done
exit "$status"
