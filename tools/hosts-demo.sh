#!/bin/sh
# Three hosts on this machine, each a network namespace: a coordinator, a sender and a receiver, the last two with a mount
# namespace and a real sshd. Runs an experiment between them over ssh, and removes everything.
# Usage: tools/hosts-demo.sh RXPATH [SCENARIO [WORDS...]]
set -eu

rxpath=$(realpath "${1:?the built program}")
scenario=${2:-million-pps}
# Without words of its own it takes less than two minutes.
[ $# -ge 3 ] || set -- "$1" "$scenario" --trials 5 --set trials.max_blocks=5 --set trials.measure=500ms
shift 2
# shellcheck source=tools/hosts-common.sh
. "$(dirname "$0")/hosts-common.sh"
hosts_need
hosts_begin
host gen1 10.78.1.2
host sut 10.78.2.2
wire ctl gen1 10.78.1.1 gen1 mgmt 10.78.1.2
wire ctl sut 10.78.2.1 sut mgmt 10.78.2.2
wire gen1 data 10.78.3.1 sut data 10.78.3.2
# Not apart: they see each other's processes, so that what one of them runs is no foreign load to the other.
for host in gen1 sut; do host_start $host; done
{
	inventory gen1 sender
	inventory sut receiver 'addr = ["10.78.3.2"]'
} >"$hosts_dir/lab.toml"
host_wait 10.78.1.2 10.78.2.2
out=$(pwd)/rxpath-runs
on_ctl "$rxpath" hosts check "$hosts_dir/lab.toml"
status=0
on_ctl "$rxpath" run "$scenario" --hosts "$hosts_dir/lab.toml" --out "$out" "$@" || status=$?
case $status in
4) echo 'hosts-demo: done; some comparisons need more trials than a demonstration has' ;;
5) echo 'hosts-demo: done; some variants need --change-hosts' ;;
*) exit "$status" ;;
esac
