#!/bin/sh
# What is left on hosts when a part of a run between them is killed at a random time.
#
# A sender and a receiver, each with namespaces of every kind, and a scenario that changes settings of both. In each round one of
# five is killed (SIGKILL): the coordinator, an endpoint, an ssh client, the load program, the serve program; each as often as the
# others. The time is uniform over the whole of its life: it is drawn from a span that is longer than its life in runs that nobody
# disturbed, and a round whose run was over earlier is made again. Then it is waited until the hosts are clean:
# - no process is in the PID namespace of a host but its sshd, after 25 s (the watchdog of settings: 70 s);
# - each setting is byte for byte as before, after 70 s: /proc/sys/net, the devices' files in /sys/class/net, `ethtool -k`, `-c`,
#   `-g` and `-l`, queueing disciplines with their options;
# - the remote directory holds the one cached program, and nothing is in /tmp, /run/rxpath or /run/netns;
# - no lock below /run or on the network namespace is held, and no name of a lab's lock is bound;
# - `rxpath hosts cleanup --dry-run` finds nothing.
# PARALLEL groups of two hosts and a coordinator run at the same time, each with namespaces, /run and a directory of its own: most
# of a round is waiting. Printed: the lives, clean rounds, how often who was killed and at which part of its life, and how long it
# took until all was clean.
# Goal: every round is clean. The first one that is not ends the benchmark: what it left is printed and kept in a directory.
# Usage: bench/hosts-kills.sh [RXPATH [ROUNDS]]    (root; 500 rounds; PARALLEL=4, SEED, KINDS="load serve"). Exit 1: a round was not clean.
# Exit 4: too many runs were over before the kill.
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
        time.sleep(0.1)  # between two looks at the groups
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
for kind in kinds:
    took = sorted(second for group in all_groups for second in group["took"][kind])
    parts = [sum(column) for column in zip(*(group["parts"][kind] for group in all_groups))]
    if took:
        print(f"{kind}: killed {len(took)} times (in the quarters of its life, and later: {', '.join(map(str, parts))}), clean after "
              f"{took[len(took) // 2]:.2f} s in the median, {took[-1]:.2f} s at most")
clean, missed, changes = (sum(group[name] for group in all_groups) for name in ("clean", "missed", "changes"))
print(f"settings were in force at {changes} of these kills")
print(f"{clean} of {rounds} rounds clean (goal: all); {missed} runs were over before the kill")
sys.exit(1 if 1 in statuses else 4 if clean < rounds else 0)
PYTHON
# shellcheck source=tools/hosts-common.sh
. "$(dirname "$0")/../tools/hosts-common.sh"
hosts_need ethtool nsenter tc
hosts_pair "$rxpath"
host_start_apart gen1
gen1=$daemon
host_start_apart sut
sut=$daemon
host_wait 10.78.1.2 10.78.2.2
# From here on the program is there.
hosts_rxpath hosts check "$hosts_dir/lab.toml" >/dev/null 2>"$hosts_dir/errors" || {
	cat "$hosts_dir/errors" >&2
	exit 3
}
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
# What can be set in a namespace, as text.
cat >"$hosts_dir/settings.py" <<'PYTHON'
import glob
import os
import re
import subprocess

# Counts of what is there, which no setting changes.
COUNTS = {"nf_conntrack_count"}
QUEUES = "rps_cpus", "rps_flow_cnt", "xps_cpus", "xps_rxqs", "tx_maxrate", "byte_queue_limits/limit_min", "byte_queue_limits/limit_max"
DEVICE = "mtu", "flags", "tx_queue_len", "gro_flush_timeout", "napi_defer_hard_irqs", "threaded", "address", "ifalias"
files = [os.path.join(at, name) for at, _, names in os.walk("/proc/sys/net") for name in names if name not in COUNTS]
for device in glob.glob("/sys/class/net/*"):
    files += [f"{device}/{name}" for name in DEVICE]
    files += [f"{queue}/{name}" for queue in glob.glob(f"{device}/queues/*") for name in QUEUES]
for name in sorted(files):
    try:
        with open(name) as file:
            print(f"{name} = {file.read()!r}")
    except OSError as error:
        print(f"{name}: {error.strerror}")
for device in sorted(os.listdir("/sys/class/net")):
    for option in "-k", "-c", "-g", "-l":
        said = subprocess.run(["ethtool", option, device], capture_output=True, text=True)
        print(f"ethtool {option} {device}: {said.stdout}{said.stderr}")
