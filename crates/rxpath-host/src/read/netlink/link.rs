//! Network devices: list and 64-bit statistics.

use libc::{
    IFLA_ADDRESS, IFLA_ALLMULTI, IFLA_CARRIER, IFLA_CARRIER_CHANGES, IFLA_GRO_MAX_SIZE,
    IFLA_GSO_MAX_SIZE, IFLA_IFNAME, IFLA_INFO_DATA, IFLA_INFO_KIND, IFLA_LINK, IFLA_LINK_NETNSID,
    IFLA_LINKINFO, IFLA_MASTER, IFLA_MAX_MTU, IFLA_MIN_MTU, IFLA_MTU, IFLA_NUM_RX_QUEUES,
    IFLA_NUM_TX_QUEUES, IFLA_PROMISCUITY, IFLA_QDISC, IFLA_STATS64, IFLA_TARGET_NETNSID,
    IFLA_TSO_MAX_SIZE, IFLA_XDP, RTM_GETLINK,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::netlink::socket::Netlink;
use crate::netlink::wire::{Attrs, Body, NAME_MAX, word32, word64};
use crate::{HostError, listed};

pub(super) const IFINFOMSG: usize = 16;

// linux/if_link.h, as far as libc lacks them
pub(super) const IFLA_GSO_IPV4_MAX_SIZE: u16 = 63;
pub(super) const IFLA_GRO_IPV4_MAX_SIZE: u16 = 64;
const IFLA_XDP_ATTACHED: u16 = 2;
const IFLA_XDP_PROG_ID: u16 = 4;
const IFLA_XDP_DRV_PROG_ID: u16 = 5;
const IFLA_XDP_SKB_PROG_ID: u16 = 6;
const IFLA_XDP_HW_PROG_ID: u16 = 7;
const IFLA_VLAN_ID: u16 = 1;

/// One network device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkLink {
    /// Index in its namespace.
    pub index: u32,
    /// Name.
    pub name: String,
    /// `IFF_*`.
    pub flags: u32,
    /// Driver kind where rtnetlink knows it: `veth`, `bridge`; `None` for hardware.
    pub kind: Option<String>,
    /// Tag of a VLAN device.
    pub vlan_id: Option<u16>,
    /// Hardware address; empty for devices without.
    pub mac: Vec<u8>,
    /// **Unit** bytes.
    pub mtu: u32,
    /// Transmit queues.
    pub tx_queues: u32,
    /// Receive queues.
    pub rx_queues: u32,
    /// Root qdisc.
    pub qdisc: Option<String>,
    /// Index of the peer, in the peer's namespace; of devices over another one (VLAN, macvlan) the device below.
    pub peer_index: Option<u32>,
    /// The device of `peer_index` lies in another namespace (`IFLA_LINK_NETNSID`).
    pub peer_elsewhere: bool,
    /// That namespace, by its number in this one.
    pub peer_namespace: Option<u32>,
    /// Whether the link has a carrier.
    pub carrier: Option<bool>,
    /// How often it lost or got one.
    pub carrier_changes: Option<u32>,
    /// **Unit** bytes.
    pub gso_max_size: Option<u32>,
    /// Most that the driver takes for segmentation. **Unit** bytes. Since 5.19.
    pub tso_max_size: Option<u32>,
    /// Largest packet that GRO builds. **Unit** bytes. Since 5.19.
    pub gro_max_size: Option<u32>,
    /// The same for IPv4, since 6.3.
    pub gro_ipv4_max_size: Option<u32>,
    /// Smallest and largest MTU that the driver takes. **Unit** bytes; 0 is no limit.
    pub mtu_range: Option<(u32, u32)>,
    /// Index of the bridge, bond or team that it belongs to.
    pub master: Option<u32>,
    /// How many want every packet (`IFF_PROMISC` counted).
    pub promiscuity: Option<u32>,
    /// How many want every multicast packet (6.0).
    pub allmulti: Option<u32>,
    /// XDP programs on it.
    pub xdp: Vec<XdpProgram>,
    /// Statistics by name (`rx.dropped`); those that this kernel lacks are left out.
    pub stats: Vec<(&'static str, u64)>,
}

/// Where on a device an XDP program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum XdpMode {
    /// In the driver.
    Native,
    /// After the packet's memory was allocated: copies, and no gain over tc.
    Generic,
    /// In the NIC.
    Offloaded,
}

