#!/bin/sh
# Debian says `remove` and RPM says 0 when the package goes; at an upgrade the units stay as they are, and so they do when the
# other package (rxpath, rxpath-agent) takes the place: `remove in-favour NAME VERSION`.
set -e
case "${1:-} ${2:-}" in
'remove in-favour') exit 0 ;;
'remove '* | '0 '*) ;;
*) exit 0 ;;
esac
if command -v systemctl >/dev/null; then
	# The socket first: a scrape would start the service again.
	for unit in rxpath-export.socket rxpath-export.service rxpath-check.timer; do
		systemctl disable --quiet "$unit"
		[ ! -d /run/systemd/system ] || systemctl stop "$unit"
	done
fi
