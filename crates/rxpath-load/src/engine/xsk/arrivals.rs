//! Waiting for several AF_XDP sockets at once.

use std::io;

use super::Xsk;

/// A wait for several sockets. Its list is kept from one wait to the next, so that a wait allocates nothing.
#[derive(Debug, Default)]
pub struct Arrivals(Vec<libc::pollfd>);

impl Arrivals {
    /// Waits until one of these sockets has received something; `Ok(false)` when the time is up or a signal came.
    ///
    /// The sockets are borrowed for the whole wait: their descriptors are open while the kernel polls them.
    pub fn wait<'a>(
        &mut self,
        sockets: impl Iterator<Item = &'a Xsk>,
        timeout_ms: i32,
    ) -> io::Result<bool> {
        let poll =
            |xsk: &Xsk| libc::pollfd { fd: xsk.socket.fd(), events: libc::POLLIN, revents: 0 };
        self.0.clear();
        self.0.extend(sockets.map(poll));
        // SAFETY: the pointer and the number describe the list.
        match unsafe { libc::poll(self.0.as_mut_ptr(), self.0.len() as _, timeout_ms) } {
            n if n >= 0 => Ok(n > 0),
            _ => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => Ok(false),
                error => Err(error),
            },
        }
    }
}
