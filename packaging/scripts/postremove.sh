#!/bin/sh
# Reports go with a purge. The journals of `rxpath tune` stay: without them its changes could not be undone. Where the program
# is still there the other package has it (rxpath, rxpath-agent), and the reports are its own. So are the timer's stamp and the
# exporter's lock, and what the check says of `rxpath tune`, which systemd keeps.
set -e
[ ! -d /run/systemd/system ] || systemctl daemon-reload
if [ "${1:-}" = purge ] && [ ! -e /usr/bin/rxpath ]; then
	rm -rf /var/lib/rxpath-check /var/lib/systemd/timers/stamp-rxpath-check.timer /run/rxpath-check /run/rxpath-export \
		/run/private/rxpath-export
	# Locks, and links to directories of journals: needed while one of these is there.
	for journals in /run/rxpath-tune/journals-*; do
		[ ! -d "$journals" ] || exit 0
	done
	rm -rf /run/rxpath-tune
fi
