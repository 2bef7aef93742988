#!/bin/sh
# Reports go with a purge. The journals of `rxpath tune` stay: without them its changes could not be undone. Where the program
# is still there the other package has it (rxpath, rxpath-agent), and the reports are its own.
set -e
[ ! -d /run/systemd/system ] || systemctl daemon-reload
[ "${1:-}" != purge ] || [ -e /usr/bin/rxpath ] || rm -rf /var/lib/rxpath-check
