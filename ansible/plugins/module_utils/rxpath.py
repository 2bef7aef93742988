# Copyright (c) 2026, The rxpath authors
# SPDX-License-Identifier: MIT OR Apache-2.0

"""Calls the program rxpath on the managed host and reads what it prints."""

from __future__ import annotations

import json
import re

# Exit statuses of rxpath.
DONE = 0
NEGATIVE = 1
USAGE = 2
PARTIAL = 5


def first_line(text):
    """The message of rxpath without its name; the hint is a line of its own."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return ""
    message = lines[0][len("rxpath: "):] if lines[0].startswith("rxpath: ") else lines[0]
    hints = [line for line in lines[1:] if line.startswith("hint: ")]
    return "%s (%s)" % (message, hints[0]) if hints else message


SYSCTLS = r"(net|vm|kernel)\."
CPUS = r"/sys/devices/system/cpu/"
# Programs that write settings again at their own times: the words of their findings (tuned-active, other-managers), and which
# settings. NetworkManager and systemd-networkd are not among them: most of their connections set nothing but the MTU.
OWNERS = (
    ("tuned", r"\btuned runs: (?!no profile)", r""),
    ("bpftune", r"\bbpftune \(", SYSCTLS),
    ("ktune", r"\bktune \(", SYSCTLS),
    ("irqbalance", r"\birqbalance \(", r"irq/"),
    ("thermald", r"\bthermald \(", CPUS),
    ("power-profiles-daemon", r"\bpower-profiles- \(", CPUS),
    ("cpupower", r"\bcpupower \(", CPUS),
)


def owners(findings, names):
    """Which of these programs run, by the findings of `rxpath check`, and may write settings with these names again."""
    said = [one["observed"] for one in findings if one["id"] in ("tuned-active", "other-managers")]
    found = []
    for program, words, settings in OWNERS:
        its = [name for name in names if re.match(settings, name)]
        if its and any(re.search(words, text) for text in said):
            found.append("%s may write %s again" % (program, ", ".join(its)))
    return found


SEVERITIES = ("info", "warn", "fail")


def at_least(findings, severity):
    """The rules of findings that are at least this severe."""
    severe = SEVERITIES[SEVERITIES.index(severity):]
    return sorted(set(one["id"] for one in findings if one["severity"] in severe))


class Program:
    """The program on the managed host."""

    def __init__(self, module):
        self.module = module
        self.path = module.params["executable"]
        if "/" not in self.path:
            self.path = module.get_bin_path(self.path, required=True)

    def run(self, words, accepted=(DONE,)):
        """Its status and its JSON. A status that is not accepted fails the module with one line."""
        status, out, err = self.module.run_command([self.path] + words)
        if status in accepted and out.strip():
            try:
                return status, json.loads(out)
            except ValueError as error:
                self.module.fail_json(msg="rxpath %s: its output is not JSON: %s" % (words[0], error))
        why = first_line(err) or "rxpath %s ended with status %d" % (" ".join(words[:2]), status)
        self.module.fail_json(msg=why, rc=status)
