//! The route from a host to an address.

use std::net::IpAddr;

use rxpath_host::HostError;
use rxpath_host::netlink::Netlink;
use serde::{Deserialize, Serialize};

/// The route to an address.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RouteFacts {
    /// Name of the device that packets leave by.
    pub device: String,
    /// Source address of a socket that is bound to none.
    pub source: Option<IpAddr>,
    /// Whether a router lies between.
    pub via_gateway: bool,
}

/// The route to an address now; `None` where there is none.
pub(super) fn route(to: IpAddr) -> Result<Option<RouteFacts>, HostError> {
    let mut netlink = Netlink::route()?;
    let Some(route) = netlink.route_to(to, 0)? else { return Ok(None) };
    let device = netlink.link_at(route.device)?.name;
    Ok(Some(RouteFacts { device, source: route.source, via_gateway: route.gateway.is_some() }))
}
