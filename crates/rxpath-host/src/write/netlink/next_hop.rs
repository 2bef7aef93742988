//! Whom a frame to an address is sent to: the device that it leaves by and the hardware address of the next host on it.
//!
//! For senders that build whole frames, for which the kernel looks up neither route nor neighbour. An unknown neighbour is
//! resolved, which enters it into the kernel's table.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use crate::HostError;
use crate::netlink::socket::Netlink;
use crate::read::netlink::link::NetworkLink;

/// How long a neighbour may take to answer. **Source** `retrans_time_ms` 1000, net/ipv4/arp.c `arp_tbl`.
const PATIENCE: Duration = Duration::from_millis(1_500);
/// Between two looks at whether it has answered.
const LOOK: Duration = Duration::from_millis(5);

/// The next host on the way to an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextHop {
    /// The device that takes the frame; of a VLAN device the one below.
    pub device: NetworkLink,
    /// The tag of the frame, when the route leaves by a VLAN device.
    pub vlan_id: Option<u16>,
    /// Largest IP packet. **Unit** bytes.
    pub mtu: u32,
    /// Its hardware address.
    pub mac: [u8; 6],
}

impl Netlink {
    /// The next host on the way to `to`. `scope` as in [`Netlink::route_to`].
    ///
    /// **Cost** up to 1.5 s where the neighbour has to be resolved and does not answer.
    /// **Errors** `Unsupported` where there is no route, the device is down or has no Ethernet addresses, or nobody
    /// answers; `Kernel` where a neighbour has to be resolved without `CAP_NET_ADMIN`.
    pub fn next_hop(&mut self, to: IpAddr, scope: u32) -> Result<NextHop, HostError> {
        let refuse = |needs: String| HostError::unsupported(format!("send frames to {to}"), needs);
        let Some(route) = self.route_to(to, scope)? else {
            return Err(refuse(format!("a route: check with `ip route get {to}`")));
        };
        let leaves = self.link_at(route.device)?;
        let device =
            if leaves.vlan_id.is_some() { self.other_end(&leaves)? } else { leaves.clone() };
        for link in [&leaves, &device] {
            if !link.is_up() || link.carrier == Some(false) {
                return Err(refuse(format!("the device {} to be up, with a carrier", link.name)));
            }
        }
        if device.mac.len() != 6 || device.flags & libc::IFF_LOOPBACK as u32 != 0 {
            let name = &device.name;
            let needs = format!("a device with Ethernet addresses; the route leaves by {name}");
            return Err(refuse(needs));
        }
        let next = route.gateway.unwrap_or(to);
        let mac = self.resolved(route.device, next)?.ok_or_else(|| {
            refuse(format!("an answer of {next} on {}: nobody there has this address", leaves.name))
        })?;
        Ok(NextHop { vlan_id: leaves.vlan_id, mtu: leaves.mtu, device, mac })
    }

    fn resolved(&mut self, device: u32, next: IpAddr) -> Result<Option<[u8; 6]>, HostError> {
        let found = self.neighbour(device, next)?;
        if found.is_some() {
            return Ok(found);
        }
        self.resolve_neighbour(device, next)?;
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            let found = self.neighbour(device, next)?;
            if found.is_some() {
                return Ok(found);
            }
            // why: the kernel reports answers only to a subscriber of all neighbours; the loop ends after `PATIENCE`.
            std::thread::sleep(LOOK);
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_no_frames() {
        let error = Netlink::route().unwrap().next_hop([127, 0, 0, 1].into(), 0).unwrap_err();
        assert!(error.to_string().contains("the route leaves by lo"), "{error}");
    }
}
