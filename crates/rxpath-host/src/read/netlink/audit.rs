//! Audit: whether the kernel audits system calls, and with how many rules.
//!
//! The question it answers: *does a system call of a program here take the slow way through audit?* Rules outlive the
//! daemon that loaded them, so the kernel is asked and not the list of programs. What the rules watch is not kept: only
//! how many there are. Nothing here changes audit.
//!
//! **Source** include/uapi/linux/audit.h; kernel/audit.c `audit_receive_msg`, kernel/auditfilter.c. The kernel answers from a
//! thread of its own, so that an acknowledgement may come before the answer: none is asked for.

use caps::Capability;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::netlink::socket::Netlink;
use crate::netlink::wire::word32;
use crate::{HostError, caps as own_caps};

const AUDIT_GET: u16 = 1000;
const AUDIT_LIST_RULES: u16 = 1013;

/// Lists of rules, and the flag next to their number.
const LIST_USER: u32 = 0;
const LIST_TASK: u32 = 1;
const LIST_EXCLUDE: u32 = 5;
const LIST_FILESYSTEM: u32 = 6;
const PREPEND: u32 = 0x10;
/// Action of a rule that makes no record.
const NEVER: u32 = 0;

const OP: &str = "ask the audit system";

/// The audit system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Audit {
    /// 0 off, 1 on, 2 on and locked until the next boot.
    pub enabled: u32,
    /// Whether a daemon takes the records.
    pub has_daemon: bool,
    /// Rules of all lists.
    pub rules_count: u32,
    /// Rules for which system calls are looked at: all but those of the lists user, exclude and filesystem.
    pub syscall_rules_count: u32,
    /// Whether programs that are started get no audit at all: the first rule for new tasks is `-a task,never`.
    pub exempts_new_tasks: bool,
    /// Records that were lost.
    pub lost_total: u32,
}

/// What `AUDIT_GET` tells: `enabled`, `has_daemon`, `lost_total`.
///
/// **Source** `struct audit_status`, which grew at its end.
pub fn parse_audit_status(payload: &[u8]) -> Result<Audit, HostError> {
    let word = |n, what: &str| {
        word32(payload, n).ok_or_else(|| {
            HostError::malformed("netlink", 0, format!("audit's state ends before {what}"))
        })
    };
    Ok(Audit {
        enabled: word(1, "enabled")?,
        has_daemon: word(3, "the daemon's number")? != 0,
        lost_total: word(6, "lost")?,
        ..Audit::default()
    })
}

/// The list of a rule, and whether it exempts whatever it is asked about.
///
/// **Source** `struct audit_rule_data`: flags, action, number of fields, then masks and fields.
pub fn parse_audit_rule(payload: &[u8]) -> Result<(u32, bool), HostError> {
    let [Some(flags), Some(action), Some(fields)] = [0, 1, 2].map(|n| word32(payload, n)) else {
        return Err(HostError::malformed("netlink", 0, "an audit rule ends before its fields"));
    };
    Ok((flags & !PREPEND, action == NEVER && fields == 0))
}

/// Counts rules in the order in which the kernel lists them.
fn counted<'a>(
    mut audit: Audit,
    rules: impl Iterator<Item = &'a [u8]>,
) -> Result<Audit, HostError> {
    let mut first_for_tasks = None;
    for payload in rules {
        let (list, exempts) = parse_audit_rule(payload)?;
        audit.rules_count += 1;
        audit.syscall_rules_count +=
            u32::from(![LIST_USER, LIST_EXCLUDE, LIST_FILESYSTEM].contains(&list));
        if list == LIST_TASK {
            first_for_tasks = first_for_tasks.or(Some(exempts));
        }
    }
    audit.exempts_new_tasks = first_for_tasks == Some(true);
    Ok(audit)
}

impl Netlink {
    /// Audit.
    ///
    /// **Errors** `Unsupported` when the kernel has none or was started with `audit=0`.
    pub fn audit() -> Result<Self, HostError> {
        Self::open(netlink_sys::protocols::NETLINK_AUDIT).map_err(refused)
    }

    /// State and rules. On a [`Netlink::audit`] socket.
    ///
    /// **Errors** `Denied` without `CAP_AUDIT_CONTROL`; `Unsupported` outside the initial user and PID namespaces, where the
    /// kernel answers nobody.
    pub fn audit_state(&mut self) -> Result<Audit, HostError> {
        let state = self.first(OP, AUDIT_GET, &[]).map_err(refused)?;
        let audit = parse_audit_status(&state)?;
        let rules = self.list(OP, AUDIT_LIST_RULES, &[]).map_err(refused)?;
        counted(audit, rules.iter().map(Vec::as_slice))
    }
}

