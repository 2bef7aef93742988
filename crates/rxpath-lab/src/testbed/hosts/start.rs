//! The start of a trial's load: ordered ahead, with the instant at which the load is over at the latest, and judged afterwards.

use std::collections::BTreeMap;
use std::time::Duration;

use rxpath_record::hosts::HostStart;

use super::HostsTestbed;
use crate::trial::peer::Began;

/// The least time from an order to its instant.
const LEAD: Duration = Duration::from_millis(200);
/// Round trips that an order may take until then.
const LEAD_ROUND_TRIPS: u64 = 4;
/// From here on a start is missed. An order that came in time is kept within microseconds, and within some milliseconds if the
/// thread has to wait for its CPU. Later than that the order itself was late, and so is this sender's ramp: of a short ramp and
/// settle it would reach into the window, which has its instants from the common start.
const MISSED: Duration = Duration::from_millis(5);

/// When the senders of a trial began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Starts {
    /// Of each that said it, by alias.
    pub hosts: BTreeMap<String, HostStart>,
    /// Those that missed the start, in words.
    pub faults: Vec<String>,
}

impl Starts {
    /// Of each sender its alias, how far its clock may be wrong, and when its programs began.
    fn of<'a>(senders: impl Iterator<Item = (&'a str, u64, &'a [Began])>) -> Self {
        let mut all = Self::default();
        for (alias, error_ns, began) in senders {
            let first_ns = began.iter().map(|one| one.at_ns).min();
            let late_ns = began.iter().map(|one| one.late_ns).max();
            let Some((at_ns, late_ns)) = first_ns.zip(late_ns) else { continue };
            let start = HostStart { at_ns: at_ns as i64, error_ns, late_ns };
            if start.late_ns > MISSED.as_nanos() as u64 {
                let late = late_ns as f64 / 1e6;
                all.faults.push(format!("start missed by {alias}: {late:.0}ms late"));
            }
            all.hosts.insert(alias.to_owned(), start);
        }
        all
    }
}

impl HostsTestbed<'_> {
    /// The least time from orders to their instant: they go out one after the other.
    pub(super) fn lead(&self, orders: usize) -> Duration {
        let round_trip_ns = self.clocks.iter().map(|clock| clock.round_trip_ns).max().unwrap_or(0);
        LEAD.max(Duration::from_nanos((LEAD_ROUND_TRIPS + orders as u64) * round_trip_ns))
    }

    /// Judges when the programs of each sender began. After a start that was missed, orders go out earlier.
    pub(super) fn judge_starts(&self, began: &[Vec<Began>]) -> Starts {
        let senders = self.hosts.senders.iter().zip(&self.clocks).zip(began);
        let mut starts = Starts::of(senders.map(|((host, clock), began)| {
            (host.client.alias(), clock.error_ns(), began.as_slice())
        }));
        // A program that waits for its CPU is what such a scenario asks for.
        if self.starves_senders {
            starts.faults.clear();
        }
        if !starts.faults.is_empty() {
            self.hosts.start_lead.double();
        }
        starts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_that_began_late_missed_the_start_and_others_only_say_when_they_began() {
        let began = |at_ns, late_ns| Began { at_ns, late_ns };
        let gen1 = [began(1_000_020, 20), began(1_000_010, 10)];
        let late = [began(32_000_000, 31_000_000)];
        let at_limit = [began(6_000_000, 5_000_000)];
        let all = [
            ("gen1", 50, gen1.as_slice()),
            ("gen2", 60, late.as_slice()),
            ("gen3", 70, at_limit.as_slice()),
            ("gen4", 80, [].as_slice()),
        ];
        let starts = Starts::of(all.into_iter());
        assert_eq!(starts.faults, ["start missed by gen2: 31ms late"]);
        // The first of its programs, and the latest order.
        let first = HostStart { at_ns: 1_000_010, error_ns: 50, late_ns: 20 };
        assert_eq!(starts.hosts["gen1"], first);
        assert_eq!(starts.hosts.keys().collect::<Vec<_>>(), ["gen1", "gen2", "gen3"]);
    }
}
