//! A netlink socket that asks one question at a time and waits for the whole answer.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST,
    NLMSG_DONE, NLMSG_ERROR,
};
use netlink_sys::{Socket, SocketAddr};
use nix::sys::socket::{setsockopt, sockopt};
use nix::sys::time::TimeVal;

use super::wire::{NetlinkMessage, frames, message, verdict};
use crate::HostError;

/// Make it, refuse when it is there.
pub(crate) const CREATE: u16 = NLM_F_CREATE | NLM_F_EXCL;
/// Make it, or change what is there.
pub(crate) const REPLACE: u16 = NLM_F_CREATE | NLM_F_REPLACE;
/// Make it where it is not there.
pub(crate) const CREATE_OR_KEEP: u16 = NLM_F_CREATE;

/// Longest wait for the kernel's answer. It answers inside `sendmsg`, except for a dump's later parts.
const ANSWER_TIMEOUT_S: libc::time_t = 5;
/// A dump that changed while it was read is asked for again, so often.
const ATTEMPTS: u32 = 8;
/// Requests by one system call, each of which may be refused: a refusal takes some 800 bytes of the receive buffer
/// (`netlink_ack`), and of 400 the last found no room in one of 208 KiB.
const IN_FLIGHT: usize = 64;
/// Room for answers once one was lost. The kernel gives what `net.core.rmem_max` allows.
const MORE_ROOM: usize = 1 << 20;
/// Dump messages are at most 32 KiB (`netlink_recvmsg`, `NLMSG_GOODSIZE`).
pub(crate) const BUFFER: usize = 32 * 1024;

/// What the running kernel says of a family of generic netlink.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// Its number.
    pub number: u16,
    /// The commands that it takes; those of later kernels are not among them.
    pub commands: BTreeSet<u8>,
}

/// A connection to one netlink family, in the network namespace of the thread that opened it.
#[derive(Debug)]
pub struct Netlink {
    socket: Socket,
    sequence: u32,
    buffer: Vec<u8>,
    /// Numbers of the generic families that were asked for: they hold until the module is unloaded.
    pub(super) families: BTreeMap<&'static str, Option<Known>>,
}

enum Failure {
    /// Ask again: the answer got lost or is inconsistent, and asking changes nothing.
    Again(HostError),
    Final(HostError),
}

impl From<Failure> for HostError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Again(error) | Failure::Final(error) => error,
        }
    }
}

impl Netlink {
    /// Links, addresses, routes, neighbours, qdiscs.
    pub fn route() -> Result<Self, HostError> {
        Self::open(netlink_sys::protocols::NETLINK_ROUTE)
    }

    /// Sockets.
    pub fn sock_diag() -> Result<Self, HostError> {
        Self::open(netlink_sys::protocols::NETLINK_SOCK_DIAG)
    }

    /// Netfilter: hooks and connection tracking.
    pub fn netfilter() -> Result<Self, HostError> {
        Self::open(netlink_sys::protocols::NETLINK_NETFILTER)
    }

    /// Generic netlink: ethtool, netdev.
    pub fn generic() -> Result<Self, HostError> {
        Self::open(netlink_sys::protocols::NETLINK_GENERIC)
    }

    /// What is open, or is opened now, by this thread: a netlink socket belongs to its opener's namespace for ever.
    pub(crate) fn opened(
        slot: &mut Option<Self>,
        open: fn() -> Result<Self, HostError>,
    ) -> Result<&mut Self, HostError> {
        match slot {
            Some(open) => Ok(open),
            empty => Ok(empty.insert(open()?)),
        }
    }

    pub(crate) fn open(protocol: isize) -> Result<Self, HostError> {
        let socket = connect(protocol).map_err(|e| HostError::os("open a netlink socket", &e))?;
        let buffer = Vec::with_capacity(BUFFER);
        Ok(Self { socket, sequence: 0, buffer, families: BTreeMap::new() })
    }

