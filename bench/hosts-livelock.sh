#!/bin/sh
# Whether runs end well while the receiver has one CPU, which is flooded by the link that also carries the control connection.
#
# Coordinator, sender and receiver are on one bridge, and the receiver has one device. RPS steers each packet to its only CPU;
# GSO batches become single datagrams there, in softirq, so that its programs hardly run (as in the experiment udp-livelock).
# Everything else is on the other CPU. Printed for each run: its exit status, its time, the share of datagrams that were lost,
# the least idle share of the receiver's CPU in a second, and what was wrong. A run ends well if its status is 0, or 4 (one trial
# is not enough to compare), if its manifest is complete, if each of its trials counts, if the load ends by itself two seconds after
# its window at the latest (its program needs its CPU no more; it stays until it gets its last order), and if no program of it is
# left on a host five seconds later. Noise is forgiven (--keep-noisy): the flood is foreign load to what runs on that CPU. Any other
# reason why a trial is void, as a window that was read late, is what this bench looks for.
# Goal: every run ends well. The CPU was flooded if it was idle for less than 5 % of that second, and 20 % were lost.
# Usage: bench/hosts-livelock.sh [RXPATH [RUNS]]    (root; 20 runs of ten seconds). Exit 1: a run did not end well. Exit 4: a run
# did not flood the CPU.
set -eu
rxpath=${1:-target/release/rxpath}
runs=${2:-${ROUNDS:-20}}
receiver=${RECEIVER_CPU:-1}
sender=${SENDER_CPU:-0}
# shellcheck source=tools/hosts-common.sh
. "$(dirname "$0")/../tools/hosts-common.sh"
hosts_need strip python3 taskset
hosts_begin
strip -o "$hosts_dir/rxpath" "$rxpath"
on_ctl ip link add lan type bridge
on_ctl ip addr add 10.78.0.254/24 dev lan
on_ctl ip link set lan up
for name in gen1 sut; do
	case $name in
	gen1) number=1 cpu=$sender role=sender ;;
	sut) number=2 cpu=$receiver role=receiver ;;
	esac
	host $name 10.78.0.$number
	wire ctl $name - $name lan 10.78.0.$number
	on_ctl ip link set $name master lan
	inventory $name $role "addr = [\"10.78.0.$number\"]" >>"$hosts_dir/lab.toml"
	# What starts it hands its CPU down.
	taskset -pc "$cpu" $$ >/dev/null
	host_start_apart $name
	eval "$name=\$daemon"
done
taskset -pc "$sender" $$ >/dev/null
ip netns exec "$hosts_id-sut" sh -c "printf %x $((1 << receiver)) >/sys/class/net/lan/queues/rx-0/rps_cpus"
host_wait 10.78.0.1 10.78.0.2
cat >"$hosts_dir/livelock.toml" <<'END'
question = "Does control survive a livelock?"
[serve]
rcvbuf = "4MiB"
[load]
size = 32
gso = 64
batch = 16
END
hosts_trials 300ms 1s 3s >>"$hosts_dir/livelock.toml"
export hosts_dir hosts_id host_sh receiver runs
# shellcheck disable=SC2154  # set by name above
python3 - "$gen1" "$sut" <<'PYTHON'
import glob
import json
import os
import shutil
import subprocess
import sys
import time

here, receiver, runs = os.environ["hosts_dir"], os.environ["receiver"], int(os.environ["runs"])
spaces = {os.stat(f"/proc/{pid}/ns/pid_for_children").st_ino for pid in sys.argv[1:]}
words = ["ip", "netns", "exec", os.environ["hosts_id"] + "-ctl", "unshare", "--mount", "sh", os.environ["host_sh"],
         f"{here}/rxpath", "run", f"{here}/livelock.toml", "--hosts", f"{here}/lab.toml", "--keep-noisy", "--out", f"{here}/runs"]


def idle():
    """Idle and whole time of the receiver's CPU, in ticks."""
    with open("/proc/stat") as stat:
        row = next(line for line in stat if line.startswith(f"cpu{receiver} "))
    ticks = [int(word) for word in row.split()[1:9]]
    return ticks[3] + ticks[4], sum(ticks)


def programs():
    """Command lines of rxpath on the hosts, each with its CPU time in ticks."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.stat(f"/proc/{pid}/ns/pid").st_ino in spaces:
                line = open(f"/proc/{pid}/cmdline").read().replace("\0", " ").strip()
                if "/rxpath " in line:
                    ticks = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[11:13]
                    found[line] = sum(map(int, ticks))
        except OSError:
            pass  # It has ended.
    return found


def run():
    """One run: exit status, seconds, least idle share of a second, and when the load last used its CPU."""
    began = time.monotonic()
    with open(f"{here}/errors", "w") as errors:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors)
    least, marks, seen, spent = 1.0, [idle()], 0.0, 0
    try:
        while process.poll() is None and time.monotonic() - began < 120:
            time.sleep(0.1)  # why: the pace of looking; 120 s end it
            now = sum(ticks for line, ticks in programs().items() if " load udp " in line)
            # Its end costs a tick or two.
            seen, spent = (time.monotonic() if now > spent + 2 else seen), now
            marks = marks[-10:] + [idle()]
            whole = marks[-1][1] - marks[0][1]
            if len(marks) == 11 and whole:
                least = min(least, (marks[-1][0] - marks[0][0]) / whole)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    return process.returncode, time.monotonic() - began, least, seen


well = flooded = 0
for number in range(1, runs + 1):
    status, seconds, least, seen = run()
    wrong, lost = [], 0.0
    if status not in (0, 4):
        wrong.append(open(f"{here}/errors").read().strip().replace("\n", "; ") or "no answer within 120 s")
    manifests = glob.glob(f"{here}/runs/*/manifest.json")
    manifest = json.load(open(manifests[0])) if manifests else {"status": "missing", "trials": []}
    if manifest["status"] != "complete":
        wrong.append(f"the run is {manifest['status']}")
    trials = manifest["trials"]
    wrong += [f"void: {trial['void']}" for trial in trials if trial["void"]] if trials else ["no trial"]
    for trial in trials:
        lost = max(lost, trial["metrics"].get("loss_ratio", 0.0))
    after = seen - trials[-1]["window_ns"][1] / 1e9 if trials else 0.0
    wrong += ["the load never ran"] if not seen else []
    wrong += [f"the load ran until {after:.1f} s after its window"] if after > 2 else []
    until = time.monotonic() + 5
    while programs() and time.monotonic() < until:
        time.sleep(0.1)  # why: the pace of looking; the limit above ends it
    wrong += [f"left: {line}" for line in programs()]
    well += not wrong
    flooded += least < 0.05 and lost >= 0.2
    print(f"run {number}: status {status} after {seconds:.1f} s, {lost:.1%} lost, idle {least:.1%}, load over {after:.1f} s after its window", *wrong, sep="; ", flush=True)
    shutil.rmtree(f"{here}/runs", ignore_errors=True)
print(f"{well} of {runs} runs ended well (goal: all); the CPU was flooded in {flooded}")
sys.exit(1 if well < runs else 4 if flooded < runs else 0)
PYTHON
