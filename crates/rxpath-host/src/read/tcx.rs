//! Programs that tcx runs for each packet of a device.
//!
//! The question it answers: *which BPF programs are attached to a device's ingress and egress without a qdisc?* The
//! kernel tells it by `bpf(BPF_PROG_QUERY)` alone; netlink has no message for it. Nothing here loads, attaches or
//! detaches a program. Programs of netkit devices have attach points of their own and are not asked for.
//!
//! **Source** kernel/bpf/tcx.c `tcx_prog_query`, kernel/bpf/mprog.c `bpf_mprog_query` (6.6); include/uapi/linux/bpf.h.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::HostError;
use crate::netlink::wire;

/// `enum bpf_cmd`.
const PROG_GET_FD_BY_ID: libc::c_long = 13;
const OBJ_GET_INFO_BY_FD: libc::c_long = 15;
const PROG_QUERY: libc::c_long = 16;
/// `enum bpf_attach_type`.
const TCX_INGRESS: u32 = 46;
const TCX_EGRESS: u32 = 47;
/// `BPF_MPROG_MAX` of include/linux/bpf_mprog.h: no attach point holds more.
const MAX_PROGRAMS: usize = 64;
/// Where `name` lies in `struct bpf_prog_info`, and how long it is (`BPF_OBJ_NAME_LEN`).
const INFO_NAME: std::ops::Range<usize> = 64..80;

const OP: &str = "list the device's tcx programs";

/// What may ask: `bpf_net_capable` of include/linux/capability.h, which looks at the initial user namespace.
const NEEDED: &str = "CAP_NET_ADMIN (in the initial user namespace)";

/// A BPF program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TcxProgram {
    /// Its number.
    pub program_id: u32,
    /// Its name; `None` when it has none, or when `CAP_SYS_ADMIN` would show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// The programs of a device, each list in the order in which they run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Tcx {
    /// Before the stack, for each received packet.
    pub ingress: Vec<TcxProgram>,
    /// Behind the stack, for each packet that is sent.
    pub egress: Vec<TcxProgram>,
}

/// The programs of the device of this index in the calling thread's network namespace.
///
/// **Cost** two system calls and three for each program. **Errors** `Denied` without `CAP_NET_ADMIN`, `Unsupported`
/// before 6.6 and without `CONFIG_NET_XGRESS`, `Missing` when the device is gone.
pub fn read(ifindex: u32) -> Result<Tcx, HostError> {
    Ok(Tcx { ingress: attached(ifindex, TCX_INGRESS)?, egress: attached(ifindex, TCX_EGRESS)? })
}

/// The `query` part of `union bpf_attr`.
#[derive(Default)]
#[repr(C)]
struct Query {
    ifindex: u32,
    attach_type: u32,
    query_flags: u32,
    attach_flags: u32,
    program_ids: u64,
    count: u32,
    padding: u32,
    program_flags: u64,
    link_ids: u64,
    link_flags: u64,
    revision: u64,
}

fn attached(ifindex: u32, attach_type: u32) -> Result<Vec<TcxProgram>, HostError> {
    let mut ids = [0_u32; MAX_PROGRAMS];
    let mut query = Query {
        ifindex,
        attach_type,
        program_ids: ids.as_mut_ptr() as u64,
        count: MAX_PROGRAMS as u32,
        ..Query::default()
    };
    // SAFETY: `query` is laid out as the kernel's union and its length is passed; `program_ids` points to `count` numbers that
    // live beyond the call.
    let rc =
        unsafe { libc::syscall(libc::SYS_bpf, PROG_QUERY, &raw mut query, size_of::<Query>()) };
    if rc < 0 {
        return Err(refused(ifindex, io::Error::last_os_error().raw_os_error()));
    }
    let count = (query.count as usize).min(MAX_PROGRAMS);
    Ok(ids[..count].iter().map(|id| TcxProgram { program_id: *id, name: name(*id) }).collect())
}

