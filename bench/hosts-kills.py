"""One group of bench/hosts-kills.sh: a coordinator, two hosts, and the rounds of this group.

Usage: hosts-kills.py HOST=PID...: the process that holds each host's namespaces.
"""

import contextlib
import glob
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

from kills_state import all_pids, changed, files, here, holders, is_changed, locks, processes, read, root, settings, spaces

shared = os.environ["KILLS_DIR"]
group, groups, rounds = (int(os.environ[name]) for name in ("KILLS_GROUP", "KILLS_GROUPS", "rounds"))
seed = int(os.environ["SEED"])
draw = random.Random(f"{seed} {group}")
KINDS = os.environ["KINDS"].split()
# A host knows the latest end of a load before its start: 10 s for the hosts to answer, 1 s for a load that nobody can stop, the load
# itself; then the lease (20 s) and a little. And the time until a watchdog undoes what a killed endpoint left. Seconds.
PROCESSES, SETTINGS = 34, 70
# No run takes longer. Seconds.
LONGEST = 150
# A host that a new sshd runs on answers within this. Seconds.
STARTED = 10
# Kill times are drawn from this many lives: a run may last longer than those that were measured.
BEYOND = 1.25
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


def coordinator(*words):
    """The command line of rxpath on the coordinator, with locks of its own."""
    enter = ["ip", "netns", "exec", os.environ["hosts_id"] + "-ctl", "unshare", "--mount", "sh", os.environ["host_sh"]]
    return [*enter, f"{here}/rxpath", *words]


def inventory(kind):
    """By which login a run of this kind reaches its hosts."""
    return "by-sudo" if kind == "sudo" else "lab"


def run_of(kind):
    """The command line of a run."""
    return coordinator("run", f"{here}/changing.toml", "--hosts", f"{here}/{inventory(kind)}.toml", "--change-hosts", "--keep-noisy",
                       "--out", f"{here}/runs")


def in_netns(host, *words):
    """Runs a command in the network namespace of a host, which is there without the host, or of the coordinator; what it printed."""
    words = ["ip", "netns", "exec", f"{os.environ['hosts_id']}-{host}", *words]
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout


# What the command lines of a kind have; those of shells that start them have it too. A host and its wire live as long as its endpoint.
# sshd calls a session without a terminal so.
SHELLS = {"sh", "bash", "dash"}
WORDS = {"endpoint": "/rxpath endpoint", "cut": "/rxpath endpoint", "host": "/rxpath endpoint", "load": "/rxpath load udp ",
         "serve": "/rxpath serve udp ", "session": "@notty", "sudo": "sudo -n -- ", "watchdog": " tune watchdog "}


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
    words = WORDS[kind]
    found = [(pid, line) for _, pid, line in processes(others) if words in line and "--guard" not in line]
    return [pid for pid, line in found if os.path.basename(line.split(" ")[0]) not in SHELLS]


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
        time.sleep(0.2)  # why: the pace of looking; the limit above ends it


def cleanup(kind):
    """What `rxpath hosts cleanup` finds."""
    said = subprocess.run(coordinator("hosts", "cleanup", f"{here}/{inventory(kind)}.toml", "--dry-run", "--json"), capture_output=True,
                          text=True, timeout=LONGEST)
    if said.returncode == 0 and not any(host["copies"] or host["journals"] for host in json.loads(said.stdout)["result"]):
        return []
    return [f"hosts cleanup: status {said.returncode}: {said.stdout}{said.stderr}"]


def keep(text, wrong, before):
    """Keeps everything of a round; the directory."""
    kept = tempfile.mkdtemp(prefix="rxpath-kills.", dir="/var/tmp")
    with open(f"{kept}/round", "w") as out:
        out.write("\n".join([text, f"seed {seed}", *wrong]) + "\n")
    for name in "said", "errors", "runs", "changing.toml", "lab.toml", "by-sudo.toml":
        if os.path.isdir(f"{here}/{name}"):
            shutil.copytree(f"{here}/{name}", f"{kept}/{name}")
        elif os.path.exists(f"{here}/{name}"):
            shutil.copy(f"{here}/{name}", kept)
    after = settings()
    for host in holders:
        open(f"{kept}/{host}.before", "w").write(before[host])
        open(f"{kept}/{host}.after", "w").write(after[host])
        subprocess.run(["tar", "-C", root(host), "-cf", f"{kept}/{host}.tar", "run", "var/lib/rxpath"], stderr=subprocess.DEVNULL)
    return kept


# What is left of a host that is killed as a whole are its devices and its network namespace, with the settings of that time. These
# are what the scenario changes, as `ethtool -K` and `ethtool -k` call the features.
FILES = "/proc/sys/net/core/somaxconn", "/sys/class/net/data/queues/rx-0/rps_cpus"
FEATURE = {"gen1": ("tx-tcp-segmentation", "tx-tcp-segmentation"), "sut": ("gro", "generic-receive-offload")}


