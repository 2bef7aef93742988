//! Permanent neighbours: they keep a lab's link free of ARP and neighbour discovery.

use std::net::IpAddr;

use super::addr::{family, octets};
use super::socket::{Netlink, REPLACE};
use super::wire::Body;
use crate::HostError;

const RTM_NEWNEIGH: u16 = 28;
// linux/neighbour.h
const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;
const NUD_PERMANENT: u16 = 0x80;

impl Netlink {
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
