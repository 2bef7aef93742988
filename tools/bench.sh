#!/bin/sh
# Speed against real peers, interleaved in one run of the lab. Exit 4 on a machine too noisy to tell.
# Usage: tools/bench.sh [--keep-noisy] [--set key=value ...]
set -eu
cd "$(dirname "$0")/.."
for peer in iperf3 trafgen; do
	command -v "$peer" >/dev/null || { echo "bench: peer $peer is missing: tools/setup.sh bench installs it" >&2; exit 3; }
done
echo "peers: $(iperf3 --version | head -n 1), $(trafgen --version 2>/dev/null | head -n 1)"
exec target/release/rxpath run bench/udp.toml "$@"
