//! Whether audit is on: from the kernel's own state, else from whether auditd runs.

use rxpath_host::read::netlink::audit::Audit;

use super::taps::unread;
use crate::prelude::*;

pub(super) fn audit(ask: &Ask<'_>) -> Checked {
    if matches!(ask.facts.kernel.parameter("audit"), Some("0" | "off")) {
        return Answer::fine("audit=0 on the kernel command line");
    }
    match (&ask.facts.answers.audit).known() {
        Ok(audit) => audited(audit),
        Err(gap) => by_daemon(ask, gap),
    }
}

/// Judges the kernel's own audit state.
fn audited(audit: &Audit) -> Checked {
    let rules = match audit.rules_count {
        0 => "no rule".to_owned(),
        1 => "1 rule".to_owned(),
        count => format!("{count} rules"),
    };
    if audit.enabled == 0 {
        return Answer::fine(format!("audit is off ({rules} loaded)"));
    }
    if audit.exempts_new_tasks {
        return Answer::fine("audit is on, and its first rule for tasks exempts all of them");
    }
    let daemon = if audit.has_daemon { "auditd takes its records" } else { "no auditd runs" };
    let locked = if audit.enabled == 2 { ", locked until the next boot" } else { "" };
    let found = Answer::found(
        format!(
            "audit is on{locked}: {rules} loaded, {} of them for system calls; {daemon}",
            audit.syscall_rules_count
        ),
        "no audit during a measurement, where that is allowed",
        "every system call takes the slow path",
    )
    .advice(AUDIT_ADVICE);
    // Without a rule nothing is compared: only the slow path costs time.
    if audit.syscall_rules_count == 0 { found.severity(Info) } else { found }
}

const AUDIT_ADVICE: &str = "auditctl -l lists the rules; they are never changed by rxpath";

/// If the kernel does not answer, a running auditd means that audit is on. No running auditd means that the state is
/// unknown.
fn by_daemon(ask: &Ask<'_>, gap: Gap) -> Checked {
    if ask.facts.processes.value().is_some_and(|processes| processes.runs("auditd")) {
        return Answer::found(
            format!("auditd runs (rules: {})", unread(gap)),
            "no audit rules during a measurement, where that is allowed",
            "every system call takes the slow path",
        )
        .advice(AUDIT_ADVICE);
    }
    let has_none = ask.facts.option("AUDITSYSCALL").value().is_some_and(|option| option == "n");
    match gap {
        Gap::Absent(_) if has_none => {
            Answer::silent("this kernel audits no system calls (CONFIG_AUDITSYSCALL)")
        }
        gap => Err(gap),
    }
}
