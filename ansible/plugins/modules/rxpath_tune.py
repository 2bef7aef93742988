#!/usr/bin/python
# Copyright (c) 2026, The rxpath authors
# SPDX-License-Identifier: MIT OR Apache-2.0

from __future__ import annotations

DOCUMENTATION = r"""
module: rxpath_tune
short_description: Change receive path settings by a plan, with automatic undo
version_added: "0.1.0"
description:
  - Makes a plan with C(rxpath tune plan), applies it with C(rxpath tune apply --confirm-within), and confirms it over a
    new connection. A host that this connection does not reach any more undoes the changes by itself.
  - Each change is journaled before it is written, and read back afterwards.
  - The changes end with the next boot. Run the play at boot, or draft files with C(rxpath tune plan --persist).
author:
  - The rxpath authors (@rxpath)
requirements:
  - rxpath on the managed host
  - root on the managed host, except in check mode
attributes:
  check_mode:
    description: Makes the plan only.
    support: full
  diff_mode:
    description: Shows the old and the new value of each setting.
    support: full
  action:
    description: A part runs on the controller. It opens the new connection for the confirmation.
    support: full
options:
  state:
    description:
      - V(applied) applies and confirms what O(settings), O(rules) or O(goal) ask for.
      - V(confirmed) confirms what waits for a confirmation; V(applied) does so unless O(confirm=false).
      - V(undone) restores the values from before, of O(journal) or of all open journals.
    type: str
    choices: [applied, confirmed, undone]
    default: applied
  settings:
    description: Set only these settings, by their names in C(rxpath tune plan --set).
    type: dict
    default: {}
  rules:
    description: Rules of C(rxpath check) whose findings to fix. Without O(settings) and O(rules), all findings.
    type: list
    elements: str
    default: []
  goal:
    description: Workload goal of the host.
    type: str
    choices: [latency, throughput, fairness, benchmark]
  devices:
    description: Look only at these devices.
    type: list
    elements: str
    default: []
  window:
    description: Watch the counters for this long before the plan is made.
    type: str
    default: 250ms
  confirm:
    description: Confirm over a new connection. With V(false), a later task has to, with O(state=confirmed).
    type: bool
    default: true
  confirm_within:
    description: The host undoes the changes after this time without a confirmation, from 5 s to a day.
    type: str
    default: 60s
  on_failure:
    description:
      - What to do with the steps before a step that the kernel refuses. The task fails in any case.
      - V(keep) confirms them as O(confirm) says; without a confirmation the host undoes them.
    type: str
    choices: [keep, undo]
    default: undo
  allow_ignored:
    description: Warn, rather than fail, if the kernel accepts a value and does not use it. The other settings stay.
    type: bool
    default: false
  allow_managed:
    description:
      - Warn, rather than fail, if tuned or another program that writes settings runs and may write these again.
      - A finding C(tuned-active) or C(other-managers) that the host suppresses in C(/etc/rxpath/check.toml) is no reason to fail.
    type: bool
    default: false
  force:
    description: Apply a plan that takes down the link of this very connection.
    type: bool
    default: false
  journal:
    description: Number of the journal for O(state=confirmed) and O(state=undone).
    type: int
  keep_foreign:
    description: On O(state=undone), keep values that other programs have set since.
    type: bool
    default: false
  state_dir:
    description: Folder of the journals on the managed host.
    type: path
    default: /var/lib/rxpath/tune
  executable:
    description: Name or path of rxpath on the managed host.
    type: str
    default: rxpath
"""

EXAMPLES = r"""
- name: Larger socket buffers and rings
  rxpath.rxpath.rxpath_tune:
    settings:
      net.core.rmem_max: 7500000
      eth0/rings/rx: 4096
    confirm_within: 60s

- name: What rxpath finds for this goal
  rxpath.rxpath.rxpath_tune:
    goal: throughput

- name: Back to the values from before
  rxpath.rxpath.rxpath_tune:
    state: undone
"""

RETURN = r"""
changes:
  description: The settings with the value before, the value asked for and the value read back.
  returned: on O(state=applied) or O(state=undone)
  type: list
  elements: dict
journal:
  description: Number of the journal of these changes.
  returned: if something was written
  type: int
waits:
  description: Whether the changes wait for a confirmation.
  returned: on O(state=applied)
  type: bool
left_out:
  description: What is no step of the plan, with the reason; C(is_set) if the host has the value already.
  returned: on O(state=applied)
  type: list
  elements: dict
"""

import os
import tempfile

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.rxpath.rxpath.plugins.module_utils.rxpath import DONE, PARTIAL, USAGE, Program, owners

# Outcomes of a step that did what was asked, or as much of it as the kernel does.
GOOD = ("applied", "rounded", "pending")


def arguments():
    return dict(
        state=dict(type="str", choices=["applied", "confirmed", "undone"], default="applied"),
        settings=dict(type="dict", default={}),
        rules=dict(type="list", elements="str", default=[]),
        goal=dict(type="str", choices=["latency", "throughput", "fairness", "benchmark"]),
        devices=dict(type="list", elements="str", default=[]),
        window=dict(type="str", default="250ms"),
        confirm=dict(type="bool", default=True),
        confirm_within=dict(type="str", default="60s"),
        on_failure=dict(type="str", choices=["keep", "undo"], default="undo"),
        allow_ignored=dict(type="bool", default=False),
        allow_managed=dict(type="bool", default=False),
        force=dict(type="bool", default=False),
        journal=dict(type="int"),
        keep_foreign=dict(type="bool", default=False),
        state_dir=dict(type="path", default="/var/lib/rxpath/tune"),
        executable=dict(type="str", default="rxpath"),
    )


def lines(steps, key):
    return "".join("%s: %s\n" % (step["set"], step[key]) for step in steps)


