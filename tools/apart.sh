#!/bin/sh
# Runs a program in network, mount and PID namespaces of its own, with loopback up and an empty /run. However it, or this script,
# ends: its processes, mounts and sockets end too, and so does what is in /run.
# Usage: tools/apart.sh WORDS...    (root)
set -eu
[ $# -gt 0 ] || { echo 'usage: tools/apart.sh WORDS...' >&2; exit 2; }
# A killed `unshare --kill-child` ends its PID namespace. It is killed with this script.
# shellcheck disable=SC2016  # the inner shell expands it
setpriv --pdeathsig KILL unshare --net --mount --pid --fork --kill-child --mount-proc sh -euc '
	mount -t tmpfs -o mode=755 tmpfs /run
	ip link set lo up
	exec "$@"' sh "$@" &
apart=$!
end() {
	# The first process of the namespace is the child of unshare. When unshare sees its end, all others have ended.
	first=$(cat "/proc/$apart/task/$apart/children" 2>/dev/null) || true
	# shellcheck disable=SC2086  # one pid with a space after it
	kill -KILL ${first:-$apart} 2>/dev/null || true
	wait "$apart" 2>/dev/null || true
}
trap end EXIT
trap 'exit 130' HUP INT # the shell would end without the other trap
trap 'exit 143' TERM
status=0
wait "$apart" || status=$?
trap - EXIT
exit $status
