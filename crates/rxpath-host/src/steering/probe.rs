//! Where packets of a flow really go: datagrams are sent and watched.
//!
//! The question it answers: *which CPU and which socket does the kernel's secret hash lead this flow to?* It sends
//! nothing unless asked, to an address of this namespace only and with a hop limit of one, into sockets of its own unless
//! the caller allows those of an application.

pub mod ends;
mod watched;

use std::net::UdpSocket;
use std::os::fd::AsFd;

use rxpath_core::Fact;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::group::Group;
use super::{Flow, Protocol};
use crate::HostError;
use crate::netlink::Netlink;
use ends::{Patience, Taken};

/// Datagrams of one probe with own sockets: one shows it, the others that it stays so.
const TIMES: u32 = 3;

/// What to find out.
#[derive(Debug)]
pub struct Ask<'a> {
    /// The flow; UDP.
    pub flow: Flow,
    /// The device that it comes in by.
    pub device: &'a str,
    /// A socket bound to the flow's source, opened in the namespace that it comes from ([`ends::sender`]).
    pub sender: UdpSocket,
    /// The CPU that RPS hands the flow on to.
    pub rps: bool,
    /// How many sockets of its own to open as a SO_REUSEPORT group, when nobody is bound there; 0 for none.
    pub sockets: u32,
    /// Whether datagrams may end up in sockets of an application.
    pub into_application: bool,
    /// The group of the application, where it could be read.
    pub group: Option<&'a Group>,
}

/// What was found out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Probed {
    /// Datagrams that were sent.
    pub sent_packets: u32,
    /// Whether they went into sockets of an application.
    pub into_application: bool,
    /// The CPU that the flow's protocol processing ran on, by RPS.
    pub rps_cpu: Fact<u32>,
    /// Index in the SO_REUSEPORT group of the socket that got them.
    pub reuseport_socket: Fact<u32>,
    /// Sockets of that group.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sockets_count: Option<u32>,
    /// Inode of the application's socket that got them, as in `/proc/PID/fd`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub inode: Option<u64>,
}

impl Probed {
    fn silent(why: &str) -> Self {
        Self {
            sent_packets: 0,
            into_application: false,
            rps_cpu: Fact::absent(why),
            reuseport_socket: Fact::absent(why),
            sockets_count: None,
            inode: None,
        }
    }
}

/// Why a flow can't be probed at all; `None` when it can.
pub fn refusal(flow: Flow) -> Option<&'static str> {
    if flow.protocol == Protocol::Tcp {
        return Some("a TCP probe would open a connection: only udp flows are probed");
    }
    (flow.source.port() == 0 || flow.destination.port() == 0).then_some("a port is 0")
}

/// Sends the probes and tells where they went.
///
/// **Cost** a few datagrams; a second where none comes in. **Errors** of sockets; that nothing can be found out is a gap.
pub fn probe(ask: &Ask<'_>) -> Result<Probed, HostError> {
    match ends::own(ask.flow.destination)? {
        Taken::Foreign => Ok(Probed::silent(
            "the destination is no address of this network namespace: probes go nowhere else",
        )),
        Taken::Application if !ask.into_application => Ok(Probed::silent(
            "a socket of an application is bound there and would get the probes: --probe-into-app allows that",
        )),
        Taken::Application => watched::probe(ask),
        Taken::Free => with_own_sockets(ask),
    }
}

fn with_own_sockets(ask: &Ask<'_>) -> Result<Probed, HostError> {
    let mut probed = Probed::silent("not asked for");
    if ask.rps {
        let receiver = ends::receiver(ask.flow.destination, Some(ask.device), false)?;
        let seen = (0..TIMES).map(|_| cpu_of(ask.flow, &ask.sender, &receiver, Patience::LONG));
        let seen: Vec<Option<u32>> = seen.collect::<Result<_, _>>()?;
        probed.sent_packets += TIMES;
        probed.rps_cpu = same(&seen, ask.device);
    }
    if ask.sockets == 0 {
        probed.reuseport_socket = Fact::absent(
            "no socket is bound there: --probe-sockets N opens a group of N for the probe",
        );
        return Ok(probed);
    }
    let group = group(ask)?;
    let Some(group) = group else {
        probed.reuseport_socket =
            Fact::absent("an application bound the port in between: nothing was sent");
        return Ok(probed);
    };
    let mut seen = Vec::new();
    for _ in 0..TIMES {
        ends::send(&ask.sender, ask.flow)?;
        seen.push(ends::which(&group, ask.flow, Patience::LONG)?);
    }
    probed.sent_packets += TIMES;
    probed.sockets_count = Some(ask.sockets);
    probed.reuseport_socket = same(&seen, ask.device);
    Ok(probed)
}