def value_of(value):
    """YAML reads `on` and `off` as truth values; rxpath wants the words."""
    return {True: "on", False: "off"}.get(value, value) if isinstance(value, bool) else value


def plan(module, program, file):
    """The steps of the plan, and what it leaves out. What was asked for by name and cannot be fails the module."""
    words = ["tune", "plan", "--json", "--window", module.params["window"], "-o", file]
    words += module.params["rules"]
    if module.params["goal"]:
        words += ["--goal", module.params["goal"]]
    for device in module.params["devices"]:
        words += ["--dev", device]
    for name, value in module.params["settings"].items():
        words += ["--set", "%s=%s" % (name, value_of(value))]
    status, answer = program.run(words, accepted=(DONE, USAGE, PARTIAL))
    result = answer["result"]
    left_out = result.get("left_out", [])
    if status != DONE:
        # What is set already is no error.
        errors = [one for one in left_out if not one.get("is_set")]
        why = "; ".join("%s: %s" % (one["what"], one["why"]) for one in errors)
        module.fail_json(msg=why or "rxpath tune plan ended with status %d" % status, rc=status, left_out=left_out)
    return result.get("step", []), left_out


def refuse_owned(module, program, steps):
    """Two programs that write one setting undo each other, and each reports success."""
    words = ["check", "--format", "ndjson", "--window", "0s", "--goal", "benchmark"]
    findings = program.run(words, accepted=(DONE, PARTIAL))[1]["result"]["findings"]
    for text in owners(findings, [one["set"] for one in steps]):
        if not module.params["allow_managed"]:
            module.fail_json(msg="%s: stop it, set it there, or allow_managed: true" % text)
        module.warn(text)


def carry_out(module, program, file):
    """The answer of `rxpath tune apply`, and the changes that fail the module."""
    # It takes an ignored value for a failure, and would undo the whole plan. Where that is allowed, the module undoes what fails.
    keeps = module.params["allow_ignored"] or module.params["on_failure"] == "keep"
    words = ["tune", "apply", file, "--json", "--state-dir", module.params["state_dir"]]
    words += ["--confirm-within", module.params["confirm_within"], "--on-failure", "keep" if keeps else "undo"]
    if module.params["force"]:
        words.append("--force")
    result = program.run(words, accepted=(DONE, PARTIAL))[1]["result"]
    good = GOOD + (("ignored",) if module.params["allow_ignored"] else ())
    failed = [one for one in result["changes"] if one["outcome"] not in good]
    if (failed or result["stopped"]) and module.params["on_failure"] == "undo":
        if keeps and result["confirm_within_s"]:
            words = ["tune", "undo", str(result["journal"]), "--json", "--state-dir", module.params["state_dir"]]
            result["undone"] = program.run(words, accepted=(DONE, PARTIAL))[1]["result"]
        # What could not be undone is left to the watchdog.
        result["confirm_within_s"] = None
    return result, failed


def apply(module, program):
    handle, file = tempfile.mkstemp(prefix="rxpath-plan-", suffix=".toml", dir=module.tmpdir)
    os.close(handle)
    steps, left_out = plan(module, program, file)
    if steps:
        refuse_owned(module, program, steps)
    answer = dict(changed=bool(steps), left_out=left_out, waits=False)
    answer["changes"] = [dict(set=one["set"], before=one["old"], asked=one["new"]) for one in steps]
    answer["diff"] = dict(before=lines(steps, "old"), after=lines(steps, "new"),
                          before_header="settings now", after_header="settings of the plan")
    if not steps or module.check_mode:
        module.exit_json(**answer)
    result, failed = carry_out(module, program, file)
    changes = result["changes"]
    answer.update(changes=changes, journal=result["journal"], waits=bool(result["confirm_within_s"]))
    restored = set(one["set"] for one in result.get("undone", []) if one["state"] in ("restored", "already"))
    answer["changed"] = any(one["outcome"] in GOOD and one.get("after") != one["before"] and one["set"] not in restored
                            for one in changes)
    for one in changes:
        text = "%s: asked for %s, is %s (%s)" % (one["set"], one["asked"], one.get("after"), one["outcome"])
        if one in failed:
            module.fail_json(msg=": ".join(filter(None, [text, one.get("why")])), **answer)
        if one["outcome"] in ("rounded", "ignored"):
            module.warn(text)
    if result["stopped"]:
        module.fail_json(msg="stopped: %s" % result["stopped"], **answer)
    module.exit_json(**answer)


def confirm(module, program):
    words = ["tune", "confirm", "--json", "--state-dir", module.params["state_dir"]]
    if module.params["journal"] is not None:
        words.append(str(module.params["journal"]))
    if module.check_mode:
        module.exit_json(changed=False)
    result = program.run(words)[1]["result"]
    module.exit_json(changed=not result["already"], journal=result["journal"])


def undo(module, program):
    words = ["tune", "undo", "--json", "--state-dir", module.params["state_dir"]]
    words.append("--all" if module.params["journal"] is None else str(module.params["journal"]))
    if module.params["keep_foreign"]:
        words.append("--keep-foreign")
    # The values of now are in the answer of the dry run only.
    if module.check_mode:
        words.append("--dry-run")
    changes = program.run(words)[1]["result"]
    diff = dict(before="", after="".join("%s: %s\n" % (one["set"], one["value"]) for one in changes))
    changed = any(one["state"] == "restored" for one in changes)
    module.exit_json(changed=changed, changes=changes, diff=diff)


def main():
    module = AnsibleModule(argument_spec=arguments(), supports_check_mode=True,
                           mutually_exclusive=[("settings", "rules")])
    program = Program(module)
    {"applied": apply, "confirmed": confirm, "undone": undo}[module.params["state"]](module, program)


if __name__ == "__main__":
    main()
