#!/bin/sh
# After install and upgrade. The units are disabled until somebody enables them; what already runs gets the new program.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	systemctl try-restart rxpath-export.service
fi
