# What the benchmarks of `rxpath export` share; they read it. Two namespaces, an exporter in the one that receives, its page.
# shellcheck shell=sh
# shellcheck disable=SC2034,SC2154  # variables of those who read this, and for them
id=rxpe$$
work=$(mktemp -d)
exporter=
serve=
load=
others=

stop() { # pid
	[ -z "$1" ] || { kill -TERM "$1" 2>/dev/null || true; wait "$1" 2>/dev/null || true; }
}
end() {
	for pid in $load $serve $others $exporter; do stop "$pid"; done
	ip netns del $id-tx 2>/dev/null || true
	ip netns del $id-rx 2>/dev/null || true
	rm -rf "$work"
}
trap end EXIT
trap 'exit 130' HUP INT TERM # the shell would end without the other trap

# pair: 10.77.9.1 in tx, 10.77.9.2 in rx.
pair() {
	ip netns add $id-tx
	ip netns add $id-rx
	ip -n $id-tx link add veth type veth peer name veth netns $id-rx
	ip -n $id-tx addr add 10.77.9.1/24 dev veth
	ip -n $id-rx addr add 10.77.9.2/24 dev veth
	for side in tx rx; do ip -n $id-$side link set veth up; done
}

page() { curl -sf --unix-socket "$work/socket" http://h/metrics >"$work/page"; }

# metric SERIES: its value on the page, or 0.
metric() {
	awk -v name="$1" 'index($0, name " ") == 1 { print $NF; found = 1 } END { if (!found) print 0 }' "$work/page"
}
# sum PREFIX [WORD]: of all series that begin so and have the word.
sum() {
	awk -v name="$1" -v word="${2:-}" 'index($0, name) == 1 && index($0, word) { sum += $NF } END { print sum + 0 }' "$work/page"
}
# Until a window ends that did not end before.
next_window() {
	until page; do
		kill -0 "$exporter" || exit 3
		sleep 0.1 # no window has ended yet
	done
	last=$(metric rxpath_window_seconds_total)
	while [ "$(metric rxpath_window_seconds_total)" = "$last" ]; do
		sleep 0.05 # between two looks at the page
		page
	done
}
# export_start OPTIONS...: returns after the first window.
export_start() {
	"$rxpath" export --netns $id-rx --listen unix:"$work/socket" --check-every 0s "$@" 2>"$work/said" &
	exporter=$!
	until page 2>/dev/null; do
		kill -0 $exporter 2>/dev/null || { cat "$work/said" >&2; exit 3; }
		sleep 0.1 # between two looks for the page
	done
	[ "$(metric rxpath_probe_up)" = 1 ] || { echo "bench: no BPF probes: $(cat "$work/said")" >&2; exit 3; }
}
