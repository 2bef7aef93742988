#!/bin/sh
# What a host on this machine has of its own next to the namespaces that `unshare` made for it; then its words are run. The
# hosts of tools/hosts-common.sh and of the tests over ssh start by this file.
# Usage: unshare --mount [OTHER NAMESPACES] sh tools/host.sh COMMAND...
set -e
# Locks and records of rxpath. Only root may create files there, as on any host.
mount -t tmpfs -o mode=755 tmpfs /run
# What rxpath keeps to undo. A directory that is made for it would stay on this machine, and its removal would unmount those of
# other hosts: without one, the host has a /var/lib of its own, with links to what the machine's has.
if [ -d /var/lib/rxpath ]; then
	mount -t tmpfs tmpfs /var/lib/rxpath
else
	mkdir /run/lib
	mount --rbind /var/lib /run/lib
	mount -t tmpfs -o mode=755 tmpfs /var/lib
	mkdir /var/lib/rxpath /var/lib/.machine
	mount --move /run/lib /var/lib/.machine
	rmdir /run/lib
	ln -s /var/lib/.machine/* /var/lib
fi
mkdir /run/sshd
# The first process of a PID namespace: it has a namespace of every kind. It sees only its own processes, and has a name and
# temporary files of its own.
if [ $$ = 1 ]; then
	mount -t proc proc /proc
	mount -t tmpfs tmpfs /tmp
	echo "${RXPATH_HOST_NAME:-host}" >/proc/sys/kernel/hostname
fi
exec "$@"
