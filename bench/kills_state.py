"""What is on the hosts of bench/hosts-kills.sh: processes, settings, files, locks.

The words of the command line are HOST=PID: the process that holds each host's namespaces.
"""

import contextlib
import difflib
import fcntl
import glob
import os
import re
import subprocess
import sys

here = os.environ["hosts_dir"]
holders = dict(word.split("=") for word in sys.argv[1:])
spaces = {os.stat(f"/proc/{pid}/ns/pid_for_children").st_ino: host for host, pid in holders.items()}


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
        # One that was killed as a whole has none now.
        if now.get(host, was) != was:
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
        for directory in glob.glob(f"{here}/copies*/{host}"):
            copies = below(directory)
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