/// A group of own sockets; `None` when somebody else is in it as well.
fn group(ask: &Ask<'_>) -> Result<Option<Vec<UdpSocket>>, HostError> {
    let to = ask.flow.destination;
    let opened = (0..ask.sockets).map(|_| ends::receiver(to, Some(ask.device), true));
    let opened = opened.collect::<Result<Vec<_>, _>>()?;
    let own: Vec<u64> = opened.iter().filter_map(ends::inode).collect();
    let bound = Netlink::sock_diag()?.udp_sockets(Some(to.port()))?;
    // Whoever has another address is in no group with these.
    let mut there = bound.iter().filter(|one| one.local == to);
    let alone = there.all(|one| own.contains(&u64::from(one.inode)));
    Ok(alone.then_some(opened))
}

/// The CPU that one datagram of the flow was processed on; `None` when it did not come.
///
/// `receiver` must be bound to the flow's destination and unconnected, or connected to its source. The kernel notes the CPU
/// in `SO_INCOMING_CPU` of connected sockets only (net/ipv4/udp.c `udp_queue_rcv_one_skb`). The sender must not be connected:
/// the kernel stamps datagrams of connected sockets with a random hash of their own (`sk_set_txhash`).
pub fn cpu_of(
    flow: Flow,
    sender: &UdpSocket,
    receiver: &UdpSocket,
    patience: Patience,
) -> Result<Option<u32>, HostError> {
    let failed = |error: std::io::Error| ends::failed(flow, &error);
    receiver.connect(flow.source).map_err(failed)?;
    ends::send(sender, flow)?;
    if !ends::wait(receiver, patience).map_err(failed)? {
        return Ok(None);
    }
    receiver.recv(&mut []).map_err(failed)?;
    ends::incoming_cpu(receiver.as_fd()).map_err(failed)
}

/// What all datagrams agree on.
fn same(seen: &[Option<u32>], device: &str) -> Fact<u32> {
    let all: Option<Vec<u32>> = seen.iter().copied().collect();
    match all.as_deref() {
        None | Some([]) => Fact::absent(format!(
            "a probe did not come in by {device}: sent from this namespace it goes by lo (--probe-from names \
             the namespace that the flow comes from), or a firewall took it"
        )),
        Some([first, rest @ ..]) if rest.iter().all(|other| other == first) => Fact::ok(*first),
        Some(all) => Fact::absent(format!("the probes did not agree: {all:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_probes_do_not_agree_on_is_no_answer() {
        assert_eq!(same(&[Some(1), Some(1)], "lo"), Fact::ok(1));
        assert!(same(&[Some(1), Some(0)], "lo").gap().unwrap().contains("agree"));
        assert!(same(&[Some(1), None], "veth0").gap().unwrap().contains("veth0"));
    }

    #[test]
    fn tcp_is_not_probed() {
        let refused = |text: &str| refusal(text.parse().unwrap());
        assert!(refused("127.0.0.1:1->127.0.0.1:2/tcp").unwrap().contains("connection"));
        assert!(refused("127.0.0.1:1->127.0.0.1:0/udp").unwrap().contains('0'));
        assert_eq!(refused("127.0.0.1:1->127.0.0.1:2/udp"), None);
    }

    fn ask(flow: Flow, sender: UdpSocket, sockets: u32) -> Ask<'static> {
        let (rps, into_application, group) = (false, false, None);
        Ask { flow, device: "lo", sender, rps, sockets, into_application, group }
    }

    #[test]
    fn an_own_group_on_loopback_gets_the_probes_and_an_application_none() {
        let source = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let free = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let flow: Flow = format!("{source}->{free}/udp").parse().unwrap();
        let probed = probe(&ask(flow, ends::sender(flow).unwrap(), 4)).unwrap();
        let index = *probed.reuseport_socket.value().unwrap_or_else(|| panic!("{probed:?}"));
        assert!(index < 4);
        let again = probe(&ask(flow, ends::sender(flow).unwrap(), 4)).unwrap();
        assert_eq!(
            again.reuseport_socket,
            Fact::ok(index),
            "the key is the same until the next boot"
        );

        let application = UdpSocket::bind(free).unwrap();
        let refused = probe(&ask(flow, ends::sender(flow).unwrap(), 4)).unwrap();
        assert_eq!(refused.sent_packets, 0);
        assert!(refused.reuseport_socket.gap().unwrap().contains("--probe-into-app"));
        application.set_nonblocking(true).unwrap();
        assert!(application.recv(&mut [0]).is_err(), "it got nothing");
    }

    #[test]
    fn nothing_is_sent_to_another_host() {
        let source = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let flow: Flow = format!("{source}->192.0.2.1:9/udp").parse().unwrap();
        let probed = probe(&ask(flow, ends::sender(flow).unwrap(), 2)).unwrap();
        assert_eq!(probed.sent_packets, 0);
        assert!(probed.reuseport_socket.gap().unwrap().contains("no address of this"));
    }
}
