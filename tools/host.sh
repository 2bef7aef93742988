#!/bin/sh
# What a host on this machine has of its own next to the namespaces that `unshare` made for it; then its words are run. The
# hosts of tools/hosts-common.sh and of the tests over ssh start by this file. HOST_NAME: its name, if it has a UTS namespace.
# Usage: unshare --mount [OTHER NAMESPACES] sh tools/host.sh COMMAND...
set -e
# What rxpath keeps to undo; in /run its locks and records.
mkdir -p /var/lib/rxpath
mount -t tmpfs tmpfs /var/lib/rxpath
mount -t tmpfs tmpfs /run
mkdir /run/sshd
[ -z "$HOST_NAME" ] || echo "$HOST_NAME" >/proc/sys/kernel/hostname
# The first process of a PID namespace sees only its own processes, and keeps its own temporary files.
if [ $$ = 1 ]; then
	mount -t proc proc /proc
	mount -t tmpfs tmpfs /tmp
fi
exec "$@"
