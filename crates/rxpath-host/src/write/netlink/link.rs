//! Network devices to change and delete, and what rtnetlink lets be set on them.

use libc::{IFLA_ADDRESS, IFLA_IFNAME, IFLA_MTU, RTM_DELLINK, RTM_NEWLINK};

use super::field::request;
use crate::netlink::socket::Netlink;
use crate::netlink::wire::Body;
use crate::pairs::Pairs;
use crate::read::netlink::link::{by_name, checked, header};
use crate::{Group, HostError};

impl Netlink {
    fn set_link(&mut self, op: &str, name: &str, change: Body) -> Result<(), HostError> {
        let body = change.text(IFLA_IFNAME, checked(name)?);
        self.change(&format!("{op} {name}"), RTM_NEWLINK, 0, body.bytes())
    }

    /// Sets a device up or down.
    pub fn set_up(&mut self, name: &str, up: bool) -> Result<(), HostError> {
        let mask = libc::IFF_UP as u32;
        let op = if up { "set up" } else { "set down" };
        self.set_link(op, name, Body::new(&header(0, if up { mask } else { 0 }, mask)))
    }

    /// Sets the MTU. **Unit** bytes.
    pub fn set_mtu(&mut self, name: &str, mtu: u32) -> Result<(), HostError> {
        let change = Body::new(&header(0, 0, 0)).u32(IFLA_MTU, mtu);
        self.set_link(&format!("set mtu {mtu} on"), name, change)
    }

    /// Sets the hardware address.
    pub fn set_mac(&mut self, name: &str, mac: [u8; 6]) -> Result<(), HostError> {
        let change = Body::new(&header(0, 0, 0)).raw(IFLA_ADDRESS, &mac);
        self.set_link("set the MAC address of", name, change)
    }

    /// Deletes a device (with its veth peer).
    pub fn delete_link(&mut self, name: &str) -> Result<(), HostError> {
        self.change(&format!("delete link {name}"), RTM_DELLINK, 0, by_name(name)?.bytes())
    }

    /// Asks for settings of a link.
    pub(crate) fn set_link_settings(&mut self, dev: &str, asked: &Pairs) -> Result<(), HostError> {
        let body = request(Group::Link, by_name(dev)?, asked)?;
        self.change(&format!("set {dev}/link {asked}"), RTM_NEWLINK, 0, body.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_name_is_refused_before_it_is_sent() {
        let error = Netlink::route().unwrap().set_link_settings("lo", &"mtv=1".parse().unwrap());
        assert!(error.unwrap_err().to_string().contains("mtu, txqueuelen"));
    }
}
