#!/bin/sh
# Time and memory of `rxpath check --json` over a synthetic host of 8 NICs with 64 queues, compared with cat of the same
# files; of `rxpath check` on this host; and of `rxpath check --summarize` over 10,000 synthetic reports of 200
# findings. Goals: under 100 ms and 64 MB; under 300 ms; seconds. Exit 1: a goal is missed. Exit 4: too noisy to tell.
# Usage: bench/check.sh [RXPATH] [REPORTS]
set -eu
rxpath=${1:-target/release/rxpath}
judge=$(dirname "$rxpath")/examples/judge
status=0
reports=${2:-10000}
command -v /usr/bin/time >/dev/null || { echo "bench: /usr/bin/time is missing (Debian: time)" >&2; exit 3; }
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
trap 'exit 130' HUP INT TERM # the shell would end without the other trap
out=$made/times
host=$made/host
fleet=$made/fleet
cargo run -q --release -p rxpath-host --example made_up_host -- "$host" 8 64 64
cargo run -q --release -p rxpath-tune --example made_up_reports -- "$fleet" "$reports" 200
echo "host: $(find "$host" -type f | wc -l) files; fleet: $reports reports, $(du -sm "$fleet" | cut -f 1) MB"

measure() {
	name=$1
	shift
	/usr/bin/time -a -o "$out" -f "$name %e %M" "$@" >/dev/null
}
for _ in 0 1 2 3 4 5; do
	measure cat find "$host" -type f -exec cat {} +
	measure check "$rxpath" check --json --sysroot "$host"
	measure queues "$rxpath" check --queues --json --sysroot "$host"
	measure live "$rxpath" check --json
	measure catfleet find "$fleet" -type f -exec cat {} +
	measure summarize "$rxpath" check --summarize "$fleet" --json
done

# The first of each warms the page cache and is not counted.
awk -v reports="$reports" '
	{ n[$1]++ }
	n[$1] > 1 { s[$1] = s[$1] " " $2; if ($3 > rss[$1]) rss[$1] = $3 }
	function median(list,   v, c, i, j, t) {
		c = split(list, v, " ")
		for (i = 1; i <= c; i++) for (j = i + 1; j <= c; j++) if (v[j] < v[i]) { t = v[i]; v[i] = v[j]; v[j] = t }
		lo = v[1]; hi = v[c]
		return v[int((c + 1) / 2)]
	}
	function tell(k, base,   m) {
		m = median(s[k])
		printf "%-9s median %6.0f ms (%.0f to %.0f)", k, m * 1000, lo * 1000, hi * 1000
		if (base != "") printf ", %.1f times %s", m / median(s[base]), base
		printf ", at most %.1f MB\n", rss[k] / 1024
		return m
	}
	END {
		tell("cat", "")
		tell("check", "cat")
		tell("queues", "cat")
		tell("live", "")
		tell("catfleet", "")
		printf "summarize: %.0f reports/s\n", reports / tell("summarize", "catfleet")
		exit rss["check"] >= 64 * 1024
	}' "$out" || status=1
for goal in check:0.1 live:0.3 summarize:10; do
	now=0
	said=$(awk -v name="${goal%:*}" '$1 == name && ++n > 1 { print $2 }' "$out" | "$judge" at-most "${goal#*:}") || now=$?
	[ $now -gt $status ] && status=$now
	echo "${goal%:*}: $said s, goal: at most ${goal#*:}"
done
exit $status
