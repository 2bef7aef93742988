#!/bin/sh
# What a host on this machine has of its own next to the namespaces that `unshare` made for it; then its words are run. The
# hosts of tools/hosts-common.sh and of the tests over ssh start by this file.
# Usage: unshare --mount [OTHER NAMESPACES] sh tools/host.sh COMMAND...
set -e
# What rxpath keeps to undo; in /run its locks and records. Only root may create files there, as on any host.
mkdir -p /var/lib/rxpath
mount -t tmpfs tmpfs /var/lib/rxpath
mount -t tmpfs -o mode=755 tmpfs /run
mkdir /run/sshd
# The first process of a PID namespace: it has a namespace of every kind. It sees only its own processes, and has a name and
# temporary files of its own.
if [ $$ = 1 ]; then
	mount -t proc proc /proc
	mount -t tmpfs tmpfs /tmp
	echo "${RXPATH_HOST_NAME:-host}" >/proc/sys/kernel/hostname
fi
exec "$@"
