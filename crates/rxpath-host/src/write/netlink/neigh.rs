//! Neighbours to enter: ones that the kernel resolves, and permanent ones that keep a lab's link free of ARP and neighbour
//! discovery.

use std::net::IpAddr;

use libc::{NDA_DST, NDA_LLADDR, NTF_USE, NUD_PERMANENT, RTM_NEWNEIGH};

use crate::HostError;
use crate::netlink::socket::{CREATE_OR_KEEP, Netlink, REPLACE};
use crate::netlink::wire::Body;
use crate::read::netlink::addr::octets;
use crate::read::netlink::neigh::header;

impl Netlink {
    /// Lets the kernel resolve a neighbour, as a packet to it would. **Errors** `Kernel` without `CAP_NET_ADMIN`.
    ///
    /// **Source** net/core/neighbour.c `neigh_add`, `NTF_USE`.
    pub fn resolve_neighbour(&mut self, device: u32, ip: IpAddr) -> Result<(), HostError> {
        let body = Body::new(&header(device, ip, 0, NTF_USE)).raw(NDA_DST, &octets(ip));
        let op = format!("resolve the neighbour {ip}");
        self.change(&op, RTM_NEWNEIGH, CREATE_OR_KEEP, body.bytes())
    }

    /// Adds or replaces a permanent neighbour.
    pub fn add_neighbour(&mut self, dev: &str, ip: IpAddr, mac: [u8; 6]) -> Result<(), HostError> {
        let header = header(self.index(dev)?, ip, NUD_PERMANENT, 0);
        let body = Body::new(&header).raw(NDA_DST, &octets(ip)).raw(NDA_LLADDR, &mac);
        let op = format!("add neighbour {ip} on {dev}");
        self.change(&op, RTM_NEWNEIGH, REPLACE, body.bytes())
    }
}
