//! A debugger that holds a process: `pid=N`. When it ends, the process goes on.

use nix::libc;

use super::counts::Counts;
use super::words::Words;

pub fn play(words: &Words) {
    let counts = Counts::open();
    let pid: libc::pid_t = words.get("pid", 0);
    // Not PTRACE_ATTACH: the SIGSTOP that it sends would outlive the debugger.
    for request in [libc::PTRACE_SEIZE, libc::PTRACE_INTERRUPT] {
        let none = std::ptr::null_mut::<libc::c_void>();
        // SAFETY: these requests take no memory.
        let done = unsafe { libc::ptrace(request, pid, none, none) };
        assert_eq!(done, 0, "ptrace: {}", std::io::Error::last_os_error());
    }
    counts.ready();
    loop {
        std::thread::park();
    }
}
