//! The sockets of a port, their SO_REUSEPORT groups and the selectors of these groups.
//!
//! No interface of the kernel shows whether a selector is attached to a group: `SO_GET_FILTER` reads another filter and
//! `sock_diag` has no attribute for it. So a BPF iterator reads the kernel's own structures (`struct sock_reuseport`).
//! It runs once, when it is read, and attaches to nothing.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rxpath_core::Fact;
use rxpath_host::netlink::Netlink;
use rxpath_host::read::steering::group::{
    BoundSocket, Choice, ReuseportMembership, Selector, choose,
};
use rxpath_host::read::steering::{FlowProtocol, Landing};
use rxpath_host::{HostError, Root};

use crate::bytes::Fields;
use crate::object::{Loaded, ObjectSpec, compiled, map, unhooked};

pub(crate) static SPEC: ObjectSpec = ObjectSpec {
    maps: &[map("scratch", 4, 104)],
    programs: &[
        unhooked("udp_sockets", "SO_REUSEPORT groups of UDP", false),
        unhooked("tcp_sockets", "SO_REUSEPORT groups of TCP", false),
    ],
    ..compiled!("reuseport")
};

/// Bytes of a row (`struct row`).
const ROW: usize = 104;
/// Index of a socket that was not found in its group (`MOST_SOCKETS`).
const NOT_FOUND: u32 = 1024;

/// The sockets of this thread's network namespace that are bound to a port, of TCP those that listen.
///
/// **Cost** loads two programs, some milliseconds, and walks the namespace's sockets.
/// **Errors** `Denied` without CAP_BPF and CAP_PERFMON, `Unsupported` before Linux 5.9 or in a build without BPF.
pub fn sockets(protocol: FlowProtocol, port: u16) -> Result<Vec<BoundSocket>, HostError> {
    crate::can_run(&Root::host()).require("read SO_REUSEPORT groups")?;
    let loaded = Loaded::load(&SPEC, &u32::from(port).to_ne_bytes(), &[])?;
    let program = match protocol {
        FlowProtocol::Udp => "udp_sockets",
        FlowProtocol::Tcp => "tcp_sockets",
    };
    Ok(parse(&loaded.iterate(program, None)?))
}

/// Adds the sockets that are bound where the flow goes, and the socket that gets it, or why they are unknown.
///
/// **Cost** as [`sockets`].
pub fn complete(landing: &mut Landing) {
    let flow = landing.flow;
    let choice = match sockets(flow.protocol, flow.destination.port()) {
        Ok(bound) => choose(flow, index(&landing.device).unwrap_or_default(), &bound),
        Err(error) => unread(error),
    };
    landing.reuseport_group = choice.group;
    landing.reuseport_socket = choice.socket;
}

/// Selectors are unknown unless the kernel's groups can be read.
fn unread(error: HostError) -> Choice {
    let hidden =
        "no system call shows whether a BPF selector is attached; only kernel structures do";
    match error {
        HostError::Denied { capability, .. } => {
            let needs = format!("{capability} ({hidden})");
            Choice { group: Fact::denied(needs.clone()), socket: Fact::denied(needs) }
        }
        other => {
            let why = format!("{hidden}; {}", other.reason());
            Choice { group: Fact::absent(why.clone()), socket: Fact::absent(why) }
        }
    }
}

fn index(device: &str) -> Result<u32, HostError> {
    Netlink::route()?.index(device)
}

/// Reads what the iterators write; a row that was cut is left out.
pub fn parse(bytes: &[u8]) -> Vec<BoundSocket> {
    bytes.chunks_exact(ROW).map(bound).collect()
}

fn bound(row: &[u8]) -> BoundSocket {
    let mut f = Fields::of(row);
    let (inode, group, index, sockets) = (f.u64(), f.u64(), f.u32(), f.u32());
    let (by_cpu, id, has_program, length) = (f.u32(), f.u32(), f.u32(), f.u32());
    let (family, ifindex, port) = (f.u32(), f.u32(), f.u16());
    let remote_port = u16::from_be_bytes(f.u16().to_ne_bytes());
    let (local, remote) = (address(family, &row[52..68]), address(family, &row[68..84]));
    f.skip(32);
    let name = f.text(16);
    let selector = match (has_program, length) {
        (0, _) => Selector::Hash,
        (_, 0) => Selector::Program { id, name },
        _ => Selector::Classic { length },
    };
    let index = Some(index).filter(|index| *index < NOT_FOUND);
    let place = ReuseportMembership { group, index, sockets, by_cpu: by_cpu != 0, selector };
    BoundSocket {
        local: SocketAddr::new(local, port),
        remote: SocketAddr::new(remote, remote_port),
        ifindex,
        inode,
        place: (group != 0).then_some(place),
    }
}

fn address(family: u32, bytes: &[u8]) -> IpAddr {
    let mut long = [0; 16];
    long.copy_from_slice(bytes);
    if family == libc::AF_INET as u32 {
        Ipv4Addr::new(long[0], long[1], long[2], long[3]).into()
    } else {
        Ipv6Addr::from(long).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn row(index: u32, length: u32) -> Vec<u8> {
        let mut bytes = [77u64.to_ne_bytes(), 0xffff_8880u64.to_ne_bytes()].concat();
        for word in [index, 2, 0, 0, 1, length, 2, 3] {
            bytes.extend(word.to_ne_bytes());
        }
        bytes.extend(4321u16.to_ne_bytes());
        bytes.extend(9u16.to_be_bytes());
        bytes.extend([10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend([0; 36]);
        bytes
    }

    #[test]
    fn rows_are_read_by_place() {
        let mut bytes = row(0, 1);
        assert_eq!(bytes.len(), ROW);
        bytes.extend(row(1, 0));
        let read = parse(&bytes);
        assert_eq!(read.len(), 2);
        assert_eq!(read[0].local.to_string(), "10.0.0.1:4321");
        assert_eq!((read[0].remote.port(), read[0].ifindex, read[0].inode), (9, 3, 77));
        let place = read[0].place.as_ref().unwrap();
        assert_eq!((place.index, place.sockets), (Some(0), 2));
        assert_eq!(place.selector, Selector::Classic { length: 1 });
        let other = &read[1].place.as_ref().unwrap().selector;
        assert!(matches!(other, Selector::Program { id: 0, .. }), "{other:?}");
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..500)) {
            let _ = parse(&bytes);
        }
    }
}
