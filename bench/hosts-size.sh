#!/bin/sh
# The build that is sent to other hosts: how large it is, and whether it starts where nothing else is.
# Goals: at most 16 MB; `rxpath --version` runs in a root directory that holds this one file.
# Usage: bench/hosts-size.sh [RXPATH]    (root; the static build lies next to it: make static). Exit 1: a goal is missed.
set -eu
rxpath=${1:-target/release/rxpath}
static=$(dirname "$rxpath")/rxpath-$(uname -m)
[ -f "$static" ] || { echo "hosts-size: there is no $static: make static" >&2; exit 3; }
[ "$(id -u)" = 0 ] || { echo "hosts-size: root is needed for chroot" >&2; exit 3; }
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
trap 'exit 130' HUP INT TERM # the shell would end without the other trap
cp "$static" "$root/rxpath"
status=0
stat -c %s "$root/rxpath" | awk '{ printf "%.2f MB (goal: at most 16)\n", $1 / 1e6; exit !($1 <= 16e6) }' || status=1
if said=$(timeout 10 chroot "$root" /rxpath --version 2>&1); then
	echo "in an empty root: $(echo "$said" | head -n 1)"
else
	echo "in an empty root it does not start: $said"
	status=1
fi
exit $status
