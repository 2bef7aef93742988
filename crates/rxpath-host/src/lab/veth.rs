//! veth pairs of a lab.

use std::os::fd::RawFd;

use libc::{
    IFLA_INFO_DATA, IFLA_INFO_KIND, IFLA_LINKINFO, IFLA_NET_NS_FD, IFLA_NUM_RX_QUEUES,
    IFLA_NUM_TX_QUEUES, RTM_NEWLINK,
};

use crate::HostError;
use crate::netlink::socket::{CREATE, Netlink};
use crate::netlink::wire::Body;
use crate::read::netlink::link::by_name;

// linux/veth.h
const VETH_INFO_PEER: u16 = 1;

/// A veth pair to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VethSpec<'a> {
    /// This end's name.
    pub name: &'a str,
    /// The other end's name.
    pub peer: &'a str,
    /// Open descriptor of the other end's namespace.
    pub peer_ns: RawFd,
    /// Receive and transmit queues of each end, 1 to 4096.
    pub queues: u32,
}

impl Netlink {
    /// Makes a veth pair: this end here, the other directly in its namespace.
    ///
    /// **Source** drivers/net/veth.c `veth_newlink`.
    pub fn create_veth(&mut self, spec: &VethSpec<'_>) -> Result<(), HostError> {
        let end = |name: &str| -> Result<Body, HostError> {
            let body = by_name(name)?.u32(IFLA_NUM_TX_QUEUES, spec.queues);
            Ok(body.u32(IFLA_NUM_RX_QUEUES, spec.queues))
        };
        let peer = end(spec.peer)?.u32(IFLA_NET_NS_FD, spec.peer_ns as u32);
        let data = Body::default().raw(VETH_INFO_PEER, peer.bytes());
        let info = Body::default().text(IFLA_INFO_KIND, "veth").nest(IFLA_INFO_DATA, &data);
        let body = end(spec.name)?.nest(IFLA_LINKINFO, &info);
        let op = format!("create veth {} with {} queues", spec.name, spec.queues);
        self.change(&op, RTM_NEWLINK, CREATE, body.bytes())
    }
}