said = subprocess.run(["tc", "qdisc", "show"], capture_output=True, text=True)
print("tc qdisc: " + re.sub(r" refcnt \d+", "", said.stdout + said.stderr))
PYTHON
export hosts_dir hosts_id host_sh rounds
python3 - gen1="$gen1" sut="$sut" <<'PYTHON'
import contextlib
import difflib
import fcntl
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

here, shared = os.environ["hosts_dir"], os.environ["KILLS_DIR"]
group, groups, rounds = (int(os.environ[name]) for name in ("KILLS_GROUP", "KILLS_GROUPS", "rounds"))
seed = int(os.environ["SEED"])
draw = random.Random(f"{seed} {group}")
holders = dict(word.split("=") for word in sys.argv[1:])
spaces = {os.stat(f"/proc/{pid}/ns/pid_for_children").st_ino: host for host, pid in holders.items()}
KINDS = os.environ.get("KINDS", "coordinator endpoint ssh load serve").split()
# The latest end of a load, the lease and a little; the time until a watchdog undoes what a killed endpoint left. Seconds.
PROCESSES, SETTINGS = 32, 70
# No run takes longer. Seconds.
LONGEST = 90
# Kill times are drawn from this many lives: a run may last longer than those that were measured.
BEYOND = 1.25
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


def coordinator(*words):
    """The command line of rxpath on the coordinator, with locks of its own."""
    enter = ["ip", "netns", "exec", os.environ["hosts_id"] + "-ctl", "unshare", "--mount", "sh", os.environ["host_sh"]]
    return [*enter, f"{here}/rxpath", *words]


RUN = coordinator("run", f"{here}/changing.toml", "--hosts", f"{here}/lab.toml", "--change-hosts", "--keep-noisy",
                  "--out", f"{here}/runs")


def read(pid, name):
    with contextlib.suppress(OSError):
        return open(f"/proc/{pid}/{name}").read()
    return ""


def all_pids():
    return set(map(int, filter(str.isdigit, os.listdir("/proc"))))


def processes(others=None):
    """What runs on the hosts, but for their sshd: (host, pid, command line). `others` gets the pids that run elsewhere: a process
    stays in its PID namespace, so that the next scan need not read them again. A pid that has ended leaves it: the kernel
    gives the number to another process later."""
    found, others, pids = [], set() if others is None else others, all_pids()
    others &= pids
    for pid in pids - others:
        try:
            host = spaces.get(os.stat(f"/proc/{pid}/ns/pid").st_ino)
        except OSError:
            continue  # It has ended.
        if not host:
            others.add(pid)
            continue
        status = dict(line.split(":", 1) for line in read(pid, "status").splitlines())
        if status and status["NSpid"].split()[-1] != "1" and "Z" not in status["State"]:
            found.append((host, pid, read(pid, "cmdline").replace("\0", " ").strip()))
    return found


def of_kind(kind, run, others):
    """Pids of a kind that live now, none of them among `others`, which gets those that never will be of it."""
    if kind == "coordinator":
        return [run.pid] if read(run.pid, "comm").strip() == "rxpath" else []
    if kind == "ssh":
        every = all_pids()
        others &= every
        own = {pid for pid in every - others if f"\nPPid:\t{run.pid}\n" in read(pid, "status")}
        others |= every - own
        return [pid for pid in own if read(pid, "comm").strip() == "ssh"]
    words = {"endpoint": "/rxpath endpoint", "load": "/rxpath load udp ", "serve": "/rxpath serve udp "}[kind]
    return [pid for _, pid, line in processes(others) if words in line and "--guard" not in line and not line.startswith("/bin/sh")]


def settings():
    """All settings of each host, as text."""
    def begin(host):
        inside = ["nsenter", f"--net=/proc/{holders[host]}/ns/net", f"--mount=/proc/{holders[host]}/ns/mnt"]
        return subprocess.Popen([*inside, "python3", f"{here}/settings.py"], stdout=subprocess.PIPE, text=True)

    reading = {host: begin(host) for host in holders}
    found = {host: process.communicate(timeout=60)[0] for host, process in reading.items()}
    if failed := [host for host, process in reading.items() if process.returncode]:
        sys.exit(f"hosts-kills: the settings of {failed} cannot be read")
    return found


