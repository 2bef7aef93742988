//! Programs from which a privilege or a system call is taken before they begin.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::libc;

/// A capability. **Source** include/uapi/linux/capability.h.
#[derive(Clone, Copy, Debug)]
pub enum Capability {
    NetAdmin = 12,
    SysNice = 23,
}

/// Takes a privilege away, also from root.
pub fn without(capability: Capability, command: &mut Command) -> &mut Command {
    let number = capability as libc::c_ulong;
    let drop_it = move || {
        // SAFETY: plain integers. Without CAP_SETPCAP it is refused, and then there is no privilege to take either.
        unsafe { libc::prctl(libc::PR_CAPBSET_DROP, number, 0, 0, 0) };
        Ok(())
    };
    // SAFETY: only prctl is called between fork and exec.
    unsafe { command.pre_exec(drop_it) }
}

/// Lets two system calls fail with this error number.
pub fn without_calls(command: &mut Command, calls: [libc::c_long; 2], errno: i32) -> &mut Command {
    let deny = move || {
        let op = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
        let is = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
        let mut program = [
            op(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
            op(is, 1, 0, calls[0] as u32),
            op(is, 0, 1, calls[1] as u32),
            op(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | errno as u32),
            op(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
        ];
        let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
        // SAFETY: the program outlives the calls, which copy it; both are async-signal-safe.
        let done = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter)
        };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    };
    // SAFETY: only prctl is called between fork and exec.
    unsafe { command.pre_exec(deny) }
}