    /// Asks for all objects of a kind. An answer is what follows the headers of its messages, which are of one type.
    ///
    /// **Errors** `Kernel`; a dump that other changes interrupt is asked for again, 8 times at most.
    pub fn dump(&mut self, op: &str, kind: u16, body: &[u8]) -> Result<Vec<Vec<u8>>, HostError> {
        self.repeat(op, kind, NLM_F_DUMP, body)
    }

    /// Asks for one object.
    pub fn get(&mut self, op: &str, kind: u16, body: &[u8]) -> Result<Vec<Vec<u8>>, HostError> {
        self.repeat(op, kind, NLM_F_ACK, body)
    }

    /// Asks for a list of a family that ends it with a mark of its own and acknowledges out of order.
    pub(crate) fn list(
        &mut self,
        op: &str,
        kind: u16,
        body: &[u8],
    ) -> Result<Vec<Vec<u8>>, HostError> {
        self.repeat(op, kind, 0, body)
    }

    /// Asks for one object of a family that neither marks the end nor acknowledges in order: the first answer is it.
    pub(crate) fn first(&mut self, op: &str, kind: u16, body: &[u8]) -> Result<Vec<u8>, HostError> {
        self.sequence = self.sequence.wrapping_add(1);
        let request = message(kind, NLM_F_REQUEST, self.sequence, body);
        self.socket.send(&request, 0).map_err(|e| HostError::os(op, &e))?;
        loop {
            self.receive(op)?;
            for frame in frames(&self.buffer)? {
                if frame.sequence != self.sequence {
                    continue;
                }
                if frame.kind != NLMSG_ERROR {
                    return Ok(frame.payload.to_vec());
                }
                let said = verdict(&frame)?;
                if said.errno != 0 {
                    return Err(said.refusal(op));
                }
            }
        }
    }

    /// Changes something. Never sent twice: an answer that got lost is an error that says so.
    pub fn change(
        &mut self,
        op: &str,
        kind: u16,
        flags: u16,
        body: &[u8],
    ) -> Result<(), HostError> {
        self.exchange(op, kind, flags | NLM_F_ACK, body)?;
        Ok(())
    }

    /// Makes many objects of a kind, in order, and gives the number of those that were refused with `errno`.
    ///
    /// **Errors** any other refusal; what came before it is made.
    pub(crate) fn create_many(
        &mut self,
        op: &str,
        kind: u16,
        bodies: &[Vec<u8>],
        errno: i32,
    ) -> Result<usize, HostError> {
        let some = bodies.chunks(IN_FLIGHT).map(|some| self.create_some(op, kind, some, errno));
        some.sum()
    }

    /// The same by one system call.
    fn create_some(
        &mut self,
        op: &str,
        kind: u16,
        bodies: &[Vec<u8>],
        errno: i32,
    ) -> Result<usize, HostError> {
        let mut request = Vec::new();
        let first = self.sequence.wrapping_add(1);
        for (at, body) in bodies.iter().enumerate() {
            self.sequence = self.sequence.wrapping_add(1);
            // The others answer only when they fail.
            let ack = if at + 1 == bodies.len() { NLM_F_ACK } else { 0 };
            request.extend(message(kind, CREATE | NLM_F_REQUEST | ack, self.sequence, body));
        }
        self.socket.send(&request, 0).map_err(|e| HostError::os(op, &e))?;
        let mut refused = 0;
        loop {
            self.receive(op)?;
            for frame in frames(&self.buffer)? {
                let ours = frame.sequence.wrapping_sub(first) < bodies.len() as u32;
                if !ours || frame.kind != NLMSG_ERROR {
                    continue;
                }
                let said = verdict(&frame)?;
                if said.errno == errno {
                    refused += 1;
                } else if said.errno != 0 {
                    return Err(said.refusal(op));
                }
                if frame.sequence == self.sequence {
                    return Ok(refused);
                }
            }
        }
    }

