#!/bin/sh
# How long a scrape of `rxpath export` takes, while 1,000 connections say nothing.
# Goals: p99 below 10 ms; no thread more, and resident memory less than 1 MB more than before; every scrape gets the page.
# Usage: bench/export-scrape.sh [RXPATH [SCRAPES]]. Exit 1: a goal is missed.
set -eu
rxpath=${1:-target/release/rxpath}
scrapes=${2:-1000}
# shellcheck source=bench/export-common.sh
. "$(dirname "$0")/export-common.sh"
pair
export_start --interval 1s
next_window
python3 - "$work/socket" "$exporter" "$scrapes" <<'PYTHON'
import resource
import socket
import sys
import time

path, pid, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def status():
    with open(f"/proc/{pid}/status") as file:
        rows = dict(line.split(":", 1) for line in file)
    return int(rows["VmRSS"].split()[0]) * 1024, int(rows["Threads"])


def connect():
    one = socket.socket(socket.AF_UNIX)
    one.settimeout(30)
    one.connect(path)
    return one


def scrape():
    began = time.monotonic()
    with connect() as one:
        one.sendall(b"GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n")
        page = b""
        while part := one.recv(1 << 16):
            page += part
    assert page.startswith(b"HTTP/1.1 200 ") and b"\nrxpath_build_info" in page, page[:80]
    return time.monotonic() - began


for _ in range(100):
    scrape()
before = status()
silent = [connect() for _ in range(1000)]
took = sorted(scrape() for _ in range(count))
after = status()
p50, p99 = took[count // 2], took[count * 99 // 100]
print(f"{count} scrapes: p50 {p50 * 1e3:.2f} ms, p99 {p99 * 1e3:.2f} ms, longest {took[-1] * 1e3:.2f} ms")
print(f"resident memory {before[0] / 1e6:.1f} to {after[0] / 1e6:.1f} MB, threads {before[1]} to {after[1]}")
good = p99 < 0.010 and after[1] <= before[1] and after[0] - before[0] < 1_000_000
sys.exit(0 if good else 1)
PYTHON
kill -0 $exporter
