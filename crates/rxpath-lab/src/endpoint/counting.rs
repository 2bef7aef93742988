//! The counters of this host as one side of an experiment: protocols, softnet and one device.

use std::time::{Duration, Instant};

use rxpath_host::netlink::{Netlink, ioctl};
use rxpath_host::nic::losses::{self, CardCounters};
use rxpath_host::snapshot::Reader;
use rxpath_host::{HostError, Root};
use rxpath_record::counters::Snapshot;

use super::wire::Rested;
use crate::clock::monotonic_ns;

/// Two readings this far apart must be equal for counters to count as stable.
const APART: Duration = Duration::from_millis(30);

/// The open sources of the counters.
pub struct Counting {
    reader: Reader,
    route: Netlink,
    /// For the statistics that the standards define; `None` where the device has none.
    generic: Option<Netlink>,
    device: String,
}

impl Counting {
    /// Opens them in the network namespace of the process.
    pub fn open(device: &str) -> Result<Self, HostError> {
        let root = Root::host();
        let reader = Reader::all(&root).with_energy(&root);
        let mut generic = Netlink::generic().ok();
        let standard = generic.as_mut().and_then(|it| it.standard_stats(device).ok());
        let generic = generic.filter(|_| standard.is_some_and(|it| !it.is_empty()));
        Ok(Self { reader, route: Netlink::route()?, generic, device: device.to_owned() })
    }

    /// Which of the device's counters say what its ring lost and what was on the wire.
    pub fn card(&mut self, driver: &str) -> CardCounters {
        let snapshot = self.read();
        let of_device = |name: &String| {
            let (source, rest) = name.split_once('.')?;
            let counter = rest.strip_prefix(&self.device)?.strip_prefix('.')?;
            Some(format!("{source}.{counter}"))
        };
        let offered: Vec<String> = snapshot.values.keys().filter_map(of_device).collect();
        let mut card = losses::counters(driver, &offered);
        let named = [
            &mut card.ring,
            &mut card.received,
            &mut card.perhaps_received,
            &mut card.sent,
            &mut card.damaged,
        ];
        for name in named.into_iter().flatten() {
            if let Some((source, counter)) = name.split_once('.') {
                *name = format!("{source}.{}.{counter}", self.device);
            }
        }
        card
    }

    /// Reads all of them; what cannot be read is a gap.
    pub fn read(&mut self) -> Snapshot {
        let read = self.reader.read();
        let mut snapshot = Snapshot { values: read.values, gaps: read.gaps, t_ns: 0 };
        match self.route.link(&self.device) {
            Ok(link) => {
                let named = link
                    .stats
                    .iter()
                    .map(|(name, value)| (format!("link.{}.{name}", self.device), *value));
                snapshot.values.extend(named);
            }
            Err(error) => {
                snapshot.gaps.insert("link".into(), error.to_string());
            }
        }
        // A device without driver counters has none to miss.
        let of_driver = ioctl::driver_stats(&self.device).unwrap_or_default();
        let named = of_driver
            .into_iter()
            .map(|(name, value)| (format!("ethtool.{}.{name}", self.device), value));
        snapshot.values.extend(named);
        self.read_standard(&mut snapshot);
        snapshot.t_ns = monotonic_ns() as i64;
        snapshot
    }

    fn read_standard(&mut self, snapshot: &mut Snapshot) {
        let Some(generic) = &mut self.generic else { return };
        let prefix = format!("standard.{}", self.device);
        match generic.standard_stats(&self.device) {
            Ok(stats) => {
                let named =
                    stats.into_iter().map(|(name, value)| (format!("{prefix}.{name}"), value));
                snapshot.values.extend(named);
            }
            Err(error) => {
                snapshot.gaps.insert(prefix, error.to_string());
            }
        }
    }

    /// Reads until two readings in a row are equal in what the workload moves, or for `limit`.
    pub fn rest(&mut self, limit: Duration) -> Rested {
        let deadline = Instant::now() + limit;
        let mut before = self.read();
        loop {
            // why: the distance of two readings; what must not move between them is counted, not waited for.
            std::thread::sleep(APART);
            let counters = self.read();
            let is_quiescent = own(&before).eq(own(&counters));
            if is_quiescent || Instant::now() >= deadline {
                return Rested { counters, is_quiescent };
            }
            before = counters;
        }
    }
}

/// The device of the experiment, and datagrams that sockets take. The host's IP and TCP counters move with the connection that
/// asks; softnet belongs to the whole machine, and drivers refresh their counters when they please.
fn own(snapshot: &Snapshot) -> impl Iterator<Item = (&String, &u64)> {
    let counts = |name: &str| ["link.", "Udp"].iter().any(|group| name.starts_with(group));
    snapshot.values.iter().filter(move |(name, _)| counts(name))
}