/// An XDP program on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct XdpProgram {
    /// Where it runs.
    pub mode: XdpMode,
    /// Its number.
    pub program_id: u32,
}

/// **Source** net/core/rtnetlink.c `rtnl_xdp_fill`; modes are `XDP_ATTACHED_*` of linux/if_link.h.
fn xdp_programs(attrs: &Attrs<'_>) -> Result<Vec<XdpProgram>, HostError> {
    let xdp = attrs.nest(IFLA_XDP)?;
    let of = |mode, kind| xdp.u32(kind).map(|program_id| XdpProgram { mode, program_id });
    let named = [
        of(XdpMode::Native, IFLA_XDP_DRV_PROG_ID),
        of(XdpMode::Generic, IFLA_XDP_SKB_PROG_ID),
        of(XdpMode::Offloaded, IFLA_XDP_HW_PROG_ID),
    ];
    let found: Vec<_> = named.into_iter().flatten().collect();
    if !found.is_empty() {
        return Ok(found);
    }
    // Before 4.19 only the one number was there.
    let mode = match xdp.u8(IFLA_XDP_ATTACHED) {
        Some(1) => XdpMode::Native,
        Some(2) => XdpMode::Generic,
        Some(3) => XdpMode::Offloaded,
        _ => return Ok(Vec::new()),
    };
    Ok(of(mode, IFLA_XDP_PROG_ID).into_iter().collect())
}

impl NetworkLink {
    /// Whether the device is administratively up.
    pub fn is_up(&self) -> bool {
        self.flags & libc::IFF_UP as u32 != 0
    }

    /// Of its flags those of its state: administratively up, operational, with a carrier, dormant.
    ///
    /// **Source** net/core/dev.c `dev_get_flags`; RFC 2863.
    pub fn state(&self) -> u32 {
        let of_state = libc::IFF_UP | libc::IFF_RUNNING | libc::IFF_LOWER_UP | libc::IFF_DORMANT;
        self.flags & of_state as u32
    }

