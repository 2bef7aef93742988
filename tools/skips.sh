#!/bin/sh
# Every test that skipped itself must be listed with its reason; anything else fails.
# Usage: tools/skips.sh LOG LIST
set -eu
log=$1
list=$2
bad=0
sort -u "$log" | while IFS='	' read -r name reason; do
	if grep -q "^\[skip\.\"\{0,1\}$name\"\{0,1\}\]" "$list"; then
		echo "skipped: $name: $reason"
	else
		echo "skips: $name was skipped ($reason) and is not listed in $list" >&2
		exit 1
	fi
done || bad=1
exit $bad
