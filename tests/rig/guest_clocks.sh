# Runs in which the clock of the machine does not keep its pace, or only its time of day is set: guest_hosts.sh reads this file and
# has its functions. Prints of each what the run says and what was done meanwhile.
# - `sped up`: the clock runs 1000 ppm fast until the first trial has ended. The machine is the sender.
# - `swung`: in the first window the clock runs 5 % fast and then 5 % slow, 0.4 s each.
# - `stopped`: in the first window QEMU stops the machine for 0.3 s, and its clock with it.
# - `stepped`: in the first window the time of day is an hour back for 0.4 s.
# shellcheck shell=sh

# A shell in the machine. It is open before a run: a login takes the machine a second.
mkfifo words
echo @0 >answers
ssh guest2.lab sh <words >>answers 2>&1 &
shell=$!
exec 3>words
asked=0
# there COMMANDS: runs them in the machine, waits for their end, and prints what they print.
there() {
	asked=$((asked + 1))
	echo "$1; echo @$asked" >&3
	deadline=$(($(date +%s) + 60))
	until grep -qx "@$asked" answers; do
		kill -0 $shell && [ "$(date +%s)" -lt $deadline ] || { echo "the machine does not answer" >&2; exit 1; }
		# why: the machine runs them
		sleep 0.05
	done
	sed -n "/^@$((asked - 1))\$/,/^@$asked\$/p" answers
}
# stop_machine: prints QEMU's events, with their times.
stop_machine() {
	exec 4<>"$RIG_QMP.in" 5<>"$RIG_QMP.out"
	printf '{"execute":"qmp_capabilities"}\n{"execute":"stop"}\n' >&4
	# why: its clock does not run meanwhile
	sleep 0.3
	echo '{"execute":"cont"}' >&4
	timeout 10 sed '/"RESUME"/q' <&5
	exec 4>&- 5>&-
}

# during NAME, SCENARIO, INVENTORY, EVENT, COMMAND..: a run, and the command once the run has noted the event. Keeps what both print,
# and in $took_ms how long the command took.
during() {
	name=$1 event=$4
	rm -rf "runs/$name"
	ran "$name" "$2" "$3" >"$name.said" &
	run=$!
	shift 4
	until grep -q "$event" "runs/$name"/*/events.jsonl 2>/dev/null; do
		kill -0 $run 2>/dev/null || break
		# why: the run is not that far
		sleep 0.05
	done
	began=$(date +%s%N)
	"$@" >"$name.done"
	took_ms=$((($(date +%s%N) - began) / 1000000))
	wait $run
	run=
}
# in_window NAME, COMMAND..: a run in whose first window the command begins and ends; up to three until it does. The window begins
# 0.2 s after the order to measure and lasts 5 s.
in_window() {
	for _ in 1 2 3; do
		during "$1" window igb '"phase":"measure"' later "$@"
		[ $took_ms -ge 3500 ] || break
	done
	[ $took_ms -ge 3500 ] || echo "in the window" >>"$1.done"
	printed "$1"
}
later() {
	shift
	# why: the window has begun then
	sleep 0.5
	"$@"
}
printed() {
	cat "$1.said"
	echo "@@$1 done"
	cat "$1.done"
}

scenario 500 5s 1MiB 100ms >window.toml
there 'adjtimex -q -f 0 -t 10010' >/dev/null
during 'sped up' short back '"type":"trial-ended"' there 'adjtimex -q -t 10000'
printed 'sped up'
in_window swung there 'adjtimex -q -t 10500; sleep 0.4; adjtimex -q -t 9500; sleep 0.4; adjtimex -q -t 10000'
in_window stopped stop_machine
# shellcheck disable=SC2016  # of the shell in the machine
in_window stepped there 'date +%s; date -s "@$(($(date +%s) - 3600))"; date +%s; sleep 0.4; date -s "@$(($(date +%s) + 3600))"; date +%s'
exec 3>&-
wait $shell
