//! The start of a trial's load: ordered ahead, with the instant at which the load is over at the latest.

use std::time::Duration;

use super::HostsTestbed;
use crate::clock::HostClock;
use crate::endpoint::client::PendingAnswer;
use crate::error::LabError;
use crate::hosts::ConnectedHost;
use crate::testbed::Seat;

/// The least time from an order to its instant.
const LEAD: Duration = Duration::from_millis(200);
/// Round trips that an order may take until then.
const LEAD_ROUND_TRIPS: u64 = 4;

impl HostsTestbed<'_> {
    /// Tells all hosts when the load is over at the latest; none: it is over.
    pub(super) fn expect_load(
        &self,
        until_ns: Option<u64>,
    ) -> Result<Vec<PendingAnswer>, LabError> {
        let tell = |(host, _, clock): (&ConnectedHost, Seat, HostClock)| {
            host.client.expect_load(until_ns, clock)
        };
        self.seats().map(tell).collect()
    }

    /// The least time from an order to its instant: orders to hosts go out one after the other.
    pub(super) fn lead(&self) -> Duration {
        let round_trip_ns = self.clocks.iter().map(|clock| clock.round_trip_ns).max().unwrap_or(0);
        let hosts = self.hosts.senders.len() + self.hosts.receivers.len();
        LEAD.max(Duration::from_nanos((LEAD_ROUND_TRIPS + hosts as u64) * round_trip_ns))
    }
}