fn refused(ifindex: u32, errno: Option<i32>) -> HostError {
    match errno {
        Some(libc::EPERM | libc::EACCES) => {
            HostError::Denied { what: OP.into(), capability: NEEDED.into() }
        }
        // An attach type that the kernel does not know, or knows no code for (tcx_prog_query of include/net/tcx.h).
        Some(libc::EINVAL | libc::ENOSYS) => {
            HostError::unsupported(OP, "Linux 6.6 with CONFIG_NET_XGRESS: this kernel has no tcx")
        }
        Some(libc::ENODEV) => {
            HostError::Missing { path: format!("network device {ifindex}").into() }
        }
        errno => HostError::kernel(OP, errno.unwrap_or(libc::EIO)),
    }
}

/// A program's name; `None` when it has none or may not be asked for it.
fn name(id: u32) -> Option<String> {
    // `struct { prog_id, next_id, open_flags }` of `union bpf_attr`.
    let ask = [id, 0, 0];
    // SAFETY: `ask` is laid out as the kernel's union and its length is passed.
    let fd =
        unsafe { libc::syscall(libc::SYS_bpf, PROG_GET_FD_BY_ID, ask.as_ptr(), size_of_val(&ask)) };
    if fd < 0 {
        return None;
    }
    // SAFETY: the kernel just made this descriptor for us, and nobody else knows it.
    let program = unsafe { OwnedFd::from_raw_fd(fd as i32) };
    let mut info = [0_u8; 128];
    // `struct { bpf_fd, info_len, info }`: the third is an address, in two words of this machine's order.
    let address = (info.as_mut_ptr() as u64).to_ne_bytes();
    let mut ask = [0_u8; 16];
    ask[..4].copy_from_slice(&program.as_raw_fd().to_ne_bytes());
    ask[4..8].copy_from_slice(&(info.len() as u32).to_ne_bytes());
    ask[8..].copy_from_slice(&address);
    // SAFETY: `ask` is laid out as the kernel's union and its length is passed; `info` is as long as `ask` says and zero,
    // so that the kernel takes none of its fields for an address to write to.
    let rc =
        unsafe { libc::syscall(libc::SYS_bpf, OBJ_GET_INFO_BY_FD, ask.as_mut_ptr(), ask.len()) };
    if rc < 0 {
        return None;
    }
    Some(wire::text(info.get(INFO_NAME)?)).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::running_kernel;

    #[test]
    fn numbers_are_those_of_the_running_kernel() {
        let Some(running) = running_kernel::enumerators("BPF_") else { return };
        for (name, ours) in [
            ("BPF_PROG_GET_FD_BY_ID", PROG_GET_FD_BY_ID as u32),
            ("BPF_OBJ_GET_INFO_BY_FD", OBJ_GET_INFO_BY_FD as u32),
            ("BPF_PROG_QUERY", PROG_QUERY as u32),
        ] {
            assert_eq!(running.get(name), Some(&ours), "{name}");
        }
        // These came with 6.6.
        for (name, ours) in [("BPF_TCX_INGRESS", TCX_INGRESS), ("BPF_TCX_EGRESS", TCX_EGRESS)] {
            assert!(running.get(name).is_none_or(|theirs| *theirs == ours), "{name}");
        }
    }

    #[test]
    fn each_refusal_says_what_would_help() {
        let of = |errno| crate::error::fact::<Tcx>(Err(refused(7, Some(errno)))).gap().unwrap();
        assert_eq!(of(libc::EPERM), format!("denied: needs {NEEDED}"));
        assert!(of(libc::EINVAL).contains("this kernel has no tcx"), "{}", of(libc::EINVAL));
        assert!(of(libc::ENODEV).contains("network device 7"), "{}", of(libc::ENODEV));
        assert!(of(libc::EFAULT).contains("Bad address"), "{}", of(libc::EFAULT));
    }

    #[test]
    fn a_device_that_is_not_there_is_a_gap() {
        // Which of the gaps depends on the kernel and on what this process may do.
        let error = read(i32::MAX as u32).unwrap_err();
        let known = matches!(
            error,
            HostError::Denied { .. } | HostError::Unsupported { .. } | HostError::Missing { .. }
        );
        assert!(known, "{error}");
    }
}
