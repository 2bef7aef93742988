//! What rtnetlink lets be set on a link and the receive path depends on, as pairs.

use super::link::{
    IFINFOMSG, IFLA_GRO_IPV4_MAX_SIZE, IFLA_GRO_MAX_SIZE, IFLA_GSO_IPV4_MAX_SIZE,
    IFLA_GSO_MAX_SEGS, IFLA_GSO_MAX_SIZE, IFLA_IFNAME, IFLA_MAX_MTU, IFLA_MIN_MTU, IFLA_MTU,
    IFLA_TXQLEN, RTM_GETLINK, RTM_NEWLINK, checked, header,
};
use super::socket::Netlink;
use super::wire::{Attrs, Body};
use crate::HostError;
use crate::pairs::Pairs;

/// Names and attributes. The IPv4 limits follow the others when these get small, so they are written last.
const SETTINGS: [(&str, u16); 7] = [
    ("mtu", IFLA_MTU),
    ("txqueuelen", IFLA_TXQLEN),
    ("gso-max-segs", IFLA_GSO_MAX_SEGS),
    ("gso-max-size", IFLA_GSO_MAX_SIZE),
    ("gro-max-size", IFLA_GRO_MAX_SIZE),
    ("gso-ipv4-max-size", IFLA_GSO_IPV4_MAX_SIZE),
    ("gro-ipv4-max-size", IFLA_GRO_IPV4_MAX_SIZE),
];

/// The names of the settings.
pub fn names() -> impl Iterator<Item = &'static str> {
    SETTINGS.iter().map(|(name, _)| *name)
}

/// Reads one `RTM_NEWLINK` payload: the settings, and the largest MTU where the device says one.
///
/// **Source** net/core/rtnetlink.c `rtnl_fill_ifinfo`.
pub fn parse(payload: &[u8]) -> Result<(Pairs, Option<(u32, u32)>), HostError> {
    let attrs = Attrs::after(payload, IFINFOMSG)?;
    let mut pairs = Pairs::default();
    for (name, attribute) in SETTINGS {
        if let Some(value) = attrs.u32(attribute) {
            pairs.push(name, value);
        }
    }
    // 0: the driver sets no limit (`struct net_device`, max_mtu).
    let max = attrs.u32(IFLA_MAX_MTU).filter(|max| *max > 0);
    Ok((pairs, max.map(|max| (attrs.u32(IFLA_MIN_MTU).unwrap_or(0), max))))
}

fn request(mut body: Body, asked: &Pairs) -> Result<Body, HostError> {
    for (name, text) in asked.iter() {
        let known = SETTINGS.iter().find(|(known, _)| *known == name);
        let (Some((_, attribute)), Ok(value)) = (known, text.parse()) else {
            let names: Vec<&str> = names().collect();
            let why = format!("{name}={text}: expected a number for {}", names.join(", "));
            return Err(HostError::malformed("link", 0, why));
        };
        body = body.u32(*attribute, value);
    }
    Ok(body)
}

/// Whether these are names and values that a link takes.
pub fn check(asked: &Pairs) -> Result<(), HostError> {
    request(Body::default(), asked).map(drop)
}

impl Netlink {
    fn link_message(&mut self, dev: &str) -> Result<Vec<u8>, HostError> {
        let op = format!("read link settings of {dev}");
        let body = Body::new(&header(0, 0, 0)).text(IFLA_IFNAME, checked(dev)?);
        let replies = self.get(&op, RTM_GETLINK, body.bytes())?;
        let reply = replies.into_iter().find(|reply| reply.kind == RTM_NEWLINK);
        reply.map(|reply| reply.payload).ok_or_else(|| HostError::kernel(op, libc::ENODEV))
    }

    /// The settings of a link. On a [`Netlink::route`] socket.
    pub fn link_settings(&mut self, dev: &str) -> Result<Pairs, HostError> {
        parse(&self.link_message(dev)?).map(|(pairs, _)| pairs)
    }

    /// Smallest and largest MTU, where the device says them.
    pub fn mtu_limits(&mut self, dev: &str) -> Result<Option<(u32, u32)>, HostError> {
        parse(&self.link_message(dev)?).map(|(_, limits)| limits)
    }

    /// Asks for settings of a link.
    pub fn set_link_settings(&mut self, dev: &str, asked: &Pairs) -> Result<(), HostError> {
        let body = Body::new(&header(0, 0, 0)).text(IFLA_IFNAME, checked(dev)?);
        let body = request(body, asked)?;
        self.change(&format!("set {dev}/link {asked}"), RTM_NEWLINK, 0, body.bytes()).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn loopback_has_its_settings() {
        let pairs = Netlink::route().unwrap().link_settings("lo").unwrap();
        assert_eq!(pairs.get("mtu"), Some("65536"));
        assert!(pairs.get("gso-max-size").is_some(), "{pairs}");
    }

    #[test]
    fn a_wrong_name_is_refused_before_it_is_sent() {
        let error = Netlink::route().unwrap().set_link_settings("lo", &"mtv=1".parse().unwrap());
        assert!(error.unwrap_err().to_string().contains("mtu, txqueuelen"));
    }

    proptest! {
        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
        }
    }
}
