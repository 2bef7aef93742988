#!/bin/sh
# The memory of `rxpath export` on a host with 3,000 threads, 500 control groups that come and go, and a socket that overflows: a
# loss is what deep looks are made at.
#
# The groups are in a hierarchy of version 2 that is mounted for this. In each a short process works for some milliseconds.
# Goals: resident memory below 24 MB, maps of the BPF programs below 16 MB, at most 600 series, and the highest resident memory
# of the second half less than 1 MB above that of the first.
# Usage: bench/export-memory.sh [RXPATH [SECONDS]]. Exit 1: a goal is missed.
set -eu
rxpath=${1:-target/release/rxpath}
seconds=${2:-600}
# shellcheck source=bench/export-common.sh
. "$(dirname "$0")/export-common.sh"
pair
export_start --interval 2s
# One datagram in ten is read: rxpath-agent has neither serve nor load.
cat >"$work/traffic.py" <<'PYTHON'
import socket
import sys
import time

address, udp = ("10.77.9.2", 4800), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
if sys.argv[1] == "read":
    udp.bind(address)
    while True:
        udp.recv(64)
        time.sleep(0.005)  # why: a slow reader
while True:
    for _ in range(20):
        udp.sendto(bytes(64), address)
    time.sleep(0.01)  # why: the pace of 2,000 datagrams a second
PYTHON
ip netns exec $id-rx python3 "$work/traffic.py" read &
serve=$!
sleep 1 # the reader has its socket
ip netns exec $id-tx python3 "$work/traffic.py" send &
load=$!
mkdir "$work/groups"
cat >"$work/churn.py" <<'PYTHON'
import os
import signal
import subprocess
import sys
import threading
import time

root, seconds = sys.argv[1], float(sys.argv[2])
# Groups are removed in any case.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
threading.stack_size(64 << 10)
end = time.monotonic() + seconds


def wake():
    while time.monotonic() < end:
        time.sleep(1)  # why: the thread lives and does nothing


for _ in range(3000):
    threading.Thread(target=wake, daemon=True).start()
number = 0
while time.monotonic() < end:
    groups = []
    try:
        for _ in range(500):
            number += 1
            group = f"{root}/rxp-bench-{os.getpid()}-{number}.service"
            os.mkdir(group)
            groups.append(group)
            join = f"echo $$ >{group}/cgroup.procs; i=0; while [ $i -lt 2000 ]; do i=$((i + 1)); done"
            subprocess.run(["sh", "-c", join], check=True)
    finally:
        for group in groups:
            os.rmdir(group)
print(f"{number} groups")
PYTHON
# A mount that nobody else sees. Longer than all is measured; it is ended before.
unshare --mount sh -c 'mount -t cgroup2 cgroup2 "$1" && exec python3 "$2" "$1" "$3"' sh \
	"$work/groups" "$work/churn.py" "$((seconds + 60))" >"$work/churn" 2>&1 &
others=$!
peak() { awk '/^VmHWM/ { print $2 * 1024 }' "/proc/$exporter/status"; }
sleep $((seconds / 2)) # the first half
first=$(peak)
sleep $((seconds - seconds / 2)) # the second half
kill -0 "$others" 2>/dev/null || { cat "$work/churn" >&2; exit 3; }
next_window
rss=$(metric 'rxpath_agent_memory_bytes{kind="rss"}')
maps=$(metric 'rxpath_agent_memory_bytes{kind="bpf_maps"}')
count=$(grep -vc '^#' "$work/page")
echo "deep looks: $(metric 'rxpath_agent_deep_looks_total{result="made"}')"
echo "$rss $maps $count $first $(peak)" | awk '{
	printf "resident memory %.1f MB (goal: below 24), highest %.1f MB after half the time and %.1f MB at the end\n", $1 / 1e6, $4 / 1e6, $5 / 1e6
	printf "maps %.1f MB (goal: below 16), %d series (goal: at most 600)\n", $2 / 1e6, $3
	exit !($1 < 24e6 && $2 < 16e6 && $3 <= 600 && $5 - $4 < 1e6)
}'