/// **Source** kernel/audit.c `audit_netlink_ok`: `ECONNREFUSED` outside the initial user namespace, `EPERM` outside the
/// initial PID namespace and without the capability.
fn refused(error: HostError) -> HostError {
    let HostError::Kernel { errno, .. } = error else { return error };
    let needed = Capability::CAP_AUDIT_CONTROL;
    let needs = match errno {
        libc::EPERM if !own_caps::has(needed) => {
            return HostError::Denied { what: OP.into(), capability: needed.to_string() };
        }
        libc::EPERM => "the initial PID namespace",
        libc::ECONNREFUSED => {
            "the initial user namespace, and a kernel that was not started with audit=0"
        }
        libc::EPROTONOSUPPORT => "a kernel with CONFIG_AUDIT that was not started with audit=0",
        _ => return error,
    };
    HostError::Unsupported { what: OP.into(), needs: needs.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::any_bytes::takes_any_bytes;

    /// A rule as the kernel lists it, without its masks: nothing here reads them.
    fn rule(flags: u32, action: u32, fields: u32) -> Vec<u8> {
        [flags, action, fields, 0, 0].iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    fn of(rules: &[Vec<u8>]) -> Audit {
        counted(Audit::default(), rules.iter().map(Vec::as_slice)).unwrap()
    }

    #[test]
    fn a_state_is_read_and_a_cut_one_is_refused() {
        // Of Linux 6.18, with a daemon, locked.
        let words: [u32; 11] = [0, 2, 1, 812, 0, 8192, 5, 0, 0x7f, 15_000, 0];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let state = parse_audit_status(&bytes).unwrap();
        assert_eq!((state.enabled, state.has_daemon, state.lost_total), (2, true, 5));
        // The oldest form has 32 bytes.
        assert_eq!(parse_audit_status(&bytes[..32]).unwrap(), state);
        for end in 0..28 {
            assert!(parse_audit_status(&bytes[..end]).is_err(), "{end}");
        }
    }

    #[test]
    fn rules_are_counted_by_what_they_look_at() {
        const EXIT: u32 = 4;
        const ALWAYS: u32 = 2;
        let all = of(&[
            rule(EXIT, ALWAYS, 2),
            rule(LIST_USER, NEVER, 1),
            rule(LIST_EXCLUDE, ALWAYS, 1),
            rule(LIST_FILESYSTEM, NEVER, 1),
            rule(EXIT | PREPEND, NEVER, 0),
        ]);
        assert_eq!((all.rules_count, all.syscall_rules_count), (5, 2));
        assert!(!all.exempts_new_tasks, "a rule of another list");
        assert!(of(&[rule(LIST_TASK, NEVER, 0), rule(LIST_TASK, ALWAYS, 1)]).exempts_new_tasks);
        assert!(!of(&[rule(LIST_TASK, ALWAYS, 1), rule(LIST_TASK, NEVER, 0)]).exempts_new_tasks);
        assert!(!of(&[rule(LIST_TASK, NEVER, 1)]).exempts_new_tasks, "some tasks alone");
        for end in 0..12 {
            assert!(parse_audit_rule(&rule(EXIT, ALWAYS, 2)[..end]).is_err(), "{end}");
        }
    }

    #[test]
    fn each_refusal_says_what_would_help() {
        let of = |errno| crate::error::fact::<Audit>(Err(refused(HostError::kernel(OP, errno))));
        assert!(of(libc::ECONNREFUSED).gap().unwrap().contains("initial user namespace"));
        assert!(of(libc::EPROTONOSUPPORT).gap().unwrap().contains("CONFIG_AUDIT"));
        let may = own_caps::has(Capability::CAP_AUDIT_CONTROL);
        let wanted = if may { "initial PID namespace" } else { "denied: needs CAP_AUDIT_CONTROL" };
        assert!(of(libc::EPERM).gap().unwrap().contains(wanted));
    }

    /// The kernel that runs the test is asked: an answer with the right is whole, one without it names the right.
    #[test]
    fn the_running_kernel_answers_or_says_why_not() {
        match Netlink::audit().and_then(|mut netlink| netlink.audit_state()) {
            Ok(state) => {
                assert!(state.enabled <= 2 && state.syscall_rules_count <= state.rules_count);
            }
            Err(HostError::Denied { capability, .. }) => {
                assert_eq!(capability, "CAP_AUDIT_CONTROL");
            }
            Err(HostError::Unsupported { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }

    takes_any_bytes!(80, bytes => parse_audit_status(&bytes), parse_audit_rule(&bytes));
}