def changed(before):
    """Lines of settings that are not as before."""
    lines, now = [], settings()
    for host, was in before.items():
        if now[host] != was:
            lines += list(difflib.unified_diff(was.splitlines(), now[host].splitlines(), f"{host} before", f"{host} after", "", "", 0, ""))
    return lines


def root(host):
    """The root directory of a host, as this process sees it."""
    return f"/proc/{holders[host]}/root"


def is_changed():
    """Whether a setting of the receiver is in force: one that shows without entering its namespace."""
    with contextlib.suppress(OSError):
        return open(root("sut") + "/sys/class/net/data/queues/rx-0/rps_cpus").read().strip("0,\n") != ""
    return False


def below(path):
    return sorted(os.path.join(at, name) for at, _, names in os.walk(path) for name in names)


def files():
    """Files that a host has and should not."""
    found = []
    for host in holders:
        copies = below(f"{here}/copies/{host}")
        if [os.path.basename(name) for name in copies] != ["rxpath"]:
            found += [f"{host}: not one copy: {copies}"]
        for place in "/tmp", "/run/rxpath", "/run/netns":
            for at, directories, names in os.walk(root(host) + place):
                found += [f"{host}: {place} has {name}" for name in directories + names]
    return found


def locks():
    """Locks that are held on the hosts."""
    held = []
    for host in holders:
        for name in [*below(root(host) + "/run"), f"/proc/{holders[host]}/ns/net"]:
            try:
                with open(name) as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                held.append(f"{host}: {name} is locked")
            except OSError:
                pass  # A socket, or removed meanwhile.
        # The name that goes with the lock of the lab: an abstract socket of the host's namespace.
        names = re.findall(r"@rxpath-lab-\S*", read(holders[host], "net/unix"))
        held += [f"{host}: {name} is bound" for name in sorted(set(names))]
    return held


def left(began, before):
    """What is left, waiting for as long as it may take; and the seconds until all was clean."""
    while True:
        passed = time.monotonic() - began
        all_left = processes()
        others = [row for row in all_left if " tune " not in row[2]]
        wrong = [f"{host}: process {pid}: {line}" for host, pid, line in all_left]
        wrong += [] if wrong else [*changed(before), *files(), *locks()]
        if not wrong:
            return [], passed
        if passed > SETTINGS or (others and passed > PROCESSES):
            # Settings are of interest whatever else is left.
            return [*wrong, *changed(before)], passed
        time.sleep(0.2)


def cleanup():
    """What `rxpath hosts cleanup` finds."""
    said = subprocess.run(coordinator("hosts", "cleanup", f"{here}/lab.toml", "--dry-run", "--json"), capture_output=True,
                          text=True, timeout=LONGEST)
    if said.returncode == 0 and not any(host["copies"] or host["journals"] for host in json.loads(said.stdout)["result"]):
        return []
    return [f"hosts cleanup: status {said.returncode}: {said.stdout}{said.stderr}"]


def keep(text, wrong, before):
    """Keeps everything of a round; the directory."""
    kept = tempfile.mkdtemp(prefix="rxpath-kills.", dir="/var/tmp")
    with open(f"{kept}/round", "w") as out:
        out.write("\n".join([text, f"seed {seed}", *wrong]) + "\n")
    for name in "said", "errors", "runs", "changing.toml", "lab.toml":
        if os.path.isdir(f"{here}/{name}"):
            shutil.copytree(f"{here}/{name}", f"{kept}/{name}")
        elif os.path.exists(f"{here}/{name}"):
            shutil.copy(f"{here}/{name}", kept)
    after = settings()
    for host, was in before.items():
        open(f"{kept}/{host}.before", "w").write(was)
        open(f"{kept}/{host}.after", "w").write(after[host])
        subprocess.run(["tar", "-C", root(host), "-cf", f"{kept}/{host}.tar", "run", "var/lib/rxpath"], stderr=subprocess.DEVNULL)
    return kept


@contextlib.contextmanager
def running():
    """A run, which is over at the end."""
    shutil.rmtree(f"{here}/runs", ignore_errors=True)
    with open(f"{here}/said", "w") as said, open(f"{here}/errors", "w") as errors:
        run = subprocess.Popen(RUN, stdin=subprocess.DEVNULL, stdout=said, stderr=errors)
    try:
        yield run
    finally:
        if run.poll() is None:
            run.kill()
        run.wait()


