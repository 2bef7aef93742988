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
# The lease and a little, and the time until a watchdog undoes what a killed endpoint left. Seconds.
PROCESSES, SETTINGS = 25, 70
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