def changeable(host):
    """What these settings are."""
    features = re.findall(rf"^\s*{FEATURE[host][1]}: (\w+)", in_netns(host, "ethtool", "-k", "data"), re.M)
    return [in_netns(host, "cat", name).strip() for name in FILES], features[0]


def wait_for(host):
    """Waits until sshd of a host answers."""
    limit = time.monotonic() + STARTED
    while not in_netns("ctl", "sh", "-c", 'ssh-keyscan -t ed25519 -T 1 "$1" 2>/dev/null || true', "sh", ADDRESS[host]):
        if time.monotonic() > limit:
            sys.exit(f"hosts-kills: no sshd at {ADDRESS[host]}")
        time.sleep(0.1)  # why: the pace of asking; the limit above ends it


def restart(host):
    """What a restart does to a host that was killed: settings as they were at first, and sshd. As host_start_apart does."""
    values, feature = first[host]
    for name, value in zip(FILES, values):
        in_netns(host, "sh", "-c", 'echo "$1" >"$2"', "sh", value, name)
    in_netns(host, "ethtool", "-K", "data", FEATURE[host][0], feature)
    words = ["ip", "netns", "exec", f"{os.environ['hosts_id']}-{host}", "python3", "-c", os.environ["host_clock"], "0",
             "unshare", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child", "sh", os.environ["host_sh"],
             *os.environ["hosts_accounts"].split(), os.environ["sshd"], "-D", "-e", "-f", f"{here}/sshd_config"]
    process = subprocess.Popen(words, env={**os.environ, "RXPATH_HOST_NAME": host})
    started.append(process)
    holders[host] = str(process.pid)
    with open(f"{here}/daemons", "w") as out:
        out.write(" ".join(holders.values()))
    wait_for(host)
    spaces[os.stat(f"/proc/{process.pid}/ns/pid_for_children").st_ino] = host


def link(host, state):
    """Takes the coordinator's port towards a host down or up: the host and the coordinator see no end of a connection."""
    subprocess.run(["ip", "-n", os.environ["hosts_id"] + "-ctl", "link", "set", host, state], check=True)


def strike_at(kind, pid):
    """Kills a process, or what it is on; the host that was hit as a whole."""
    if kind not in ("cut", "host"):
        os.kill(pid, signal.SIGKILL)
        return None
    own = os.stat(f"/proc/{pid}/ns/pid").st_ino
    host = spaces[own]
    if kind == "cut":
        link(host, "down")
        return host
    os.kill(first_of(own), signal.SIGKILL)
    # Nobody asks it any more, until it is started again.
    del spaces[own], holders[host]
    return host


def first_of(space):
    """Process 1 of a PID namespace, which takes all others with it."""
    for pid in all_pids():
        with contextlib.suppress(OSError):
            if os.stat(f"/proc/{pid}/ns/pid").st_ino == space and re.search(r"^NSpid:.*\s1$", read(pid, "status"), re.M):
                return pid
    raise ProcessLookupError


def silence(host, began):
    """Waits until a host that hears nothing has ended all by itself, but for sessions of sshd; what it has not, and the seconds."""
    while True:
        passed = time.monotonic() - began
        rows = [row for row in processes() if row[0] == host and not row[2].startswith("sshd")]
        if not rows:
            return [], passed
        if passed > SETTINGS or (passed > PROCESSES and any(" tune " not in row[2] for row in rows)):
            return [f"{host}: process {pid} {passed:.1f} s after the cut: {line}" for _, pid, line in rows], passed
        time.sleep(0.2)  # why: the pace of looking; the limit above ends it


