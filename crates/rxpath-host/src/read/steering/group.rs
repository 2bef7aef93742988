//! Which socket of a SO_REUSEPORT group gets a flow, where that is known.
//!
//! The question it answers: *who is bound where the flow goes, and what selects among them?* The members, their order
//! and the selector come from a reader of the kernel's own structures. Of the
//! kernel's hash and of programs it says why their choice can't be computed.

use std::net::{IpAddr, SocketAddr};

use rxpath_core::Fact;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Flow;

/// What selects among the sockets of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// The kernel's hash, with a secret key.
    Hash,
    /// A classic BPF program.
    Classic {
        /// **Unit** instructions.
        length: u32,
    },
    /// An eBPF program.
    Program {
        /// The kernel's id of it.
        id: u32,
        /// Its name, as far as the kernel keeps it.
        name: String,
    },
}

/// Place of a socket in its group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReuseportMembership {
    /// Names the group, while it is there.
    pub group: u64,
    /// Index in the group; `None` beyond what was read.
    pub index: Option<u32>,
    /// Sockets of the group.
    pub sockets: u32,
    /// Whether sockets of it ask for a CPU (`SO_INCOMING_CPU`), which goes before the hash.
    pub by_cpu: bool,
    /// What selects.
    pub selector: Selector,
}

/// A socket that is bound to a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundSocket {
    /// Its address.
    pub local: SocketAddr,
    /// The other end; unspecified where it has none.
    pub remote: SocketAddr,
    /// The device that it is bound to; 0 for any.
    pub ifindex: u32,
    /// Inode, as in `/proc/PID/fd`.
    pub inode: u64,
    /// Its group.
    pub place: Option<ReuseportMembership>,
}

/// A group, as told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Group {
    /// Address that its sockets are bound to.
    pub local: String,
    /// **Unit** sockets.
    pub sockets_count: u32,
    /// Inodes of the sockets in the group's order, as in `/proc/PID/fd`; 0 where one was not seen.
    pub inodes: Vec<u64>,
    /// What selects: the kernel's hash, a classic BPF program, an eBPF program.
    pub selector: String,
}

/// Who gets the flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The group.
    pub group: Fact<Group>,
    /// Index in it of the socket that gets the flow.
    pub socket: Fact<u32>,
}

/// net/ipv4/udp.c `udp_ehashfn`, net/ipv4/inet_hashtables.c `inet_ehashfn`: keyed jhash, secret made at first use.
const SECRET: &str = "not knowable from here: the kernel's hash chooses, whose secret key is made again at each boot";

/// Says who gets the flow that comes in by a device, of the sockets bound to its port.
///
/// **Source** net/ipv4/udp.c `__udp4_lib_lookup`, net/ipv4/inet_hashtables.c `__inet_lookup_listener`: a connected
/// socket first, then the address itself, then the wildcard; net/core/sock_reuseport.c `reuseport_select_sock`.
pub fn choose(flow: Flow, ifindex: u32, sockets: &[BoundSocket]) -> Choice {
    let gap = |why: &str| Choice { group: Fact::absent(why), socket: Fact::absent(why) };
    let candidates: Vec<&BoundSocket> =
        sockets.iter().filter(|one| [0, ifindex].contains(&one.ifindex)).collect();
    let best = candidates.iter().filter_map(|one| Some((rank(one, flow)?, *one)));
    let Some((rank, first)) = best.min_by_key(|(rank, _)| *rank) else {
        return gap("no socket is bound where this flow goes");
    };
    if rank == 0 {
        return gap("a socket is connected to the flow's other end: it gets the flow");
    }
    let Some(place) = &first.place else {
        return gap("the socket that is bound there is in no SO_REUSEPORT group: it gets the flow");
    };
    Choice { group: Fact::ok(listed(first, place, sockets)), socket: index(place) }
}

/// How closely a socket fits the flow, the best first; `None` when it gets none of it.
fn rank(socket: &BoundSocket, flow: Flow) -> Option<u8> {
    let (local, to) = (socket.local, flow.destination);
    if local.port() != to.port() {
        return None;
    }
    if socket.remote.port() != 0 {
        return (socket.remote == flow.source && local.ip() == to.ip()).then_some(0);
    }
    // An IPv6 wildcard takes IPv4 too, unless IPV6_V6ONLY is set.
    let wildcard = local.ip().is_unspecified();
    match (local.ip(), to.ip()) {
        (own, to) if own == to => Some(1),
        (IpAddr::V4(_), IpAddr::V4(_)) | (IpAddr::V6(_), IpAddr::V6(_)) if wildcard => Some(2),
        (IpAddr::V6(_), IpAddr::V4(_)) if wildcard => Some(3),
        _ => None,
    }
}

