//! Programs of two instructions, loaded as a stranger's would be: without this project's own loader.

use std::io::{Error, Result};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use nix::libc;

/// The part of `union bpf_attr` that a load needs. **Source** include/uapi/linux/bpf.h, `BPF_PROG_LOAD`.
#[repr(C)]
struct Load {
    kind: u32,
    instructions: u32,
    code: u64,
    license: u64,
    log: [u32; 2],
    log_buffer: u64,
    version: u32,
    flags: u32,
    name: [u8; 16],
}

/// A BPF system call with `attributes`, laid out as the kernel's union: a new descriptor, or the kernel's refusal.
pub fn call<T>(command: libc::c_long, attributes: &T) -> Result<OwnedFd> {
    let ask = std::ptr::from_ref(attributes);
    // SAFETY: the length of `attributes` is told, and what it points to outlives the call.
    let fd = unsafe { libc::syscall(libc::SYS_bpf, command, ask, size_of::<T>()) };
    if fd < 0 {
        return Err(Error::last_os_error());
    }
    // SAFETY: the kernel just made this descriptor for us, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// Loads a program of this kind (`BPF_PROG_TYPE_*`) under a name of at most 15 letters.
pub fn load(kind: u32, code: &[u64], name: &str) -> Result<OwnedFd> {
    const PROG_LOAD: libc::c_long = 5;
    let mut load = Load {
        kind,
        instructions: code.len() as u32,
        code: code.as_ptr() as u64,
        license: c"GPL".as_ptr() as u64,
        log: [0; 2],
        log_buffer: 0,
        version: 0,
        flags: 0,
        name: [0; 16],
    };
    load.name[..name.len()].copy_from_slice(name.as_bytes());
    call(PROG_LOAD, &load)
}

/// `BPF_PROG_TYPE_SCHED_CLS`, a classifier of tc.
pub const SCHED_CLS: u32 = 3;

/// A program of this kind that gives the same answer for each packet: mov32 r0, answer; exit.
pub fn answering(kind: u32, answer: u32, name: &str) -> Result<OwnedFd> {
    load(kind, &[0xb4 | u64::from(answer) << 32, 0x95], name)
}

/// Attaches a program to a device in this way (`BPF_*` of `enum bpf_attach_type`, flags), until the link is dropped.
///
/// **Source** `link_create` of `union bpf_attr`.
pub fn attach(program: &OwnedFd, ifindex: u32, [how, flags]: [u32; 2]) -> Result<OwnedFd> {
    const LINK_CREATE: libc::c_long = 28;
    call(LINK_CREATE, &[program.as_raw_fd() as u32, ifindex, how, flags, 0, 0, 0, 0])
}
