//! The words of each place, in one table: the compiler requires a row for every new place.

use super::Place;

/// How texts name a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaceWords {
    /// The part of the path that it belongs to: `sender`, `network`, `device`, `protocol` or `socket`.
    pub part: &'static str,
    /// The place in a table.
    pub short: &'static str,
    /// The place in a sentence: lost at `noun`.
    pub noun: &'static str,
}

impl Place {
    /// The words of this place.
    #[rustfmt::skip]
    pub const fn words(self) -> PlaceWords {
        let (part, short, noun) = match self {
            Self::SendCall => ("sender", "refused by the send call", "the send call"),
            Self::Output => ("sender", "netfilter output", "netfilter's output hook"),
            Self::EgressHook => ("sender", "sender's egress hook", "an egress hook of the sender (tc, tcx or netfilter)"),
            Self::Qdisc => ("sender", "sender's qdisc", "the sender's queueing discipline"),
            Self::SendingDevice => ("sender", "sending card's driver", "the driver of the sending network card"),
            Self::Network => ("network", "network", "the network between the cards"),
            Self::Ring => ("device", "device ring (NAPI)", "the device ring"),
            Self::Backlog => ("device", "RPS backlog", "the RPS backlog"),
            Self::DeviceRefused => ("device", "refused by the device", "the device's input checks"),
            Self::IngressHook => ("protocol", "ingress hook", "an ingress hook"),
            Self::XdpSocket => ("socket", "AF_XDP socket", "the AF_XDP socket"),
            Self::Ip => ("protocol", "IP input", "the IP layer"),
            Self::ReversePath => ("protocol", "reverse path filter", "the reverse path filter"),
            Self::Routing => ("protocol", "routing", "routing"),
            Self::Fragments => ("protocol", "fragments", "reassembly"),
            Self::Netfilter => ("protocol", "netfilter", "netfilter"),
            Self::IpsecPolicy => ("protocol", "IPsec policy", "an IPsec policy"),
            Self::SocketFilter => ("socket", "socket filter", "a filter at the socket or its control group"),
            Self::NoListener => ("socket", "no listener", "a port without a listener"),
            Self::Checksum => ("socket", "checksum", "the UDP checksum"),
            Self::SocketBuffer => ("socket", "socket receive buffer", "the socket's receive buffer"),
            Self::UdpMemory => ("socket", "UDP memory limit", "the machine-wide UDP memory limit"),
            Self::UdpMemoryUncounted => ("socket", "UDP memory, not counted by this kernel", "the UDP memory limit (seen in the sockets only)"),
            Self::UdpOther => ("socket", "other UDP errors", "UDP, for another reason"),
            Self::ReasonOnly => ("protocol", "no counter, only a reason", "a place that only the kernel's reason names"),
            Self::ListenQueue => ("socket", "listen queue", "the listen queue"),
            Self::SocketBacklog => ("socket", "socket backlog", "the socket's backlog"),
            Self::TcpReceiveQueue => ("socket", "TCP receive queue", "the TCP receive queue"),
            Self::TcpOutOfOrder => ("socket", "TCP out-of-order queue", "the TCP out-of-order queue"),
            Self::TcpSequence => ("socket", "TCP timestamps (PAWS)", "TCP's timestamp check (PAWS)"),
            Self::TcpOther => ("socket", "other TCP refusals", "TCP, for another reason"),
        };
        PlaceWords { part, short, noun }
    }
}
