#!/bin/sh
# How far apart 31 senders start, each on a host whose clock is hours apart from the others.
#
# The start of a sender is the receiving kernel's stamp of its first datagram in a trial: one clock, which rxpath does not use.
# The coordinator gives each sender one common instant, on the clock of the sender. Printed for each trial: the time from the first
# sender's start to the last one's, and the bound, which is that of the two senders whose clocks are known least
# (clock_error_ns in the run's manifest).
# Goal: in each trial all senders start within 1 ms plus the bound.
# Usage: bench/hosts-start.sh [RXPATH [HOSTS [TRIALS]]]    (root; a quiet machine; a minute). Exit 1: the goal is missed,
# or a sender did not start. Exit 4: a sender started more often than there were trials, as where a trial was repeated.
set -eu
rxpath=${1:-target/release/rxpath}
hosts=${2:-32}
trials=${3:-10}
# shellcheck source=tools/hosts-common.sh
. "$(dirname "$0")/../tools/hosts-common.sh"
hosts_many "$rxpath" "$hosts"
cat >"$hosts_dir/together.toml" <<END
question = "Do all senders start at one instant?"
[load]
rate = "$(((hosts - 1) * 100))"
size = 173
END
hosts_trials 200ms 200ms 500ms "$trials" >>"$hosts_dir/together.toml"
# Starts of each sender, which are its datagrams after a pause; written again while new ones come.
cat >"$hosts_dir/starts.py" <<'PYTHON'
import json
import os
import socket
import struct
import sys
import time

SO_TIMESTAMPNS = 35
# Longer than a trial's load, shorter than the time between two trials.
PAUSE_NS = 1_500_000_000
capture = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
capture.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
capture.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
capture.setblocking(False)
capture.bind(("data", 0x0800))
last, starts, is_new = {}, {}, False
while True:
    try:
        packet, ancillary, _, _ = capture.recvmsg(64, 64)
    except BlockingIOError:
        if is_new:
            with open(sys.argv[1] + ".new", "w") as out:
                json.dump(starts, out)
            os.rename(sys.argv[1] + ".new", sys.argv[1])
            is_new = False
        # The kernel stamps: a reader that wakes for each packet would take CPU time from the senders' starts.
        time.sleep(0.05)
        continue
    # UDP to the port of the scenario, of its size with a header of 8 bytes: probes of the path have other sizes.
    at = (packet[0] & 15) * 4
    if packet[9] != 17 or struct.unpack("!HH", packet[at + 2:at + 6]) != (4321, 181):
        continue
    sender = socket.inet_ntoa(packet[12:16])
    seconds, rest = struct.unpack("qq", ancillary[0][2])
    now = seconds * 10**9 + rest
    if now - last.get(sender, 0) > PAUSE_NS:
        starts.setdefault(sender, []).append(now)
        is_new = True
    last[sender] = now
PYTHON
echo '{}' >"$hosts_dir/starts"
ip netns exec "$hosts_id-sut" python3 "$hosts_dir/starts.py" "$hosts_dir/starts" &
capture=$!
hosts_daemons="$hosts_daemons $capture"
until ip netns exec "$hosts_id-sut" awk 'END { exit NR < 2 }' /proc/net/packet; do
	kill -0 $capture || exit 3
	sleep 0.05 # until the capture is open
done
hosts_limit=300
hosts_run "$hosts_dir/together.toml"
python3 - "$hosts_dir"/runs/*/manifest.json "$hosts_dir/starts" "$((hosts - 1))" <<'PYTHON'
import json
import sys

manifest, starts, senders = json.load(open(sys.argv[1])), json.load(open(sys.argv[2])), int(sys.argv[3])
trials = len(manifest["trials"])
errors = sorted(host["clock_error_ns"] for host in manifest["hosts"].values() if host["side"] == "tx")
bound = sum(errors[-2:]) / 1e6
if len(starts) != senders or any(len(instants) < trials for instants in starts.values()):
    print(f"{len(starts)} of {senders} senders were seen; not each started in all of {trials} trials", *starts.items(), sep="\n   ")
    sys.exit(1)
if any(len(instants) > trials for instants in starts.values()):
    print(f"senders started more than {trials} times", *starts.items(), sep="\n   ")
    sys.exit(4)
spreads = [(max(at) - min(at)) / 1e6 for at in zip(*starts.values())]
print(f"{senders} senders, {trials} trials; from the first start to the last, in ms: " + ", ".join(f"{one:.3f}" for one in spreads))
print(f"longest {max(spreads):.3f} ms, bound of two clocks {bound:.3f} ms (goal: at most {1 + bound:.3f} ms)")
sys.exit(max(spreads) > 1 + bound)
PYTHON
