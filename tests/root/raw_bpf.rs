//! Programs of two instructions, loaded as a stranger's would be: without this project's own loader.

use std::io::{Error, Result};
use std::os::fd::{FromRawFd, OwnedFd};

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