def heal(host):
    """Brings a link up again, and ends the sessions of sshd, which would wait for the other end's acknowledgement."""
    link(host, "up")
    for at, pid, line in processes():
        if at == host and line.startswith("sshd"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    wait_for(host)


def names(host, status):
    """What is wrong with the end of a run that lost a host."""
    said = open(f"{here}/errors").read()
    is_named = re.search(rf"^rxpath: .*\b{host}(:| was lost| restarted)", said, re.M)
    wrong = [] if is_named else [f"the run with status {status} does not name {host}: {said}"]
    ends = [json.load(open(name))["status"] for name in glob.glob(f"{here}/runs/*/manifest.json")]
    return wrong + ["the manifest of a failed run says complete" for end in ends if end == "complete"]


@contextlib.contextmanager
def running(kind):
    """A run, which is over at the end."""
    shutil.rmtree(f"{here}/runs", ignore_errors=True)
    with open(f"{here}/said", "w") as said, open(f"{here}/errors", "w") as errors:
        run = subprocess.Popen(run_of(kind), stdin=subprocess.DEVNULL, stdout=said, stderr=errors)
    try:
        yield run
    finally:
        if run.poll() is None:
            run.kill()
        run.wait()


def lives(kinds):
    """Seconds that each of some kinds lives in a run of theirs that nobody kills."""
    seen, others = {}, {kind: set() for kind in kinds}
    if not kinds:
        return {}
    with running(kinds[0]) as run:
        began = time.monotonic()
        while run.poll() is None and time.monotonic() - began < LONGEST:
            for kind in kinds:
                if of_kind(kind, run, others[kind]):
                    now = time.monotonic()
                    seen[kind] = (seen.get(kind, (now, now))[0], now)
            time.sleep(0.01)  # why: the pace of looking for programs, until the run ends
        said = open(f"{here}/errors").read()
    if run.returncode not in (0, 4) or set(seen) != set(kinds):
        sys.exit(f"hosts-kills: a run without kills ended with status {run.returncode}, and had {sorted(seen)}: {said}")
    return {kind: last - first for kind, (first, last) in seen.items()}


def pid_after(kind, delay, run):
    """A pid of a kind, so long after the first one was there; nothing if the run was over before."""
    others, pids, limit = set(), [], time.monotonic() + LONGEST
    while not pids and run.poll() is None and time.monotonic() < limit:
        pids = of_kind(kind, run, others)
        time.sleep(0.005)  # why: the pace of looking; the limit above ends it
    if not pids:
        return None
    with contextlib.suppress(subprocess.TimeoutExpired):
        run.wait(delay)
    pids = of_kind(kind, run, others)
    return draw.choice(pids) if pids else None


def strike(kind, life):
    """A run in which one of a kind is killed: what was done and when; nothing if it was over before."""
    delay = draw.uniform(0, BEYOND * life)
    part = min(int(4 * delay / life), 4)
    with running(kind) as run:
        pid = pid_after(kind, delay, run)
        if pid is None:
            return None
        line, in_force = read(pid, "cmdline").replace("\0", " ").strip(), is_changed()
        began = time.monotonic()
        try:
            host = strike_at(kind, pid)
        except (ProcessLookupError, FileNotFoundError):
            return None
        wrong, silent = silence(host, began) if kind == "cut" else ([], None)
        with contextlib.suppress(subprocess.TimeoutExpired):
            run.wait(LONGEST)
        status = run.poll()
        if kind == "cut":
            heal(host)
        # A run that does not end is no clean round.
        wrong += [] if status is not None else [f"the run goes on {LONGEST} s after the kill"]
    if kind == "host" and status in (0, 4) and changeable(host) == first[host]:
        # All that was asked of the host was there, and its settings were undone before.
        restart(host)
        return None
    if host and status is not None and (kind == "host" or status not in (0, 4)):
        wrong += names(host, status)
    text = f"killed {kind} {delay:.3f} s after it started, settings {'' if in_force else 'not '}in force: {host or line}; " \
           f"the run ended with status {status}"
    return text, began, in_force, part, wrong, host, silent


def judge(kind, done, before):
    """What is wrong after a kill, and the seconds until all was clean."""
    _, began, _, _, wrong, host, silent = done
    if wrong:
        return wrong, 0
    # A run that lost a host may wait for it, and the other host is in use until then.
    since = time.monotonic() if host else began
    wrong, seconds = left(since, before)
    if kind == "host":
        restart(host)
        wrong += [] if wrong else left(time.monotonic(), before)[0]
    return wrong or cleanup(kind), silent or since - began + seconds


def wait_for_groups():
    """Waits until all groups are there: lives are measured under the load of the others."""
    open(f"{shared}/{group}.ready", "w").close()
    limit = time.monotonic() + 120
    while len(ready := [name for name in os.listdir(shared) if name.endswith(".ready")]) < groups:
        if has_ended() or time.monotonic() > limit:
            sys.exit(f"hosts-kills: of {groups} groups only {len(ready)} are ready")
        time.sleep(0.05)  # why: the pace of looking; the limit above ends it


def has_ended():
    """Whether a group failed."""
    return os.path.exists(f"{shared}/ended")


started = []
ADDRESS = {"gen1": "10.78.1.2", "sut": "10.78.2.2"}
first = {host: changeable(host) for host in holders}
before = settings()
wait_for_groups()
life = lives([kind for kind in KINDS if kind != "sudo"]) | lives([kind for kind in KINDS if kind == "sudo"])
print(f"group {group}: lives in seconds: " + ", ".join(f"{kind} {life[kind]:.2f}" for kind in KINDS), flush=True)
# What such a run leaves is no matter of kills.
wrong, _ = left(time.monotonic(), before)
if wrong := [*wrong, *cleanup(KINDS[0])]:
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
    text, _, in_force, part, *_ = done
    wrong, seconds = judge(kind, done, before)
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
