#!/bin/sh
# After install and upgrade. The units are disabled until somebody enables them; what already runs gets the new program, and so does
# what systemd gave up (StartLimitBurst=).
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	given_up=
	# The socket is the first: it cannot start after its service.
	for unit in rxpath-export.socket rxpath-export.service; do
		! systemctl is-failed --quiet "$unit" || given_up="$given_up $unit"
	done
	# Several upgrades within ten minutes are no failing starts. A pattern that fits no loaded unit is no error; a name is one.
	systemctl reset-failed 'rxpath-export.*'
	# Its options may be wrong, or its port taken, since it was started: the package is installed all the same.
	systemctl try-restart rxpath-export.service ||
		echo 'rxpath: the exporter does not start again: systemctl status rxpath-export' >&2
	# Nobody waits for these: if the program ends again, the package is installed all the same.
	# shellcheck disable=SC2086  # words
	[ -z "$given_up" ] || systemctl --no-block start $given_up
fi