    /// One statistic by its name: `rx.dropped`.
    pub fn stat(&self, name: &str) -> Option<u64> {
        self.stats.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    /// Reads one `RTM_NEWLINK` payload.
    pub fn parse(payload: &[u8]) -> Result<Self, HostError> {
        let attrs = Attrs::after(payload, IFINFOMSG)?;
        let info = attrs.nest(IFLA_LINKINFO)?;
        Ok(Self {
            index: word32(payload, 1).unwrap_or_default(),
            flags: word32(payload, 2).unwrap_or_default(),
            name: attrs.text(IFLA_IFNAME).unwrap_or_default(),
            vlan_id: info
                .nest(IFLA_INFO_DATA)
                .ok()
                .filter(|_| info.text(IFLA_INFO_KIND).as_deref() == Some("vlan"))
                .and_then(|data| data.u16(IFLA_VLAN_ID)),
            kind: info.text(IFLA_INFO_KIND),
            mac: attrs.get(IFLA_ADDRESS).unwrap_or_default().to_vec(),
            mtu: attrs.u32(IFLA_MTU).unwrap_or_default(),
            tx_queues: attrs.u32(IFLA_NUM_TX_QUEUES).unwrap_or_default(),
            rx_queues: attrs.u32(IFLA_NUM_RX_QUEUES).unwrap_or_default(),
            qdisc: attrs.text(IFLA_QDISC),
            peer_index: attrs.u32(IFLA_LINK),
            peer_elsewhere: attrs.get(IFLA_LINK_NETNSID).is_some(),
            peer_namespace: attrs.u32(IFLA_LINK_NETNSID),
            carrier: attrs.u8(IFLA_CARRIER).map(|up| up != 0),
            carrier_changes: attrs.u32(IFLA_CARRIER_CHANGES),
            gso_max_size: attrs.u32(IFLA_GSO_MAX_SIZE),
            tso_max_size: attrs.u32(IFLA_TSO_MAX_SIZE),
            gro_max_size: attrs.u32(IFLA_GRO_MAX_SIZE),
            gro_ipv4_max_size: attrs.u32(IFLA_GRO_IPV4_MAX_SIZE),
            mtu_range: attrs.u32(IFLA_MIN_MTU).zip(attrs.u32(IFLA_MAX_MTU)),
            master: attrs.u32(IFLA_MASTER),
            promiscuity: attrs.u32(IFLA_PROMISCUITY),
            allmulti: attrs.u32(IFLA_ALLMULTI),
            xdp: xdp_programs(&attrs)?,
            stats: stats(attrs.get(IFLA_STATS64).unwrap_or_default()),
        })
    }
}

fn stats(bytes: &[u8]) -> Vec<(&'static str, u64)> {
    let names = listed::lines(include_str!("link_stats.txt"));
    names.enumerate().map_while(|(n, name)| Some((name, word64(bytes, n)?))).collect()
}

pub(crate) fn header(index: u32, flags: u32, change: u32) -> Vec<u8> {
    [0, index, flags, change].iter().flat_map(|word| word.to_ne_bytes()).collect()
}

pub(crate) fn checked(name: &str) -> Result<&str, HostError> {
    // dev_valid_name, net/core/dev.c
    let bad = name.is_empty()
        || name.len() > NAME_MAX
        || matches!(name, "." | "..")
        || name.chars().any(|c| c == '/' || c == ':' || c.is_whitespace() || c == '\0');
    if bad {
        let why = format!("`{name}` is not a device name: 1 to {NAME_MAX} bytes without / : space");
        return Err(HostError::malformed("device name", 0, why));
    }
    Ok(name)
}

/// A message about the device of this name.
pub(crate) fn by_name(name: &str) -> Result<Body, HostError> {
    Ok(Body::new(&header(0, 0, 0)).text(IFLA_IFNAME, checked(name)?))
}

impl Netlink {
    /// All devices of this namespace.
    pub fn links(&mut self) -> Result<Vec<NetworkLink>, HostError> {
        let replies = self.dump("list links", RTM_GETLINK, &header(0, 0, 0))?;
        replies.iter().map(|reply| NetworkLink::parse(reply)).collect()
    }

    /// The answer about one device.
    pub(super) fn link_message(&mut self, op: &str, body: &Body) -> Result<Vec<u8>, HostError> {
        let replies = self.get(op, RTM_GETLINK, body.bytes())?;
        replies.into_iter().next().ok_or_else(|| HostError::kernel(op, libc::ENODEV))
    }

    /// One device by name.
    ///
    /// **Errors** `Kernel` with `ENODEV` when there is none.
    pub fn link(&mut self, name: &str) -> Result<NetworkLink, HostError> {
        NetworkLink::parse(&self.link_message(&format!("show link {name}"), &by_name(name)?)?)
    }

    /// One device by its index.
    ///
    /// **Errors** `Kernel` with `ENODEV` when there is none.
    pub fn link_at(&mut self, index: u32) -> Result<NetworkLink, HostError> {
        let body = Body::new(&header(index, 0, 0));
        NetworkLink::parse(&self.link_message(&format!("show link {index}"), &body)?)
    }

    /// The other end of a veth, or the device below one, in whatever namespace it is.
    ///
    /// **Source** net/core/rtnetlink.c `rtnl_getlink`, `rtnl_get_net_ns_capable` (4.15; by that number 4.20).
    /// **Errors** `Kernel` without `CAP_NET_ADMIN` over the other namespace, and with `ENODEV` when there is none.
    pub fn other_end(&mut self, link: &NetworkLink) -> Result<NetworkLink, HostError> {
        let index = link.peer_index.unwrap_or_default();
        let op = format!("show the other end of {}", link.name);
        let body = Body::new(&header(index, 0, 0))
            .with(link.peer_namespace, |body, namespace| body.u32(IFLA_TARGET_NETNSID, namespace));
        let other = NetworkLink::parse(&self.link_message(&op, &body)?)?;
        if other.index == index { Ok(other) } else { Err(HostError::kernel(op, libc::ENODEV)) }
    }