def lives():
    """Seconds that each kind lives in a run that nobody kills."""
    seen, others = {}, {kind: set() for kind in KINDS}
    with running() as run:
        began = time.monotonic()
        while run.poll() is None and time.monotonic() - began < LONGEST:
            for kind in KINDS:
                if of_kind(kind, run, others[kind]):
                    now = time.monotonic()
                    seen[kind] = (seen.get(kind, (now, now))[0], now)
            time.sleep(0.01)
        said = open(f"{here}/errors").read()
    if run.returncode not in (0, 4) or set(seen) != set(KINDS):
        sys.exit(f"hosts-kills: a run without kills ended with status {run.returncode}, and had {sorted(seen)}: {said}")
    return {kind: last - first for kind, (first, last) in seen.items()}


def strike(kind, life):
    """A run in which one of a kind is killed: what was done and when; nothing if it was over before."""
    delay, others = draw.uniform(0, BEYOND * life), set()
    with running() as run:
        limit = time.monotonic() + LONGEST
        pids = []
        while not pids and run.poll() is None and time.monotonic() < limit:
            pids = of_kind(kind, run, others)
            time.sleep(0.005)
        if not pids:
            return None
        with contextlib.suppress(subprocess.TimeoutExpired):
            run.wait(delay)
        pids = of_kind(kind, run, others)
        if not pids:
            return None
        pid = draw.choice(pids)
        line, in_force = read(pid, "cmdline").replace("\0", " ").strip(), is_changed()
        began = time.monotonic()
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return None
        with contextlib.suppress(subprocess.TimeoutExpired):
            run.wait(LONGEST)
        status = run.poll()
        text = f"killed {kind} {delay:.3f} s after it started, settings {'' if in_force else 'not '}in force: {line}; " \
               f"the run ended with status {status}"
        # A run that does not end is no clean round.
        part = min(int(4 * delay / life), 4)
        return text, began, in_force, part, [] if status is not None else [f"the run goes on {LONGEST} s after the kill"]


def wait_for_groups():
    """Waits until all groups are there: lives are measured under the load of the others."""
    open(f"{shared}/{group}.ready", "w").close()
    limit = time.monotonic() + 120
    while len(ready := [name for name in os.listdir(shared) if name.endswith(".ready")]) < groups:
        if has_ended() or time.monotonic() > limit:
            sys.exit(f"hosts-kills: of {groups} groups only {len(ready)} are ready")
        time.sleep(0.05)


def has_ended():
    """Whether a group failed."""
    return os.path.exists(f"{shared}/ended")


before = settings()
wait_for_groups()
life = lives()
print(f"group {group}: lives in seconds: " + ", ".join(f"{kind} {life[kind]:.2f}" for kind in KINDS), flush=True)
# What such a run leaves is no matter of kills.
wrong, _ = left(time.monotonic(), before)
if wrong := [*wrong, *cleanup()]:
    sys.exit("hosts-kills: a run without kills leaves: " + "\n".join(wrong))
own = range(group, rounds, groups)
kinds = [KINDS[number % len(KINDS)] for number in own]
draw.shuffle(kinds)
clean, missed, changes, wrong = 0, 0, 0, []
took, parts = {kind: [] for kind in KINDS}, {kind: [0] * 5 for kind in KINDS}
while clean < len(own) and missed < 5 * len(own) and not has_ended():
    kind = kinds[clean]
    done = strike(kind, life[kind])
    if done is None:
        missed += 1
        continue
    text, began, in_force, part, wrong = done
    remains, seconds = left(began, before)
    wrong += remains
    wrong += [] if wrong else cleanup()
    if wrong:
        print(f"group {group}: round {clean + 1} is not clean after {seconds:.1f} s: {text}", *wrong[:40], sep="\n   ")
        print(f"kept in {keep(text, wrong, before)}")
        break
    clean += 1
    changes += in_force
    took[kind].append(seconds)
    parts[kind][part] += 1
    if clean % 25 == 0:
        print(f"group {group}: {clean} rounds", flush=True)
if missed == 5 * len(own):
    print(f"group {group}: {missed} runs were over before the kill, for {clean} kills")
with open(f"{shared}/{group}.json", "w") as out:
    json.dump({"clean": clean, "missed": missed, "changes": changes, "took": took, "parts": parts}, out)
sys.exit(1 if wrong else 4 if clean < len(own) else 0)
PYTHON
