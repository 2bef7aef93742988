#!/bin/sh
# Time and memory of `rxpath check --json` over a captured host of 8 NICs with 64 queues, beside cat of the same files.
# Goals: under 100 ms and 64 MB. Exit 1: not reached. Usage: bench/check.sh [RXPATH] [TREE]; without a tree one is made.
set -eu
rxpath=${1:-target/release/rxpath}
dir=${2:-}
command -v /usr/bin/time >/dev/null || { echo "bench: /usr/bin/time is missing (Debian: time)" >&2; exit 3; }
out=$(mktemp)
made=
trap 'rm -rf "$out" $made' EXIT
if [ -z "$dir" ]; then
	made=$(mktemp -d)
	dir=$made/host
	cargo run -q --release -p rxpath-host --example made_up_host -- "$dir" 8 64 64
fi
files=$(find "$dir" -type f | wc -l)

measure() {
	name=$1
	shift
	/usr/bin/time -a -o "$out" -f "$name %e %M" "$@" >/dev/null
}
for _ in 0 1 2 3 4 5 6; do
	measure cat find "$dir" -type f -exec cat {} +
	measure check "$rxpath" check --json --sysroot "$dir"
	measure queues "$rxpath" check --queues --json --sysroot "$dir"
done

# The first of each warms the page cache and is not counted.
awk -v files="$files" '
	{ n[$1]++ }
	n[$1] > 1 { s[$1] = s[$1] " " $2; if ($3 > rss[$1]) rss[$1] = $3 }
	function median(list,   v, c, i, j, t) {
		c = split(list, v, " ")
		for (i = 1; i <= c; i++) for (j = i + 1; j <= c; j++) if (v[j] < v[i]) { t = v[i]; v[i] = v[j]; v[j] = t }
		lo = v[1]; hi = v[c]
		return v[int((c + 1) / 2)]
	}
	END {
		printf "%d files\n", files
		base = median(s["cat"])
		for (k in s) {
			m = median(s[k])
			printf "%-7s median %4.0f ms (%.0f to %.0f), %5.1f times cat, at most %.1f MB\n", \
				k, m * 1000, lo * 1000, hi * 1000, (base > 0 ? m / base : 0), rss[k] / 1024
		}
		exit median(s["check"]) >= 0.1 || rss["check"] >= 64 * 1024
	}' "$out"
