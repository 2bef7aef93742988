//! Probes of a path: datagrams that are sent whole and over a limited number of hops, and what their receiver sees of
//! them: the device on which they came, how many hops they had left, and when the kernel got them.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockType, SockaddrStorage,
    TimestampingFlag, bind, connect, recvmsg, setsockopt, socket, sockopt,
};
use nix::sys::time::{TimeSpec, TimeVal, TimeValLike};

/// Hops that an ordinary packet may take: the kernel's default (`IPDEFTTL`, include/uapi/linux/ip.h).
pub const ORDINARY_HOPS: u8 = 64;
/// A receive time limit of zero would be none.
const SHORTEST_WAIT: Duration = Duration::from_millis(1);

/// A datagram that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedDatagram {
    /// Length of its payload, at most that of the buffer.
    pub bytes: usize,
    /// Who sent it.
    pub from: SocketAddr,
    /// Index of the device on which it came. **Source** ip(7) `IP_PKTINFO`.
    pub device: Option<u32>,
    /// Hops that it had left. **Source** ip(7) `IP_RECVTTL`.
    pub hops_left: Option<u8>,
    /// When the kernel took it from the device's driver, of `CLOCK_REALTIME`. **Unit** ns.
    /// **Source** `SO_TIMESTAMPING` with `SOF_TIMESTAMPING_RX_SOFTWARE` (Documentation/networking/timestamping.rst).
    /// **Caveat** the kernel begins to stamp a moment after the first socket asked for it (`net_enable_timestamp`).
    pub stamp_ns: Option<u64>,
}

/// A UDP socket for probes.
#[derive(Debug)]
pub struct ProbeSocket {
    socket: UdpSocket,
    is_v6: bool,
}

impl ProbeSocket {
    /// Binds it.
    pub fn bind(at: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind(at)?;
        if at.is_ipv6() {
            setsockopt(&socket, sockopt::Ipv6RecvPacketInfo, &true)?;
            setsockopt(&socket, sockopt::Ipv6RecvHopLimit, &true)?;
        } else {
            setsockopt(&socket, sockopt::Ipv4PacketInfo, &true)?;
            setsockopt(&socket, sockopt::Ipv4RecvTtl, &true)?;
        }
        let stamps = TimestampingFlag::SOF_TIMESTAMPING_RX_SOFTWARE
            | TimestampingFlag::SOF_TIMESTAMPING_SOFTWARE;
        // Where the kernel has none, datagrams come without.
        let _ = setsockopt(&socket, sockopt::Timestamping, &stamps);
        Ok(Self { socket, is_v6: at.is_ipv6() })
    }

