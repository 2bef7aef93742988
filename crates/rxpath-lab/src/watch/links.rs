//! What the devices of this namespace received and lost, loopback left out.

use std::collections::BTreeMap;
use std::time::Instant;

use rxpath_host::HostError;
use rxpath_host::netlink::Netlink;

/// Received, lost at the device, refused by device or backlog: `rx.packets`, `rx.errors` and `rx.missed_errors`,
/// `rx.dropped`.
type Counts = [u64; 3];

/// The devices at the beginning of a window.
#[derive(Debug)]
pub struct Links {
    route: Result<Netlink, String>,
    before: BTreeMap<u32, Counts>,
    at: Instant,
}

/// All devices together over a window.
#[derive(Clone, Debug, Default)]
pub struct LinkRates {
    /// Packets that the devices took, per second; after the driver's merging (LRO), before GRO.
    pub received_pps: f64,
    /// Damaged, or without a free descriptor, per second.
    pub errors_pps: f64,
    /// `rx.dropped`, per second: full rings of virtual devices, and the backlog's drops once more.
    pub dropped_pps: f64,
    /// Why there is nothing.
    pub gap: Option<String>,
}

impl Links {
    pub fn start() -> Self {
        let mut links = Self {
            route: Netlink::route().map_err(|error| error.to_string()),
            before: BTreeMap::new(),
            at: Instant::now(),
        };
        links.before = links.read().unwrap_or_default();
        links
    }

    fn read(&mut self) -> Result<BTreeMap<u32, Counts>, String> {
        let route = self.route.as_mut().map_err(|why| why.clone())?;
        let links = route.links().map_err(|error: HostError| error.to_string())?;
        let stat = |link: &rxpath_host::netlink::Link, name: &str| link.stat(name).unwrap_or(0);
        let counts = |link: &rxpath_host::netlink::Link| {
            [
                stat(link, "rx.packets"),
                stat(link, "rx.errors") + stat(link, "rx.missed_errors"),
                stat(link, "rx.dropped"),
            ]
        };
        let real = links.iter().filter(|link| link.flags & loopback() == 0);
        Ok(real.map(|link| (link.index, counts(link))).collect())
    }

    /// The rates of the window that ends now; a device that came or was reset in it counts from the next on.
    pub fn until_now(&mut self) -> LinkRates {
        let now = match self.read() {
            Ok(now) => now,
            Err(why) => return LinkRates { gap: Some(why), ..LinkRates::default() },
        };
        let span_s = self.at.elapsed().as_secs_f64().max(1e-3);
        self.at = Instant::now();
        let before = std::mem::replace(&mut self.before, now);
        let sum = |at: usize| {
            let steps = self
                .before
                .iter()
                .filter_map(|(index, counts)| counts[at].checked_sub(before.get(index)?[at]));
            steps.sum::<u64>() as f64 / span_s
        };
        LinkRates { received_pps: sum(0), errors_pps: sum(1), dropped_pps: sum(2), gap: None }
    }
}

/// `IFF_LOOPBACK`.
fn loopback() -> u32 {
    nix::net::if_::InterfaceFlags::IFF_LOOPBACK.bits() as u32
}
