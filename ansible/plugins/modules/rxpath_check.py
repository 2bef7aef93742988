#!/usr/bin/python
# Copyright (c) 2026, The rxpath authors
# SPDX-License-Identifier: MIT OR Apache-2.0

from __future__ import annotations

DOCUMENTATION = r"""
module: rxpath_check
short_description: Check the receive path settings of a host
version_added: "0.1.0"
description:
  - Runs C(rxpath check) on the managed host and returns its findings.
  - The module never changes anything, so it does the same in check mode. It needs no root, but sees more with it.
author:
  - The rxpath authors (@rxpath)
requirements:
  - rxpath on the managed host
attributes:
  check_mode:
    description: Nothing is changed with or without check mode.
    support: full
  diff_mode:
    description: There is no change to show.
    support: none
options:
  goal:
    description: Workload goal of the host. Without it, only rules that hold for all goals apply.
    type: str
    choices: [latency, throughput, fairness, benchmark]
  devices:
    description: Check only these devices.
    type: list
    elements: str
    default: []
  window:
    description: Watch the counters for this long, for example V(30s). Only counts within this time are judged as present.
    type: str
    default: 250ms
  fail_on:
    description: Fail the task if a finding is at least this severe.
    type: str
    choices: [warn, fail]
  executable:
    description: Name or path of rxpath on the managed host.
    type: str
    default: rxpath
"""

EXAMPLES = r"""
- name: Check the host
  rxpath.rxpath.rxpath_check:
    goal: throughput
  register: rxpath

- name: Show what it found
  ansible.builtin.debug:
    msg: "{{ rxpath.findings | map(attribute='id') | list }}"

- name: Stop a rollout at a host that is set up wrong
  rxpath.rxpath.rxpath_check:
    fail_on: fail
"""

RETURN = r"""
findings:
  description: The findings, the most severe ones first.
  returned: always
  type: list
  elements: dict
fingerprint:
  description: A hash over the settings that matter. Hosts with equal settings have equal fingerprints.
  returned: always
  type: str
report:
  description: The whole report, as C(rxpath check --format ndjson) prints it. Queries over many of them are in fleet/.
  returned: always
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.rxpath.rxpath.plugins.module_utils.rxpath import DONE, NEGATIVE, Program, at_least


def main():
    module = AnsibleModule(
        argument_spec=dict(
            goal=dict(type="str", choices=["latency", "throughput", "fairness", "benchmark"]),
            devices=dict(type="list", elements="str", default=[]),
            window=dict(type="str", default="250ms"),
            fail_on=dict(type="str", choices=["warn", "fail"]),
            executable=dict(type="str", default="rxpath"),
        ),
        supports_check_mode=True,
    )
    words = ["check", "--format", "ndjson", "--window", module.params["window"]]
    if module.params["goal"]:
        words += ["--goal", module.params["goal"]]
    for device in module.params["devices"]:
        words += ["--dev", device]
    if module.params["fail_on"]:
        words += ["--fail-on", module.params["fail_on"]]
    status, report = Program(module).run(words, accepted=(DONE, NEGATIVE))
    findings = report["result"]["findings"]
    answer = dict(changed=False, findings=findings, fingerprint=report["fingerprint"], report=report)
    if status == NEGATIVE:
        limit = module.params["fail_on"]
        module.fail_json(msg="findings at or above %s: %s" % (limit, ", ".join(at_least(findings, limit))), **answer)
    module.exit_json(**answer)


if __name__ == "__main__":
    main()
