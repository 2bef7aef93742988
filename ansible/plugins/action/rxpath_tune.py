# Copyright (c) 2026, The rxpath authors
# SPDX-License-Identifier: MIT OR Apache-2.0

"""Applies a plan on the host, then confirms it over a new connection: proof that the host can still be reached."""

from __future__ import annotations

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    """The controller's part of rxpath_tune."""

    def run(self, tmp=None, task_vars=None):
        super().run(tmp, task_vars)
        arguments = dict(self._task.args)
        result = self._execute_module(module_args=arguments, task_vars=task_vars)
        wants = self._templar.template(arguments.get("confirm", True))
        is_wanted = str(wants).lower() not in ("false", "no", "off", "0", "n", "f")
        # After a failure too: what is kept then would be undone.
        if not result.get("waits") or not is_wanted:
            return result
        try:
            # The connection that is there may outlive a change that lets no new one in.
            self._connection.reset()
        except AttributeError:
            # A local connection has nothing to open again.
            pass
        keep = {name: arguments[name] for name in ("executable", "state_dir") if name in arguments}
        try:
            confirmed = self._execute_module(
                module_args=dict(keep, state="confirmed", journal=result["journal"]), task_vars=task_vars)
        except AnsibleConnectionFailure as error:
            within = arguments.get("confirm_within", "60s")
            raise AnsibleConnectionFailure(
                "not reached after the change; the host undoes it within %s: %s" % (within, error)) from error
        if confirmed.get("failed"):
            # What was written is undone: nothing changed.
            why = filter(None, [result.get("msg"), "not confirmed: %s" % confirmed.get("msg")])
            return dict(result, failed=True, changed=False, waits=False, msg="; ".join(why))
        return dict(result, waits=False)
