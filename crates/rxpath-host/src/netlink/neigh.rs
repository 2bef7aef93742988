//! Permanent neighbours: they keep a lab's link free of ARP and neighbour discovery.

use std::net::IpAddr;

use super::addr::{family, ip, octets};
use super::socket::{Netlink, REPLACE};
use super::wire::{Attrs, Body, word32};
use crate::HostError;

const RTM_NEWNEIGH: u16 = 28;
const RTM_GETNEIGH: u16 = 30;
const NDMSG: usize = 12;
// linux/neighbour.h
const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;
const NUD_PERMANENT: u16 = 0x80;

/// One entry of the neighbour table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Index of the device.
    pub index: u32,
    /// The neighbour's address.
    pub ip: IpAddr,
    /// Its hardware address; empty while unknown.
    pub mac: Vec<u8>,
    /// Whether it never expires.
    pub permanent: bool,
}

impl Neighbour {
    /// Reads one `RTM_NEWNEIGH` payload; `None` for other families.
    pub fn parse(payload: &[u8]) -> Result<Option<Self>, HostError> {
        let attrs = Attrs::after(payload, NDMSG)?;
        let state = u16::from_ne_bytes([payload[8], payload[9]]);
        Ok(attrs.get(NDA_DST).and_then(ip).map(|ip| Self {
            index: word32(payload, 1).unwrap_or_default(),
            ip,
            mac: attrs.get(NDA_LLADDR).unwrap_or_default().to_vec(),
            permanent: state & NUD_PERMANENT != 0,
        }))
    }
}

impl Netlink {
    /// All neighbours of this namespace.
    pub fn neighbours(&mut self) -> Result<Vec<Neighbour>, HostError> {
        let replies = self.dump("list neighbours", RTM_GETNEIGH, &[0; NDMSG])?;
        let parsed = replies.iter().filter(|reply| reply.kind == RTM_NEWNEIGH);
        parsed.filter_map(|reply| Neighbour::parse(&reply.payload).transpose()).collect()
    }

    /// Adds or replaces a permanent neighbour.
    pub fn add_neighbour(&mut self, dev: &str, ip: IpAddr, mac: [u8; 6]) -> Result<(), HostError> {
        let mut header = vec![family(ip), 0, 0, 0];
        header.extend(self.index(dev)?.to_ne_bytes());
        header.extend(NUD_PERMANENT.to_ne_bytes());
        header.extend([0, 0]);
        let body = Body::new(&header).raw(NDA_DST, &octets(ip)).raw(NDA_LLADDR, &mac);
        let op = format!("add neighbour {ip} on {dev}");
        self.change(&op, RTM_NEWNEIGH, REPLACE, body.bytes()).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_permanent_entry_is_told_apart() {
        let mut header = vec![2, 0, 0, 0, 3, 0, 0, 0];
        header.extend(NUD_PERMANENT.to_ne_bytes());
        header.extend([0, 0]);
        let body = Body::new(&header).raw(NDA_DST, &[10, 0, 0, 2]).raw(NDA_LLADDR, &[1; 6]);
        let entry = Neighbour::parse(body.bytes()).unwrap().unwrap();
        assert!(entry.permanent);
        assert_eq!((entry.index, entry.mac.len()), (3, 6));
    }

    proptest! {
        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            let _ = Neighbour::parse(&bytes);
        }
    }
}
