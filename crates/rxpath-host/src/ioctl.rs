//! ethtool as an ioctl: how a command is sent.
//!
//! The question it answers: *how is the kernel asked, and is the buffer long enough for what it writes?* Readers send their
//! questions by [`call`], writers their requests by [`order`].

mod length;
pub(crate) mod number;

use std::os::fd::AsRawFd;

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use crate::HostError;
use crate::netlink::genl::refused;
use crate::netlink::wire::NAME_MAX;
use number::SIOCETHTOOL;

pub(crate) use length::RXNFC;

/// `struct ifreq` as `SIOCETHTOOL` reads it.
#[repr(C)]
struct Request {
    name: [u8; NAME_MAX + 1],
    data: *mut libc::c_void,
    /// The kernel copies a whole `struct ifreq` (40 bytes on 64-bit).
    rest: [u8; 24 - size_of::<*mut libc::c_void>()],
}

/// Sends one ethtool command; a refusal says whether privilege or the driver is missing.
///
/// `buffer` begins with the command; one that is shorter than that command makes the kernel write is refused.
pub(crate) fn call(op: &str, dev: &str, buffer: &mut [u8]) -> Result<(), HostError> {
    send(SIOCETHTOOL, op, dev, buffer)
}

/// As [`call`], for a request: a refusal is reported in the kernel's words.
pub(crate) fn order(op: &str, dev: &str, buffer: &mut [u8]) -> Result<(), HostError> {
    issue(SIOCETHTOOL, op, dev, buffer)
}

/// As [`call`], for another request than `SIOCETHTOOL`.
pub(crate) fn send(
    request_number: libc::Ioctl,
    op: &str,
    dev: &str,
    buffer: &mut [u8],
) -> Result<(), HostError> {
    issue(request_number, op, dev, buffer).map_err(|error| refused(&format!("{op} {dev}"), error))
}

/// As [`order`], for another request than `SIOCETHTOOL`.
pub(crate) fn issue(
    request_number: libc::Ioctl,
    op: &str,
    dev: &str,
    buffer: &mut [u8],
) -> Result<(), HostError> {
    if dev.is_empty() || dev.len() > NAME_MAX {
        return Err(HostError::kernel(format!("{op} {dev}"), libc::ENODEV));
    }
    if length::least(request_number, buffer).is_none_or(|least| buffer.len() < least) {
        let why = format!("{op} {dev}: the buffer is too short");
        return Err(HostError::malformed("ethtool", 0, why));
    }
    // Any socket carries the question; one that is not bound takes no port.
    let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)
        .map_err(|errno| HostError::kernel("open a socket", errno as i32))?;
    let mut request = Request {
        name: [0; NAME_MAX + 1],
        data: buffer.as_mut_ptr().cast(),
        rest: [0; 24 - size_of::<*mut libc::c_void>()],
    };
    request.name[..dev.len()].copy_from_slice(dev.as_bytes());
    // SAFETY: `request` is a whole ifreq; its data points to `buffer`, which outlives the call and is
    // as long as the command in its first word makes the kernel write (`length::least`).
    let rc = unsafe { libc::ioctl(socket.as_raw_fd(), request_number, &raw mut request) };
    if rc >= 0 {
        return Ok(());
    }
    Err(HostError::last_os(format_args!("{op} {dev}")))
}

/// The answer of so many bytes to a command and the words behind it, as [`call`].
pub(crate) fn ask(op: &str, dev: &str, head: &[u32], bytes: usize) -> Result<Vec<u8>, HostError> {
    let mut buffer = vec![0; bytes];
    put(&mut buffer, head);
    call(op, dev, &mut buffer)?;
    Ok(buffer)
}

/// Writes 32-bit words at the beginning of a buffer.
pub(crate) fn put(buffer: &mut [u8], words: &[u32]) {
    for (at, word) in buffer.as_chunks_mut().0.iter_mut().zip(words) {
        *at = word.to_ne_bytes();
    }
}
