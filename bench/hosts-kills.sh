#!/bin/sh
# What is left on hosts when a part of a run between them is killed at a random time.
#
# A sender and a receiver, each with namespaces of every kind, and a scenario that changes settings of both. In each round one part is
# killed (SIGKILL), each kind as often as the others:
# - coordinator, endpoint, load, serve: these processes of rxpath;
# - watchdog: the process that undoes the settings of a host if its endpoint can not;
# - ssh, session: an ssh client, and the process of sshd at its other end;
# - sudo: in a run by an ordinary user's login, whose endpoints are started by sudo. Left out where there is no sudo;
# - cut: the coordinator's port towards a host goes down for good. Nobody sees the end of a connection;
# - host: the first process of a host's PID namespace, and so all others in it. It is started again after the round.
# The time is uniform over the whole of a life: it is drawn from a span that is longer than the life in runs that nobody disturbed,
# and a round whose run was over earlier is made again. Of a cut and of a host it is the life of the endpoint there. Then it is waited
# until the hosts are clean:
# - no process is in the PID namespace of a host but its sshd, after 34 s (the watchdog of settings: 70 s);
# - each setting is byte for byte as before, after 70 s: /proc/sys/net, the devices' files in /sys/class/net, `ethtool -k`, `-c`,
#   `-g` and `-l`, queueing disciplines with their options;
# - the remote directory holds the one cached program, and nothing is in /tmp, /run/rxpath or /run/netns;
# - no lock below /run or on the network namespace is held, and no name of a lab's lock is bound;
# - `rxpath hosts cleanup --dry-run` finds nothing.
# A cut host has until then no process but sessions of sshd, which has no limit of its own; its settings are read when the link is up
# again. Of a killed host only the other one must be clean. Where a host was lost, these times of the other one begin with the end of
# the run, which may wait for the lost one. If a cut or a killed host fails the run, the run must name that host, and
# its manifest must not say complete.
# PARALLEL groups of two hosts and a coordinator run at the same time, each with namespaces, /run and a directory of its own: most
# of a round is waiting. Printed: the lives, clean rounds, and a table: how often each kind was killed and at which part of its life,
# and how long it took until all was clean.
# Goal: every round is clean. The first one that is not ends the benchmark: what it left is printed and kept in a directory.
# Usage: bench/hosts-kills.sh [RXPATH [ROUNDS]]    (root; 500 rounds, half an hour; PARALLEL=4, SEED, KINDS="load serve"). Exit 1: a
# round was not clean. Exit 4: too many runs were over before the kill.
set -eu
rxpath=${1:-target/release/rxpath}
rounds=${2:-${ROUNDS:-500}}
# One group: this file again, which gets its number. Without a number: all groups, and what they showed together.
[ -n "${KILLS_GROUP:-}" ] || exec python3 - "$0" "$rxpath" "$rounds" <<'PYTHON'
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

script, rxpath, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
groups = max(1, min(int(os.environ.get("PARALLEL", 4)), rounds))
seed = int(os.environ.get("SEED", random.randrange(10**9)))
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
print(f"{groups} groups, seed {seed}", flush=True)
shared = tempfile.TemporaryDirectory(prefix="rxpath-kills.", dir="/var/tmp")
workers = []
try:
    for number in range(groups):
        env = {**os.environ, "KILLS_GROUP": str(number), "KILLS_GROUPS": str(groups), "KILLS_DIR": shared.name, "SEED": str(seed)}
        workers.append(subprocess.Popen(["sh", script, rxpath, str(rounds)], env=env, start_new_session=True))
    while None in (statuses := [worker.poll() for worker in workers]):
        if any(statuses):
            # A round was not clean, or a group has no hosts: the others end after their round.
            open(f"{shared.name}/ended", "w").close()
        time.sleep(0.1)  # why: the pace of looking at the groups
finally:
    # Interrupted: each group removes its own.
    for worker in workers:
        if worker.poll() is None:
            os.killpg(worker.pid, signal.SIGTERM)
    for worker in workers:
        worker.wait()
if cannot := [status for status in statuses if status not in (0, 1, 4)]:
    sys.exit(cannot[0])
found = [f"{shared.name}/{number}.json" for number in range(groups)]
all_groups = [json.load(open(name)) for name in found if os.path.exists(name)]
kinds = all_groups[0]["took"] if all_groups else {}
print(f"{'killed':12} {'rounds':>6}  {'in the quarters of its life, and later':38} {'clean after, median':>19} {'at most':>9}")
for kind in kinds:
    took = sorted(second for group in all_groups for second in group["took"][kind])
    parts = [sum(column) for column in zip(*(group["parts"][kind] for group in all_groups))]
    if took:
        print(f"{kind:12} {len(took):6}  {', '.join(map(str, parts)):38} {took[len(took) // 2]:17.2f} s {took[-1]:7.2f} s")
clean, missed, changes = (sum(group[name] for group in all_groups) for name in ("clean", "missed", "changes"))
print(f"settings were in force at {changes} of these kills")
print(f"{clean} of {rounds} rounds clean (goal: all); {missed} runs were over before the kill")
sys.exit(1 if 1 in statuses else 4 if clean < rounds else 0)
PYTHON
# shellcheck source=tools/hosts-common.sh
. "$(dirname "$0")/../tools/hosts-common.sh"
hosts_need ethtool nsenter tc
hosts_pair "$rxpath"
trap 'hosts_daemons=$(cat "$hosts_dir/daemons" 2>/dev/null || echo "$hosts_daemons"); hosts_end' EXIT # hosts are started again
# The control links end at bridges: a port that goes down takes no address and no route with it.
for host in gen1:10.78.1.1 sut:10.78.2.1; do
	port=${host%:*}
	ip -n "$hosts_id-ctl" addr del "${host#*:}/24" dev "$port"
	ip -n "$hosts_id-ctl" link add "to-$port" type bridge
	ip -n "$hosts_id-ctl" link set "$port" master "to-$port"
	wire_end ctl "to-$port" "${host#*:}"
done
kinds='coordinator endpoint watchdog ssh session load serve cut host'
if command -v sudo >/dev/null; then
	kinds="$kinds sudo"
	hosts_user
else
	echo "without the kind sudo: it is not installed" >&2
fi
export KINDS="${KINDS:-$kinds}"
host_start_apart gen1
gen1=$daemon
host_start_apart sut
sut=$daemon
host_wait 10.78.1.2 10.78.2.2
# From here on the program is there.
for file in "$hosts_dir/lab.toml" "$hosts_dir/by-sudo.toml"; do
	[ -e "$file" ] || continue
	hosts_rxpath hosts check "$file" >/dev/null 2>"$hosts_dir/errors" || {
		cat "$hosts_dir/errors" >&2
		exit 3
	}
done
cat >"$hosts_dir/changing.toml" <<'END'
question = "What is left?"
[load]
rate = "2k"
[tune.receiver]
"net.core.somaxconn" = 4321
"{dev}/features/rx-gro" = "on"
"{dev}/queues/rx-0/rps_cpus" = "1"
[tune.sender]
"net.core.somaxconn" = 4322
"{dev}/features/tx-tcp-segmentation" = "off"
END
hosts_trials 100ms 100ms 400ms >>"$hosts_dir/changing.toml"
cp "$(dirname "$0")/kills_settings.py" "$hosts_dir/settings.py"
# shellcheck disable=SC2090  # host_clock is a program for python3 -c
export hosts_dir hosts_id hosts_accounts host_sh host_clock sshd rounds PYTHONDONTWRITEBYTECODE=1
python3 "$(dirname "$0")/hosts-kills.py" gen1="$gen1" sut="$sut"
