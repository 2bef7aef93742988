#!/bin/sh
# Which kernel names in the texts of `explain` and in docs/ does a kernel source tree not have?
#
#     tools/kernel-names.sh LINUX
#
# Checked are: functions in the `function` fields of the TOML files, in the file in brackets behind them if there is one;
# the drop reasons; and in these files and in docs/ each `name()`, each source file and each tracepoint (skb:kfree_skb).
# A name with "since Linux 6.18" or "before Linux 6.9" behind it is not asked for: the tree may be older or newer.
# Prints what is missing; exit 1 if anything is, 2 if LINUX is no kernel source.
set -eu
if [ $# != 1 ] || [ ! -f "$1/net/core/dev.c" ]; then
	echo "usage: tools/kernel-names.sh LINUX, a kernel source tree" >&2
	exit 2
fi
linux=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
texts=crates/rxpath/src/cmd/explain
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' HUP INT TERM # the shell would end without the other trap

pages() { find docs -name '*.md' -exec cat {} + ; cat README.md "$texts"/*.toml; }

# Lines "NAME FILE"; FILE is - if the text names none. "a, b (net/x.c), c (net/y.c)": a name has the next file.
sed -n -E 's/^(function|[A-Z_]+) = "(.*)"$/\2/p' "$texts/counters.toml" "$texts/reasons.toml" | awk '
	function flush(file, i) { for (i = 1; i <= n; i++) print names[i], file; n = 0 }
	/^\/|^ip / { next }  # where to read, not a function
	{
		n = 0
		words = split($0, word, /[ ,;]+/)
		for (w = 1; w <= words; w++) {
			if (word[w] ~ /^\(.*\.[ch]\)$/) flush(substr(word[w], 2, length(word[w]) - 2))
			else if (word[w + 1] ~ /^\(?(since|before)$/) continue
			else if (word[w] ~ /^[a-z0-9_]*[a-z0-9]_[a-z0-9_]+$/) names[++n] = word[w]
		}
		flush("-")
	}' >"$work/named"
pages | grep -oE '\b[a-z_][a-z0-9_]*_[a-z0-9_]+\(\)' | sed 's/()$/ -/' >>"$work/named" || true
sort -u "$work/named" -o "$work/named"

# Definitions and declarations begin in the first column; members of structures, (*name), do not.
sed 's/ .*//' "$work/named" | sort -u >"$work/names"
(cd "$linux" && grep -rwF --include='*.[ch]' -f "$work/names" net kernel include security drivers/net) >"$work/lines"

missing() { echo "missing: $*"; : >"$work/missing"; }

while read -r name file; do
	place=$file
	[ "$file" != - ] || place='[^:]*'
	grep -qE "^$place:([a-z#].*[ *])?$name\(|^$place:[[:space:]].*\(\*[[:space:]]*$name\)" "$work/lines" ||
		missing "$name$([ "$file" = - ] || echo " in $file")"
done <"$work/named"

sed -n 's/^name = "\(.*\)"/\1/p' "$texts/reasons.toml" >"$work/reasons"
while read -r reason; do
	grep -qE "FN\($reason\)|SKB_DROP_REASON_$reason\b" "$linux/include/net/dropreason-core.h" ||
		missing "SKB_DROP_REASON_$reason in include/net/dropreason-core.h"
done <"$work/reasons"

pages | grep -oE '\b(net|kernel|include|drivers|security|block|mm)/[A-Za-z0-9_/-]+\.[ch]\b' | sort -u >"$work/files" || true
while read -r file; do
	[ -f "$linux/$file" ] || missing "$file"
done <"$work/files"

pages | grep -oE '\b(skb|net|napi|irq|sock|udp|tcp|xdp|sched|fib|qdisc|workqueue|timer|power):[a-z][a-z0-9_]+' |
	sort -u >"$work/events" || true
while read -r event; do
	headers=$(grep -lE "^#define TRACE_SYSTEM ${event%%:*}\$" "$linux"/include/trace/events/*.h || true)
	# shellcheck disable=SC2086  # a list of files
	if [ -z "$headers" ] || ! grep -qw "${event#*:}" $headers; then
		missing "tracepoint $event"
	fi
done <"$work/events"

echo "checked: $(wc -l <"$work/named") functions, $(wc -l <"$work/reasons") drop reasons," \
	"$(wc -l <"$work/files") files, $(wc -l <"$work/events") tracepoints"
[ ! -e "$work/missing" ]
