//! Devices over another one: a bridge with one port, a macvlan, an ipvlan.

use libc::{
    IFLA_ADDRESS, IFLA_INFO_DATA, IFLA_INFO_KIND, IFLA_LINK, IFLA_LINKINFO, IFLA_MASTER,
    RTM_NEWLINK,
};
use serde::{Deserialize, Serialize};

use crate::HostError;
use crate::netlink::socket::{CREATE, Netlink};
use crate::netlink::wire::Body;
use crate::read::netlink::link::by_name;

// linux/if_link.h
const IFLA_BR_MCAST_SNOOPING: u16 = 23;
const IFLA_MACVLAN_MODE: u16 = 1;
/// `MACVLAN_MODE_BRIDGE`.
const MODE_BRIDGE: u32 = 4;
const IFLA_IPVLAN_MODE: u16 = 1;
/// `IPVLAN_MODE_L2`.
const MODE_L2: u16 = 0;

/// Kinds of devices over another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UpperKind {
    /// A bridge; the device below becomes its only port. **Source** net/bridge/br_if.c `br_add_if`.
    Bridge,
    /// A macvlan in bridge mode, with an address of its own. **Source** drivers/net/macvlan.c `macvlan_common_newlink`.
    Macvlan,
    /// An ipvlan in mode L2, with the address of the device below. **Source** drivers/net/ipvlan/ipvlan_main.c
    /// `ipvlan_link_new`.
    Ipvlan,
}

impl Netlink {
    /// Makes `name` over `lower`, with this hardware address, down.
    ///
    /// **Errors** `Kernel` with `EOPNOTSUPP` where the kernel has no such devices, `EADDRINUSE` for a macvlan with the
    /// address of the device below.
    pub(crate) fn create_upper(
        &mut self,
        kind: UpperKind,
        (name, lower): (&str, &str),
        mac: [u8; 6],
    ) -> Result<(), HostError> {
        let (word, data) = match kind {
            // A bridge that snoops joins 224.0.0.106 when it is set up, and reports that to everybody
            // (net/bridge/br_multicast.c `br_multicast_join_snoopers`): not on a link that is to be quiet.
            UpperKind::Bridge => ("bridge", Body::default().u8(IFLA_BR_MCAST_SNOOPING, 0)),
            UpperKind::Macvlan => ("macvlan", Body::default().u32(IFLA_MACVLAN_MODE, MODE_BRIDGE)),
            UpperKind::Ipvlan => {
                ("ipvlan", Body::default().raw(IFLA_IPVLAN_MODE, &MODE_L2.to_ne_bytes()))
            }
        };
        let info = Body::default().text(IFLA_INFO_KIND, word).nest(IFLA_INFO_DATA, &data);
        let body = by_name(name)?.raw(IFLA_ADDRESS, &mac).nest(IFLA_LINKINFO, &info);
        if kind != UpperKind::Bridge {
            let body = body.u32(IFLA_LINK, self.index(lower)?);
            let op = format!("create the {word} {name} over {lower}");
            return self.change(&op, RTM_NEWLINK, CREATE, body.bytes());
        }
        self.change(&format!("create the bridge {name}"), RTM_NEWLINK, CREATE, body.bytes())?;
        let master = self.index(name)?;
        let port = by_name(lower)?.u32(IFLA_MASTER, master);
        let op = format!("make {lower} a port of {name}");
        self.change(&op, RTM_NEWLINK, 0, port.bytes())
    }
}
