#!/bin/sh
# The CPU time per request that a load generator spends outside the kernel, and its system calls: wrk and `rxpath load
# http` with both engines, 100 connections to one nginx, interleaved. All use the same method: perf's cpu-clock samples
# the program at 19,997 Hz with its own timer, not the scheduler's tick. The share of samples outside the kernel is the
# share of CPU time there. System calls are counted by their tracepoint in a separate run.
# Usage: bench/outside.sh [RXPATH [ROUNDS]]. Needs root, two otherwise idle CPUs, nginx, wrk and perf.
set -eu
rxpath=${1:-target/release/rxpath}
rounds=${2:-5}
hz=19997
seconds=3
url=http://127.0.0.1:8098/

dir=$(mktemp -d)
cat >"$dir/nginx.conf" <<C
daemon off; master_process off; worker_processes 1; pid $dir/nginx.pid; error_log stderr crit;
events { worker_connections 2048; }
http { access_log off; keepalive_requests 100000000; server { listen 127.0.0.1:8098; location / { return 200 "0123456789"; } } }
C
taskset -c 1 nginx -p "$dir" -c "$dir/nginx.conf" 2>/dev/null &
server=$!
trap 'kill $server; rm -rf "$dir"' EXIT
until ss -Hltn sport = :8098 | grep -q LISTEN; do sleep 0.05; done

command() {
	case $1 in
	wrk) echo taskset -c 0 wrk -t 1 -c 100 -d $seconds $url ;;
	*) echo "$rxpath" load http $url -c 100 --cpu 0 -d ${seconds}s --engine "$1" --json ;;
	esac
}
requests() {
	case $1 in
	wrk) awk '/ requests in / { print $1 }' "$2" ;;
	*) sed -n 's/.*"requests_total": \([0-9]*\).*/\1/p' "$2" | head -n 1 ;;
	esac
}

for round in $(seq "$rounds"); do
	for who in wrk epoll uring; do
		# shellcheck disable=SC2046  # words of a command
		perf record -q -F $hz -e cpu-clock -o "$dir/perf" -- $(command "$who") >"$dir/out" 2>/dev/null
		stops=$(perf script -i "$dir/perf" -F ip 2>/dev/null | awk '$1 !~ /^ffff/ { outside++ } END { print NR, outside + 0 }')
		sampled=$(requests $who "$dir/out")
		# shellcheck disable=SC2046  # words of a command
		perf stat -x , -o "$dir/stat" -e raw_syscalls:sys_enter -- $(command "$who") >"$dir/out" 2>/dev/null
		calls=$(awk -F , '/sys_enter/ { print $1 }' "$dir/stat")
		echo "$round $who $stops $sampled $calls $(requests $who "$dir/out")"
	done
done >"$dir/all"

awk -v hz=$hz '
	function median(list, n,   i, j, t) {
		for (i = 2; i <= n; i++) { t = list[i]; for (j = i - 1; j > 0 && list[j] > t; j--) list[j + 1] = list[j]; list[j + 1] = t }
		return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
	}
	{
		all[$2, $1] = $3 / hz / $5 * 1e6; outside[$2, $1] = $4 / hz / $5 * 1e6; calls[$2, $1] = $6 / $7
		if ($1 > n) n = $1
	}
	function row(who, of, name, unit,   i, a, r, low, high) {
		low = 1e9; high = 0
		for (i = 1; i <= n; i++) {
			a[i] = of[who, i]; r[i] = of[who, i] / of["wrk", i]
			if (r[i] < low) low = r[i]; if (r[i] > high) high = r[i]
		}
		printf "%-6s %-28s %6.3f %s per request, %.2f of wrk (range %.2f to %.2f)\n", who, name, median(a, n), unit, median(r, n), low, high
	}
	END {
		split("wrk epoll uring", names, " ")
		for (w = 1; w <= 3; w++) {
			row(names[w], all, "CPU time", "us"); row(names[w], outside, "of it outside the kernel", "us"); row(names[w], calls, "system calls", "  ")
		}
	}' "$dir/all"
