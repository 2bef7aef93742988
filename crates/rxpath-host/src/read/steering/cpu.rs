//! The CPU that processes a flow's packets, found with one datagram.
//!
//! RPS picks the CPU from a hash with a secret key, so it can't be computed. Only a lab asks: it owns both ends.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

use super::Flow;
use crate::HostError;

/// How long a datagram is waited for: over a veth it takes microseconds, unless the hypervisor has stopped the CPU that receives.
const PATIENCE: Duration = Duration::from_millis(500);

/// A socket bound to an end of a flow, in the namespace of the calling thread.
pub fn end(address: SocketAddr) -> Result<UdpSocket, HostError> {
    UdpSocket::bind(address).map_err(|error| HostError::os(format!("bind {address}"), &error))
}

/// The CPU that one datagram of the flow was processed on; `None` when it did not come.
///
/// The kernel notes the CPU in `SO_INCOMING_CPU` of connected sockets only (net/ipv4/udp.c `udp_queue_rcv_one_skb`), so
/// `receiver` is connected to the flow's source. The sender must not be connected: the kernel stamps datagrams of
/// connected sockets with a random hash of their own (`sk_set_txhash`).
pub fn cpu_of(
    flow: Flow,
    sender: &UdpSocket,
    receiver: &UdpSocket,
) -> Result<Option<u32>, HostError> {
    let failed = |error: io::Error| HostError::os(format!("probe {flow}"), &error);
    receiver.connect(flow.source).map_err(failed)?;
    receiver.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    sender.send_to(&[], flow.destination).map_err(failed)?;
    match receiver.recv(&mut []) {
        Ok(_) => incoming_cpu(receiver.as_fd()).map_err(failed),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(failed(error)),
    }
}

/// CPU that processed the last datagram; `None` before the first.
fn incoming_cpu(socket: BorrowedFd<'_>) -> io::Result<Option<u32>> {
    let mut cpu: libc::c_int = -1;
    let mut length = size_of_val(&cpu) as libc::socklen_t;
    // SAFETY: the descriptor is borrowed and open; pointer and length describe `cpu`, which the kernel fills with at
    // most `length` bytes.
    let rc = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_INCOMING_CPU,
            (&raw mut cpu).cast(),
            &raw mut length,
        )
    };
    if rc == 0 { Ok(u32::try_from(cpu).ok()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_over_loopback_is_seen_on_a_cpu() {
        let [sender, receiver] = [(); 2].map(|()| end("127.0.0.1:0".parse().unwrap()).unwrap());
        let [from, to] = [&sender, &receiver].map(|socket| socket.local_addr().unwrap());
        let flow: Flow = format!("{from}->{to}/udp").parse().unwrap();
        assert!(cpu_of(flow, &sender, &receiver).unwrap().is_some());
        let other = end("127.0.0.1:0".parse().unwrap()).unwrap();
        assert_eq!(cpu_of(flow, &sender, &other).unwrap(), None, "it went elsewhere");
    }
}