    fn repeat(
        &mut self,
        op: &str,
        kind: u16,
        flags: u16,
        body: &[u8],
    ) -> Result<Vec<Vec<u8>>, HostError> {
        let mut last = None;
        for _ in 0..ATTEMPTS {
            match self.exchange(op, kind, flags, body) {
                Ok(replies) => return Ok(replies),
                Err(Failure::Final(error)) => return Err(error),
                Err(Failure::Again(error)) => {
                    last = Some(error);
                    self.forget_answers();
                }
            }
        }
        Err(last.unwrap_or_else(|| HostError::kernel(op, libc::EINTR)))
    }

    /// Reads what is left of an answer that was lost in part, and makes room for the next.
    ///
    /// Not a fresh socket: that would be one of the namespace in which this thread is now.
    fn forget_answers(&mut self) {
        let _ = self.socket.set_rx_buf_sz(MORE_ROOM as libc::c_int);
        loop {
            self.buffer.clear();
            let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
            match self.socket.recv_from(&mut self.buffer, flags) {
                // A dump goes on as long as somebody reads.
                Ok(_) => {}
                Err(e) if matches!(e.raw_os_error(), Some(libc::EINTR | libc::ENOBUFS)) => {}
                Err(_) => return,
            }
        }
    }

    fn exchange(
        &mut self,
        op: &str,
        kind: u16,
        flags: u16,
        body: &[u8],
    ) -> Result<Vec<Vec<u8>>, Failure> {
        self.sequence = self.sequence.wrapping_add(1);
        let request = message(kind, flags | NLM_F_REQUEST, self.sequence, body);
        self.socket.send(&request, 0).map_err(|e| Failure::Final(HostError::os(op, &e)))?;
        let mut replies = Vec::new();
        let mut interrupted = false;
        loop {
            self.receive(op)?;
            let parts = frames(&self.buffer).map_err(Failure::Final)?;
            for frame in parts.iter().filter(|frame| frame.sequence == self.sequence) {
                interrupted |= frame.flags & NLM_F_DUMP_INTR != 0;
                if matches!(frame.kind, NLMSG_ERROR | NLMSG_DONE) {
                    return conclude(op, frame, interrupted).map(|()| replies);
                }
                replies.push(frame.payload.to_vec());
            }
        }
    }

    fn receive(&mut self, op: &str) -> Result<(), Failure> {
        loop {
            self.buffer.clear();
            let peek = libc::MSG_PEEK | libc::MSG_TRUNC;
            let size = self.socket.recv_from(&mut self.buffer, peek).map(|(size, _)| size);
            let size = match size {
                Ok(size) => size,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(lost(op, &e)),
            };
            self.buffer.clear();
            self.buffer.reserve(size);
            match self.socket.recv_from(&mut self.buffer, libc::MSG_TRUNC) {
                // Only the kernel (port 0) answers; others may send to an unprivileged port.
                Ok((_, from)) if from.port_number() != 0 => {}
                Ok((got, _)) if got > self.buffer.len() => {
                    return Err(Failure::Again(HostError::malformed("netlink", 0, "cut answer")));
                }
                Ok(_) => return Ok(()),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(lost(op, &e)),
            }
        }
    }
}

fn connect(protocol: isize) -> io::Result<Socket> {
    let mut socket = Socket::new(protocol)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    // Both are absent before 4.12; without them refusals only lose their words.
    let _ = socket.set_ext_ack(true);
    let _ = socket.set_cap_ack(true);
    // Old dumps ignore the request's filter unless strict checking is on (4.20).
    let _ = socket.set_netlink_get_strict_chk(true);
    setsockopt(&socket, sockopt::ReceiveTimeout, &TimeVal::new(ANSWER_TIMEOUT_S, 0))?;
    Ok(socket)
}

fn conclude(op: &str, frame: &NetlinkMessage<'_>, interrupted: bool) -> Result<(), Failure> {
    let verdict = verdict(frame).map_err(Failure::Final)?;
    match verdict.errno {
        0 if interrupted => Err(Failure::Again(HostError::Kernel {
            op: op.into(),
            errno: libc::EINTR,
            extack: Some("the list changed while it was read, each time".into()),
        })),
        0 => Ok(()),
        _ => Err(Failure::Final(verdict.refusal(op))),
    }
}