/// The group with all of its members that were read.
fn listed(first: &BoundSocket, place: &ReuseportMembership, sockets: &[BoundSocket]) -> Group {
    let mut inodes = vec![0; place.sockets as usize];
    let members = sockets.iter().filter_map(|one| Some((one, one.place.as_ref()?)));
    for (socket, own) in members.filter(|(_, own)| own.group == place.group) {
        if let Some(slot) = own.index.and_then(|index| inodes.get_mut(index as usize)) {
            *slot = socket.inode;
        }
    }
    let selector = match &place.selector {
        Selector::Hash => "the kernel's hash".to_owned(),
        Selector::Classic { length } => {
            format!("a classic BPF program of {length} instructions")
        }
        Selector::Program { id, name } => format!("the eBPF program {id} ({name})"),
    };
    Group { local: first.local.to_string(), sockets_count: place.sockets, inodes, selector }
}

/// Index of the socket that gets the flow.
fn index(place: &ReuseportMembership) -> Fact<u32> {
    match &place.selector {
        Selector::Program { id, name } => Fact::absent(format!(
            "the eBPF program {id} ({name}) chooses, by its code and its maps: not computed here"
        )),
        Selector::Hash | Selector::Classic { .. } if place.sockets == 1 => Fact::ok(0),
        Selector::Hash if place.by_cpu => Fact::absent(
            "sockets of the group ask for CPUs (SO_INCOMING_CPU), else the kernel's secret hash",
        ),
        Selector::Hash => Fact::absent(SECRET),
        Selector::Classic { .. } => {
            Fact::absent("a classic BPF program chooses: it is not run here")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOW: &str = "10.0.0.2:4001->10.0.0.1:4321/udp";

    fn bound(local: &str, inode: u64, index: u32, selector: &Selector) -> BoundSocket {
        let place = ReuseportMembership {
            group: 7,
            index: Some(index),
            sockets: 2,
            by_cpu: false,
            selector: selector.clone(),
        };
        BoundSocket {
            local: local.parse().unwrap(),
            remote: "0.0.0.0:0".parse().unwrap(),
            ifindex: 0,
            inode,
            place: Some(place),
        }
    }

    fn chosen(sockets: &[BoundSocket]) -> Choice {
        choose(FLOW.parse().unwrap(), 2, sockets)
    }

    #[test]
    fn a_program_is_named_and_a_hash_is_not_guessed() {
        let classic = Selector::Classic { length: 2 };
        let group =
            [bound("0.0.0.0:4321", 51, 1, &classic), bound("0.0.0.0:4321", 50, 0, &classic)];
        let choice = chosen(&group);
        assert!(choice.socket.gap().unwrap().contains("a classic BPF program chooses"));
        assert_eq!(choice.group.value().unwrap().inodes, [50, 51]);
        assert!(choice.group.value().unwrap().selector.contains("2 instructions"));
        let plain = bound("0.0.0.0:4321", 50, 0, &Selector::Hash);
        let hashed = chosen(std::slice::from_ref(&plain));
        assert!(hashed.socket.gap().unwrap().contains("secret"));
        let alone = ReuseportMembership { sockets: 1, ..plain.place.clone().unwrap() };
        assert_eq!(chosen(&[BoundSocket { place: Some(alone), ..plain }]).socket, Fact::ok(0));
    }

    #[test]
    fn the_closest_socket_gets_the_flow() {
        let hash = Selector::Hash;
        let mut connected = bound("10.0.0.1:4321", 1, 0, &hash);
        connected.remote = "10.0.0.2:4001".parse().unwrap();
        let exact = bound("10.0.0.1:4321", 2, 0, &hash);
        let wide = bound("0.0.0.0:4321", 3, 0, &hash);
        let other = bound("10.0.0.9:4321", 4, 0, &hash);
        let local = |all: &[BoundSocket]| chosen(all).group.value().map(|g| g.local.clone());
        assert_eq!(local(&[wide.clone(), exact.clone()]).as_deref(), Some("10.0.0.1:4321"));
        assert_eq!(local(&[wide.clone(), other.clone()]).as_deref(), Some("0.0.0.0:4321"));
        let told = |all: &[BoundSocket]| chosen(all).socket.gap().unwrap();
        assert!(told(&[other]).contains("no socket is bound"));
        assert!(told(&[wide.clone(), connected]).contains("connected"));
        assert!(
            told(&[BoundSocket { place: None, ..wide.clone() }]).contains("no SO_REUSEPORT group")
        );
        assert!(
            told(&[BoundSocket { ifindex: 9, ..wide }]).contains("no socket"),
            "another device's"
        );
    }
}
