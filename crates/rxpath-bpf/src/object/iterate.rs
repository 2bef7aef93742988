//! Running an iterator.

use std::io::Read;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rxpath_host::HostError;

/// Runs an attached iterator from end to end, over what is in the network namespace of the calling thread, and gives
/// what it wrote.
///
/// **Source** kernel/bpf/bpf_iter.c `bpf_iter_new_fd`; fs/proc/proc_net.c `bpf_iter_init_seq_net`.
pub fn read_iterator(link: BorrowedFd<'_>) -> Result<Vec<u8>, HostError> {
    let what = "run an iterator over sockets";
    // SAFETY: takes a number, touches no memory of ours; the descriptor it gives has no other owner.
    let fd = unsafe { libbpf_sys::bpf_iter_create(link.as_raw_fd()) };
    if fd < 0 {
        return Err(HostError::kernel(what, -fd));
    }
    // SAFETY: just opened, see above.
    let mut walk = std::fs::File::from(unsafe { OwnedFd::from_raw_fd(fd) });
    let mut written = Vec::new();
    let mut part = [0; 4096];
    loop {
        match walk.read(&mut part) {
            Ok(0) => return Ok(written),
            Ok(count) => written.extend_from_slice(&part[..count]),
            // A walk that takes long gives way now and then.
            Err(e) if matches!(e.raw_os_error(), Some(libc::EAGAIN | libc::EINTR)) => {}
            Err(e) => return Err(HostError::os(what, &e)),
        }
    }
}