    /// Its own address.
    pub fn local(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// From now on what it sends takes at most `hops` hops, and nobody on the way may cut it into fragments.
    pub fn limit(&self, hops: u8) -> io::Result<()> {
        limit_hops(&self.socket, self.is_v6, hops)?;
        self.keep_whole()
    }

    /// **Source** ip(7) `IP_PMTUDISC_PROBE`: whole, whatever the kernel has learned of the path before.
    fn keep_whole(&self) -> io::Result<()> {
        let (level, option, value) = if self.is_v6 {
            (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_PROBE)
        } else {
            (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE)
        };
        // SAFETY: the descriptor is open, the pointer and length describe one live integer.
        let done = unsafe {
            libc::setsockopt(
                self.socket.as_raw_fd(),
                level,
                option,
                (&raw const value).cast(),
                size_of::<libc::c_int>() as libc::socklen_t,
            )
        };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Sends a datagram.
    pub fn send(&self, datagram: &[u8], to: SocketAddr) -> io::Result<()> {
        self.socket.send_to(datagram, to).map(drop)
    }

    /// Waits for a datagram, for at most `limit`.
    pub fn receive(
        &self,
        buffer: &mut [u8],
        limit: Duration,
    ) -> io::Result<Option<ReceivedDatagram>> {
        self.socket.set_read_timeout(Some(limit.max(SHORTEST_WAIT)))?;
        let mut space =
            cmsg_space!(libc::in_pktinfo, libc::in6_pktinfo, libc::c_int, [libc::timespec; 3]);
        let mut parts = [IoSliceMut::new(buffer)];
        let received = recvmsg::<SockaddrStorage>(
            self.socket.as_raw_fd(),
            &mut parts,
            Some(&mut space),
            MsgFlags::empty(),
        );
        let received = match received {
            Ok(received) => received,
            Err(Errno::EAGAIN | Errno::EINTR) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        };
        let Some(from) = received.address.as_ref().and_then(address) else { return Ok(None) };
        let (mut device, mut hops_left, mut stamp_ns) = (None, None, None);
        for message in received.cmsgs()? {
            match message {
                ControlMessageOwned::Ipv4PacketInfo(info) => {
                    device = u32::try_from(info.ipi_ifindex).ok();
                }
                ControlMessageOwned::Ipv6PacketInfo(info) => device = Some(info.ipi6_ifindex),
                ControlMessageOwned::Ipv4Ttl(left) | ControlMessageOwned::Ipv6HopLimit(left) => {
                    hops_left = u8::try_from(left).ok();
                }
                ControlMessageOwned::ScmTimestampsns(stamps) => stamp_ns = in_ns(&stamps.system),
                _ => {}
            }
        }
        Ok(Some(ReceivedDatagram { bytes: received.bytes, from, device, hops_left, stamp_ns }))
    }
}

/// A stamp; `None` if it is empty.
fn in_ns(stamp: &TimeSpec) -> Option<u64> {
    u64::try_from(stamp.num_nanoseconds()).ok().filter(|ns| *ns > 0)
}

/// What a socket of one of the families sends takes at most `hops` hops; of a listening one, what its connections send.
pub fn limit_hops(socket: &impl AsFd, is_v6: bool, hops: u8) -> io::Result<()> {
    let hops = i32::from(hops);
    if is_v6 {
        setsockopt(socket, sockopt::Ipv6Ttl, &hops)?;
    } else {
        setsockopt(socket, sockopt::Ipv4Ttl, &hops)?;
    }
    Ok(())
}

fn address(storage: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = storage.as_sockaddr_in().map(|it| SocketAddr::from(*it));
    v4.or_else(|| storage.as_sockaddr_in6().map(|it| SocketAddr::from(*it)))
}

/// Connects from an address over at most `hops` hops.
pub fn connect_from(
    from: IpAddr,
    to: SocketAddr,
    (hops, limit): (u8, Duration),
) -> io::Result<TcpStream> {
    let family = if to.is_ipv6() { AddressFamily::Inet6 } else { AddressFamily::Inet };
    let socket = socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    // The time limit of sending is that of connecting too (socket(7)).
    let limit = TimeVal::milliseconds(limit.as_millis() as i64);
    setsockopt(&socket, sockopt::SendTimeout, &limit)?;
    limit_hops(&socket, to.is_ipv6(), hops)?;
    bind(socket.as_raw_fd(), &SockaddrStorage::from(SocketAddr::new(from, 0)))?;
    match connect(socket.as_raw_fd(), &SockaddrStorage::from(to)) {
        Ok(()) => Ok(TcpStream::from(socket)),
        // As socket(7) says it of a time limit that is over.
        Err(Errno::EINPROGRESS) => Err(io::ErrorKind::TimedOut.into()),
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::time::Instant;

    use super::*;
    use crate::read::clock::realtime_ns;

    /// A limit that a busy machine does not reach.
    const LONG: Duration = Duration::from_secs(60);

    fn arrival_at(own: &str, hops: u8) -> (ReceivedDatagram, SocketAddr) {
        let receiver = ProbeSocket::bind(own.parse().unwrap()).unwrap();
        let sender = ProbeSocket::bind(own.parse().unwrap()).unwrap();
        sender.limit(hops).unwrap();
        sender.send(&[7; 100], receiver.local().unwrap()).unwrap();
        let mut bytes = [0; 200];
        let arrival = receiver.receive(&mut bytes, LONG).unwrap().unwrap();
        assert_eq!(bytes[..100], [7; 100]);
        (arrival, sender.local().unwrap())
    }

    #[test]
    fn a_datagram_comes_with_its_device_and_the_hops_that_it_has_left() {
        let lo = nix::net::if_::if_nametoindex("lo").unwrap();
        let (arrival, sender) = arrival_at("127.0.0.1:0", 3);
        let seen = (arrival.bytes, arrival.from, arrival.device, arrival.hops_left);
        assert_eq!(seen, (100, sender, Some(lo), Some(3)));
        if UdpSocket::bind("[::1]:0").is_ok() {
            let (arrival, sender) = arrival_at("[::1]:0", 5);
            assert_eq!((arrival.from, arrival.hops_left), (sender, Some(5)));
            assert_eq!(arrival.device, Some(lo));
        }
    }

    #[test]
    fn the_kernel_s_stamp_is_of_the_arrival_and_not_of_the_reading() {
        let socket = ProbeSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let to = socket.local().unwrap();
        let deadline = Instant::now() + LONG;
        loop {
            let sent_ns = realtime_ns();
            socket.send(&[7; 100], to).unwrap();
            // why: a program that reads late.
            std::thread::sleep(Duration::from_millis(20));
            let late_ns = realtime_ns();
            let arrival = socket.receive(&mut [0; 200], LONG).unwrap().unwrap();
            if let Some(stamp_ns) = arrival.stamp_ns {
                assert!((sent_ns..late_ns).contains(&stamp_ns), "{sent_ns} {stamp_ns} {late_ns}");
                return;
            }
            assert!(Instant::now() < deadline, "no stamp");
        }
    }

    #[test]
    fn nothing_comes_within_the_limit_and_one_that_is_too_long_is_refused() {
        let socket = ProbeSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        assert_eq!(socket.receive(&mut [0; 9], Duration::ZERO).unwrap(), None);
        socket.limit(1).unwrap();
        let to = socket.local().unwrap();
        // No datagram is that long.
        let refused = socket.send(&vec![0; 70_000], to).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::EMSGSIZE));
    }

    #[test]
    fn a_connection_is_made_from_the_address_that_was_asked_for() {
        // No other test has the address: once the listener is closed, nobody listens on its port.
        let listener = TcpListener::bind("127.0.82.1:0").unwrap();
        let from: IpAddr = "127.0.0.2".parse().unwrap();
        let made = connect_from(from, listener.local_addr().unwrap(), (1, LONG)).unwrap();
        assert_eq!(listener.accept().unwrap().1, made.local_addr().unwrap());
        assert_eq!(made.local_addr().unwrap().ip(), from);
        assert_eq!(made.ttl().unwrap(), 1);
        drop(listener);
        assert!(connect_from(from, made.peer_addr().unwrap(), (1, LONG)).is_err());
    }
}
