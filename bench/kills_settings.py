"""Prints what can be set in the network namespace of a host, as text: two prints of the same settings are equal."""

import glob
import os
import re
import subprocess

# Counts of what is there, which no setting changes.
COUNTS = {"nf_conntrack_count"}
QUEUES = "rps_cpus", "rps_flow_cnt", "xps_cpus", "xps_rxqs", "tx_maxrate", "byte_queue_limits/limit_min", "byte_queue_limits/limit_max"
DEVICE = "mtu", "flags", "tx_queue_len", "gro_flush_timeout", "napi_defer_hard_irqs", "threaded", "address", "ifalias"
files = [os.path.join(at, name) for at, _, names in os.walk("/proc/sys/net") for name in names if name not in COUNTS]
for device in glob.glob("/sys/class/net/*"):
    files += [f"{device}/{name}" for name in DEVICE]
    files += [f"{queue}/{name}" for queue in glob.glob(f"{device}/queues/*") for name in QUEUES]
for name in sorted(files):
    try:
        with open(name) as file:
            print(f"{name} = {file.read()!r}")
    except OSError as error:
        print(f"{name}: {error.strerror}")
for device in sorted(os.listdir("/sys/class/net")):
    for option in "-k", "-c", "-g", "-l":
        said = subprocess.run(["ethtool", option, device], capture_output=True, text=True)
        print(f"ethtool {option} {device}: {said.stdout}{said.stderr}")
said = subprocess.run(["tc", "qdisc", "show"], capture_output=True, text=True)
print("tc qdisc: " + re.sub(r" refcnt \d+", "", said.stdout + said.stderr))
