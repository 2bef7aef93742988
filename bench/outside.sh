#!/bin/sh
# The CPU time per request that a load generator spends outside the kernel, and its system calls: wrk and `rxpath load
# http` with both engines, 100 connections to one nginx, interleaved. All use the same method: perf's cpu-clock samples
# the program at 19,997 Hz with its own timer, not the scheduler's tick. The share of samples outside the kernel is the
# share of CPU time there. System calls are counted by their tracepoint in a separate run.
# Usage: bench/outside.sh [RXPATH [ROUNDS]]. Needs root, two otherwise idle CPUs, nginx, wrk and perf.
set -eu
rxpath=${1:-target/release/rxpath}
judge=$(dirname "$rxpath")/examples/judge
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
trap 'kill $server || true; rm -rf "$dir"' EXIT
trap 'exit 130' HUP INT TERM # the shell would end without the other trap
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

# One row per program and quantity: the median, and the ratio to wrk's with its interval over the rounds.
row() { # program, words, unit, expression over a round's fields
	awk -v hz=$hz -v who="$1" "{ value[\$2, \$1] = $4; if (\$1 > n) n = \$1 }
		END { for (i = 1; i <= n; i++) print value[who, i], value[who, i] / value[\"wrk\", i] }" "$dir/all" >"$dir/row"
	middle=$(cut -d ' ' -f 1 "$dir/row" | sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }')
	said="the base"
	[ "$1" = wrk ] || said="$(cut -d ' ' -f 2 "$dir/row" | "$judge" --ratio nothing) of wrk"
	printf '%-6s %-28s %8.3f %s per request, %s\n' "$1" "$2" "$middle" "$3" "$said"
}
for who in wrk epoll uring; do
	row $who "CPU time" us '$3 / hz / $5 * 1e6'
	row $who "of it outside the kernel" us '$4 / hz / $5 * 1e6'
	row $who "system calls" calls '$6 / $7'
done
