//! The counters of this host as one side of an experiment: protocols, softnet and one device.

use std::time::{Duration, Instant};

use rxpath_host::netlink::{Netlink, ioctl};
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
    device: String,
}

impl Counting {
    /// Opens them in the network namespace of the process.
    pub fn open(device: &str) -> Result<Self, HostError> {
        let reader = Reader::all(&Root::host());
        Ok(Self { reader, route: Netlink::route()?, device: device.to_owned() })
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
        snapshot.t_ns = monotonic_ns() as i64;
        snapshot
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