    /// Index of a device. **Errors** as [`Netlink::link`].
    pub fn index(&mut self, name: &str) -> Result<u32, HostError> {
        self.link(name).map(|link| link.index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::any_bytes::{takes_a_cut_answer, takes_any_bytes};

    fn sample() -> Vec<u8> {
        let stats: Vec<u8> = (0..25u64).flat_map(u64::to_ne_bytes).collect();
        let info = Body::default().text(IFLA_INFO_KIND, "veth");
        Body::new(&header(7, 1, 0))
            .text(IFLA_IFNAME, "veth")
            .u32(IFLA_MTU, 1500)
            .nest(IFLA_LINKINFO, &info)
            .raw(IFLA_STATS64, &stats)
            .bytes()
            .to_vec()
    }

    #[test]
    fn a_link_is_read() {
        let link = NetworkLink::parse(&sample()).unwrap();
        assert_eq!((link.index, link.name.as_str(), link.mtu), (7, "veth", 1500));
        assert!(link.is_up());
        assert_eq!(link.kind.as_deref(), Some("veth"));
        assert_eq!(link.stat("rx.dropped"), Some(6));
        assert_eq!(link.stat("rx.otherhost_dropped"), Some(24));
    }

    #[test]
    fn only_a_vlan_has_a_tag() {
        let read = |kind: &str| {
            let data = Body::default().raw(IFLA_VLAN_ID, &7u16.to_ne_bytes());
            let info = Body::default().text(IFLA_INFO_KIND, kind).nest(IFLA_INFO_DATA, &data);
            let body = Body::new(&header(7, 1, 0)).nest(IFLA_LINKINFO, &info);
            NetworkLink::parse(body.bytes()).unwrap().vlan_id
        };
        assert_eq!((read("vlan"), read("macvlan")), (Some(7), None));
    }

    #[test]
    fn xdp_programs_have_their_mode() {
        let old = Body::default().u8(IFLA_XDP_ATTACHED, 2).u32(IFLA_XDP_PROG_ID, 9);
        let both = Body::default()
            .u8(IFLA_XDP_ATTACHED, 4)
            .u32(IFLA_XDP_DRV_PROG_ID, 1)
            .u32(IFLA_XDP_SKB_PROG_ID, 2);
        let read = |xdp: &Body| {
            let body =
                Body::new(&header(7, 1, 0)).nest(IFLA_XDP, xdp).u32(IFLA_GRO_MAX_SIZE, 65536);
            NetworkLink::parse(body.bytes()).unwrap()
        };
        assert_eq!(read(&old).xdp, [XdpProgram { mode: XdpMode::Generic, program_id: 9 }]);
        assert_eq!(read(&both).xdp.len(), 2);
        assert!(read(&Body::default().u8(IFLA_XDP_ATTACHED, 0)).xdp.is_empty());
        assert_eq!(read(&old).gro_max_size, Some(65536));
    }

    #[test]
    fn older_kernels_have_fewer_statistics() {
        assert_eq!(stats(&[0; 23 * 8]).len(), 23);
        assert!(stats(&[]).is_empty(), "no statistics are not zeros");
    }

    #[test]
    fn names_that_no_device_can_have_are_refused() {
        for name in ["", "a/b", "a b", "averyverylongname", ".."] {
            assert!(checked(name).is_err(), "{name}");
        }
        assert!(checked("rxp-a0").is_ok());
    }

    takes_a_cut_answer!(sample(), cut => NetworkLink::parse(cut));
    takes_any_bytes!(300, bytes => NetworkLink::parse(&bytes));
}