fn lost(op: &str, error: &io::Error) -> Failure {
    let errno = error.raw_os_error().unwrap_or(libc::EIO);
    let words = match errno {
        libc::ENOBUFS => "the kernel's answer was lost: what was asked may have been done",
        libc::EAGAIN => "the kernel gave no answer within 5 s",
        _ => return Failure::Final(HostError::os(op, error)),
    };
    Failure::Again(HostError::Kernel { op: op.into(), errno, extack: Some(words.into()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTM_GETLINK: u16 = 18;

    /// A receive buffer of the smallest size holds one answer; the kernel throws the next away and says so at the next
    /// read (net/netlink/af_netlink.c `netlink_overrun`).
    fn overrun(netlink: &mut Netlink) {
        setsockopt(&netlink.socket, sockopt::RcvBuf, &1).unwrap();
        for sequence in 0..64 {
            let request = message(RTM_GETLINK, NLM_F_REQUEST, 1000 + sequence, &lo());
            netlink.socket.send(&request, 0).unwrap();
        }
    }

    /// `struct ifinfomsg` that asks for the first device.
    fn lo() -> Vec<u8> {
        let mut body = vec![0; 16];
        body[4..8].copy_from_slice(&1_i32.to_ne_bytes());
        body
    }

    #[test]
    fn an_answer_that_was_lost_is_told_and_a_question_is_asked_again() {
        let mut netlink = Netlink::route().unwrap();
        overrun(&mut netlink);
        let failure = netlink.exchange("read the first device", RTM_GETLINK, NLM_F_ACK, &lo());
        let Err(Failure::Again(error)) = failure else { panic!("nothing was lost") };
        assert!(matches!(error, HostError::Kernel { errno: libc::ENOBUFS, .. }), "{error}");
        assert!(error.to_string().contains("answer was lost"), "{error}");

        let mut netlink = Netlink::route().unwrap();
        overrun(&mut netlink);
        let replies = netlink.get("read the first device", RTM_GETLINK, &lo()).unwrap();
        assert_eq!(replies.len(), 1, "once the lost answers were read");

        // A change is never sent twice: what was lost may have been done.
        let mut netlink = Netlink::route().unwrap();
        overrun(&mut netlink);
        let error = netlink.change("read the first device", RTM_GETLINK, 0, &lo()).unwrap_err();
        assert!(matches!(error, HostError::Kernel { errno: libc::ENOBUFS, .. }), "{error}");
    }

    /// A thread that has moved on asks where the socket was opened. The loopback of a new namespace is down.
    #[test]
    fn a_question_is_asked_again_in_the_namespace_of_the_socket() {
        let is_up = |netlink: &mut Netlink| {
            let replies = netlink.get("read the first device", RTM_GETLINK, &lo()).unwrap();
            replies[0][8] & 1 == 1
        };
        let mut netlink = Netlink::route().unwrap();
        let here = is_up(&mut netlink);
        let asked = std::thread::spawn(move || {
            nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET)?;
            overrun(&mut netlink);
            Ok::<bool, nix::Error>(is_up(&mut netlink))
        });
        match asked.join().unwrap() {
            Ok(there) => assert!(here && there, "its loopback is up: {here}, {there}"),
            Err(errno) => crate::skip::skip("thread_netns", &errno.to_string()),
        }
    }

    /// So many refusals at once are more than a receive buffer holds.
    #[test]
    fn many_refusals_are_all_counted() {
        const RTM_NEWLINK: u16 = 16;
        let refused = if nix::unistd::geteuid().is_root() { libc::EEXIST } else { libc::EPERM };
        let mut netlink = Netlink::route().unwrap();
        let bodies = vec![lo(); 2000];
        let counted = netlink.create_many("make what is there", RTM_NEWLINK, &bodies, refused);
        assert_eq!(counted.unwrap(), 2000);
    }
}
