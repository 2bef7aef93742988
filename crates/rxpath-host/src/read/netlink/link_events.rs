//! Links as they change: the kernel reports each change to those that listen.

use std::io;

use libc::{RTM_NEWLINK, RTNLGRP_LINK};
use netlink_sys::Socket;
use netlink_sys::protocols::NETLINK_ROUTE;

use super::link::NetworkLink;
use crate::HostError;
use crate::netlink::socket::BUFFER;
use crate::netlink::wire::frames;

const OP: &str = "listen to changes of links";

/// Changes of the links of a network namespace, from the opening on.
///
/// **Caveat** a change of the carrier within a second of another one may be reported up to a second later.
/// **Source** net/core/rtnetlink.c `rtmsg_ifinfo`, net/core/link_watch.c `linkwatch_schedule_work`.
#[derive(Debug)]
pub struct LinkEvents {
    socket: Socket,
    buffer: Vec<u8>,
}

impl LinkEvents {
    /// Listens in the network namespace of this thread.
    ///
    /// **Errors** `Kernel`.
    pub fn open() -> Result<Self, HostError> {
        let socket = listening().map_err(|error| HostError::os(OP, &error))?;
        Ok(Self { socket, buffer: Vec::with_capacity(BUFFER) })
    }

    /// The links that changed since the last call, as they were then, in order. Never waits.
    ///
    /// **Errors** `Kernel` with `ENOBUFS` if reports were lost.
    pub fn take(&mut self) -> Result<Vec<NetworkLink>, HostError> {
        let mut links = Vec::new();
        loop {
            self.buffer.clear();
            match self.socket.recv_from(&mut self.buffer, libc::MSG_DONTWAIT) {
                // Only the kernel (port 0) reports; others may send to an unprivileged port.
                Ok((_, from)) if from.port_number() != 0 => {}
                Ok(_) => {
                    let frames = frames(&self.buffer)?;
                    for frame in frames.iter().filter(|frame| frame.kind == RTM_NEWLINK) {
                        links.push(NetworkLink::parse(frame.payload)?);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(links),
                Err(error) => return Err(HostError::os(OP, &error)),
            }
        }
    }
}

fn listening() -> io::Result<Socket> {
    let mut socket = Socket::new(NETLINK_ROUTE)?;
    socket.bind_auto()?;
    socket.add_membership(RTNLGRP_LINK)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::Netlink;

    #[test]
    fn a_link_that_is_set_up_is_reported_to_who_listened_before() {
        let asked = std::thread::spawn(|| {
            nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET)?;
            let mut events = LinkEvents::open().unwrap();
            assert!(events.take().unwrap().is_empty(), "nothing is waited for");
            Netlink::route().unwrap().set_up("lo", true).unwrap();
            let is_up = |link: &NetworkLink| link.name == "lo" && link.is_up();
            assert!(events.take().unwrap().iter().any(is_up));
            Ok::<(), nix::Error>(())
        });
        if let Err(errno) = asked.join().unwrap() {
            crate::skip::skip("thread_netns", &errno.to_string());
        }
    }
}
