//! Which socket of a SO_REUSEPORT group gets a flow, where that is known.
//!
//! The question it answers: *who is bound where the flow goes, and what selects among them?* The members, their order
//! and the selector come from a reader of the kernel's own structures; a classic program is run for the flow, of the
//! kernel's hash and of other programs it says why they can't be computed.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use rxpath_core::{CpuList, Fact};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Flow;
use super::classic::{self, Arrival, Instruction};

/// What selects among the sockets of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// The kernel's hash, with a secret key.
    Hash,
    /// A classic BPF program; empty when it was too long to be read.
    Classic(Vec<Instruction>),
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
pub struct Place {
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
pub struct Bound {
    /// Its address.
    pub local: SocketAddr,
    /// The other end; unspecified where it has none.
    pub remote: SocketAddr,
    /// The device that it is bound to; 0 for any.
    pub ifindex: u32,
    /// Inode, as in `/proc/PID/fd`.
    pub inode: u64,
    /// Its group.
    pub place: Option<Place>,
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

/// What is known of the packets at the socket layer.
#[derive(Clone, Debug)]
pub struct Coming<'a> {
    /// The flow.
    pub flow: Flow,
    /// Index of the device.
    pub ifindex: u32,
    /// CPUs that may run their softirq.
    pub cpus: &'a CpuList,
}

/// net/ipv4/udp.c `udp_ehashfn`, net/ipv4/inet_hashtables.c `inet_ehashfn`: keyed jhash, secret made at first use.
const SECRET: &str = "not knowable from here: the kernel's hash chooses, whose secret key is made again at each boot; \
    probes can tell";

/// Says who gets the flow, of the sockets bound to its port.
///
/// **Source** net/ipv4/udp.c `__udp4_lib_lookup`, net/ipv4/inet_hashtables.c `__inet_lookup_listener`: a connected
/// socket first, then the address itself, then the wildcard; net/core/sock_reuseport.c `reuseport_select_sock`.
pub fn choose(coming: &Coming<'_>, sockets: &[Bound]) -> Choice {
    let gap = |why: &str| Choice { group: Fact::absent(why), socket: Fact::absent(why) };
    let candidates: Vec<&Bound> =
        sockets.iter().filter(|one| [0, coming.ifindex].contains(&one.ifindex)).collect();
    let best = candidates.iter().filter_map(|one| Some((rank(one, coming.flow)?, *one)));
    let Some((rank, first)) = best.min_by_key(|(rank, _)| *rank) else {
        return gap("no socket is bound where this flow goes");
    };
    if rank == 0 {
        return gap("a socket is connected to the flow's other end: it gets the flow");
    }
    let Some(place) = &first.place else {
        return gap("the socket that is bound there is in no SO_REUSEPORT group: it gets the flow");
    };
    let socket = index(coming, place, &classic_of(place.group, sockets));
    Choice { group: Fact::ok(told(first, place, sockets)), socket }
}

/// How closely a socket fits the flow, the best first; `None` when it gets none of it.
fn rank(socket: &Bound, flow: Flow) -> Option<u8> {
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

/// The classic program of a group: the reader tells it once, with the first socket.
fn classic_of(group: u64, sockets: &[Bound]) -> Vec<Instruction> {
    let of = |bound: &Bound| match &bound.place {
        Some(Place { group: own, selector: Selector::Classic(program), .. })
            if *own == group && !program.is_empty() =>
        {
            Some(program.clone())
        }
        _ => None,
    };
    sockets.iter().find_map(of).unwrap_or_default()
}

fn told(first: &Bound, place: &Place, sockets: &[Bound]) -> Group {
    let mut inodes = vec![0; place.sockets as usize];
    let members = sockets.iter().filter_map(|one| Some((one, one.place.as_ref()?)));
    for (socket, own) in members.filter(|(_, own)| own.group == place.group) {
        if let Some(slot) = own.index.and_then(|index| inodes.get_mut(index as usize)) {
            *slot = socket.inode;
        }
    }
    let selector = match &place.selector {
        Selector::Hash => "the kernel's hash".to_owned(),
        Selector::Classic(_) => {
            let length = classic_of(place.group, sockets).len();
            format!("a classic BPF program of {length} instructions")
        }
        Selector::Program { id, name } => format!("the eBPF program {id} ({name})"),
    };
    Group { local: first.local.to_string(), sockets_count: place.sockets, inodes, selector }
}

/// Index of the socket that gets the flow.
fn index(coming: &Coming<'_>, place: &Place, program: &[Instruction]) -> Fact<u32> {
    match &place.selector {
        Selector::Program { id, name } => Fact::absent(format!(
            "the eBPF program {id} ({name}) chooses, by its code and its maps: not computed here; probes can tell"
        )),
        Selector::Hash | Selector::Classic(_) if place.sockets == 1 => Fact::ok(0),
        Selector::Hash if place.by_cpu => Fact::absent(
            "sockets of the group ask for CPUs (SO_INCOMING_CPU), else the kernel's secret hash",
        ),
        Selector::Hash => Fact::absent(SECRET),
        Selector::Classic(_) if program.is_empty() => {
            Fact::absent("a classic BPF program chooses, too long to be read here")
        }
        Selector::Classic(_) => by_program(coming, place.sockets, program),
    }
}

fn by_program(coming: &Coming<'_>, sockets: u32, program: &[Instruction]) -> Fact<u32> {
    let mut by_cpu = BTreeMap::new();
    for cpu in &coming.cpus.0 {
        let arrival = Arrival { flow: coming.flow, cpu: *cpu, ifindex: coming.ifindex };
        match classic::run(program, &arrival) {
            // Past the end the kernel falls back to its hash (run_bpf_filter).
            Ok(value) => by_cpu.insert(*cpu, Some(value).filter(|value| *value < sockets)),
            Err(why) => return Fact::absent(why),
        };
    }
    let mut values = by_cpu.values();
    let Some(first) = values.next() else {
        return Fact::absent("which CPU runs the flow's softirq is not known");
    };
    if values.all(|other| other == first) {
        let why = "the program names a socket that is not there, and then the kernel's secret hash chooses";
        return first.map_or_else(|| Fact::absent(why), Fact::ok);
    }
    let each = by_cpu.iter().map(|(cpu, value)| match value {
        Some(value) => format!("CPU {cpu} -> socket {value}"),
        None => format!("CPU {cpu} -> by the kernel's hash"),
    });
    let each: Vec<String> = each.collect();
    Fact::absent(format!("by the CPU of the flow's softirq: {}", each.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOW: &str = "10.0.0.2:4001->10.0.0.1:4321/udp";

    fn bound(local: &str, inode: u64, index: u32, selector: &Selector) -> Bound {
        let place = Place {
            group: 7,
            index: Some(index),
            sockets: 2,
            by_cpu: false,
            selector: selector.clone(),
        };
        Bound {
            local: local.parse().unwrap(),
            remote: "0.0.0.0:0".parse().unwrap(),
            ifindex: 0,
            inode,
            place: Some(place),
        }
    }

    fn chosen(cpus: &[u32], sockets: &[Bound]) -> Choice {
        let cpus = CpuList(cpus.to_vec());
        choose(&Coming { flow: FLOW.parse().unwrap(), ifindex: 2, cpus: &cpus }, sockets)
    }

    fn by_cpu() -> Selector {
        let op = |code, k| Instruction { code, if_true: 0, if_false: 0, k };
        Selector::Classic(vec![op(0x20, 0xffff_f024), op(0x16, 0)])
    }

    #[test]
    fn a_program_is_run_and_a_hash_is_not_guessed() {
        let classic = by_cpu();
        // Only the first socket brings the program.
        let group = [
            bound("0.0.0.0:4321", 51, 1, &Selector::Classic(Vec::new())),
            bound("0.0.0.0:4321", 50, 0, &classic),
        ];
        let choice = chosen(&[1], &group);
        assert_eq!(choice.socket, Fact::ok(1));
        assert_eq!(choice.group.value().unwrap().inodes, [50, 51]);
        assert!(choice.group.value().unwrap().selector.contains("2 instructions"));
        let why = chosen(&[0, 1], &group).socket.gap().unwrap();
        assert!(why.contains("CPU 0 -> socket 0, CPU 1 -> socket 1"), "{why}");
        let beyond = chosen(&[5], &group);
        assert!(beyond.socket.gap().unwrap().contains("not there"));
        let plain = bound("0.0.0.0:4321", 50, 0, &Selector::Hash);
        let hashed = chosen(&[1], std::slice::from_ref(&plain));
        assert!(hashed.socket.gap().unwrap().contains("secret"));
        let alone = Place { sockets: 1, ..plain.place.clone().unwrap() };
        assert_eq!(chosen(&[1], &[Bound { place: Some(alone), ..plain }]).socket, Fact::ok(0));
    }

    #[test]
    fn the_closest_socket_gets_the_flow() {
        let hash = Selector::Hash;
        let mut connected = bound("10.0.0.1:4321", 1, 0, &hash);
        connected.remote = "10.0.0.2:4001".parse().unwrap();
        let exact = bound("10.0.0.1:4321", 2, 0, &hash);
        let wide = bound("0.0.0.0:4321", 3, 0, &hash);
        let other = bound("10.0.0.9:4321", 4, 0, &hash);
        let local = |all: &[Bound]| chosen(&[0], all).group.value().map(|g| g.local.clone());
        assert_eq!(local(&[wide.clone(), exact.clone()]).as_deref(), Some("10.0.0.1:4321"));
        assert_eq!(local(&[wide.clone(), other.clone()]).as_deref(), Some("0.0.0.0:4321"));
        let told = |all: &[Bound]| chosen(&[0], all).socket.gap().unwrap();
        assert!(told(&[other]).contains("no socket is bound"));
        assert!(told(&[wide.clone(), connected]).contains("connected"));
        assert!(told(&[Bound { place: None, ..wide.clone() }]).contains("no SO_REUSEPORT group"));
        assert!(told(&[Bound { ifindex: 9, ..wide }]).contains("no socket"), "another device's");
    }
}
