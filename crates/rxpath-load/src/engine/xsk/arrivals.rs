//! Waiting for several AF_XDP sockets at once.

use std::io;

use super::Xsk;
use crate::engine::socket;

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
        let one =
            |xsk: &Xsk| libc::pollfd { fd: xsk.socket.fd(), events: libc::POLLIN, revents: 0 };
        self.0.clear();
        self.0.extend(sockets.map(one));
        socket::poll(&mut self.0, timeout_ms)
    }
}
