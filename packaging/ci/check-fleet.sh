#!/bin/sh
# A report of each host by ssh, and what they have in common, for a job of a CI system. The hosts need rxpath; nothing is
# changed on them.
# In DIR: reports/HOST.json, reports.ndjson for fleet/load.sql, summary.txt.
# Usage: check-fleet.sh DIR HOST...
#   FAIL_ON=warn  fails for warnings too, not only for failures
#   GOAL=latency  as rxpath check --goal
#   SSH=COMMAND   another command instead of ssh -o BatchMode=yes --
# Exit status: 0 no finding of that severity; 1 a host has one; 5 no finding, but a host gave no
# report; 2 usage.
set -eu
[ $# -ge 2 ] || { echo "usage: check-fleet.sh DIR HOST..." >&2; exit 2; }
dir=$1
shift
severity=${FAIL_ON:-fail}
ssh=${SSH:-ssh -o BatchMode=yes --}
mkdir -p "$dir/reports"
rm -f "$dir"/reports/*.json "$dir/summary.txt"
: >"$dir/reports.ndjson"
worst=0
for host in "$@"; do
	status=0
	# shellcheck disable=SC2086  # a command and its options
	$ssh "$host" rxpath check --format ndjson --fail-on "$severity" ${GOAL:+--goal "$GOAL"} \
		>"$dir/reports/$host.json" </dev/null || status=$?
	case $status in
	0) echo "$host: no finding at or above $severity" ;;
	1)
		echo "$host: a finding at or above $severity"
		worst=1
		;;
	*)
		echo "$host: no report, exit status $status" >&2
		rm -f "$dir/reports/$host.json"
		[ $worst = 1 ] || worst=5
		continue
		;;
	esac
	cat "$dir/reports/$host.json" >>"$dir/reports.ndjson"
done
[ -s "$dir/reports.ndjson" ] || { echo 'check-fleet: no host gave a report' >&2; exit 5; }
# Its status is that of the findings, which the hosts' own have said already.
rxpath check --summarize "$dir/reports" >"$dir/summary.txt" || [ $? = 1 ] || exit 5
cat "$dir/summary.txt"
exit $worst
