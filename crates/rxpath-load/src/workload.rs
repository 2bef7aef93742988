//! How a conductor (a command, a test, the lab) controls a running workload of any protocol, on either side.

use std::collections::BTreeMap;

use rxpath_core::Warning;
use rxpath_core::number::grouped;
use rxpath_stats::Histogram;
use serde::Serialize;

use crate::LoadError;
use crate::tally::Shared;

/// Controls a workload whose sockets are open and whose threads wait for the start.
pub trait WorkloadHandle {
    /// What is really in force.
    type Settings: Serialize;
    /// What comes out.
    type Result: Serialize;
    /// A reading of cumulative counters: any two readings give a rate.
    type Interval: CounterReading + Serialize + Clone;

    /// Name in the schema id: `serve-udp`, `load-http`.
    const NAME: &'static str;

    /// The effective settings.
    fn settings(&self) -> &Self::Settings;
    /// What was noticed while setting up.
    fn warnings(&self) -> &[Warning];
    /// The state that the workers share.
    fn shared(&self) -> &Shared;
    /// Counters of this moment.
    fn interval(&self) -> Self::Interval;
    /// Stops the workers, waits for them and adds up.
    ///
    /// The sockets stay open until the workload is dropped.
    fn finish(&mut self) -> Result<Finished<Self::Result>, LoadError>;

    /// Times since the last call, by name; nothing where a workload times no requests. A parent asks for them in slices.
    fn new_times(&self) -> Option<(&'static str, Histogram)> {
        None
    }
    /// Starts the workers at this instant of `CLOCK_MONOTONIC`; a past one means now.
    ///
    /// A server serves from its opening on, so that no packet waits for this: there it does nothing.
    fn start(&mut self, t_ns: u64) {
        self.shared().start(t_ns);
    }
    /// Datagrams, requests, transactions or bytes so far: what the rate of the result counts.
    fn done(&self) -> u64 {
        self.shared().sum(|tally| &tally.units)
    }
    /// What came by so far, whether it counts as done or not: while this grows, a workload is not idle.
    fn seen(&self) -> u64 {
        self.done()
    }
    /// End of the time that the result's rate covers: the last datagram, request or byte so far.
    fn last_ns(&self) -> Option<u64> {
        self.shared().last_ns()
    }
}

/// Name, types and answers of a workload that come from its fields; its end is made by its module `finish`.
macro_rules! from_fields {
    ($name:expr, $settings:ty, $result:ty) => {
        type Settings = $settings;
        type Result = $result;
        type Interval = Interval;
        const NAME: &'static str = $name;

        fn settings(&self) -> &$settings {
            &self.settings
        }

        fn warnings(&self) -> &[::rxpath_core::Warning] {
            &self.warnings
        }

        fn shared(&self) -> &$crate::tally::Shared {
            &self.pool.shared
        }

        fn finish(&mut self) -> Result<$crate::workload::Finished<$result>, $crate::LoadError> {
            finish::finish(self)
        }
    };
}
pub(crate) use from_fields;

/// What the results of all protocols have: a thread with its usage, a line of `--interval` with its instant.
macro_rules! of_results {
    ($thread:ty, $interval:ty) => {
        impl AsRef<$crate::usage::ThreadUsage> for $thread {
            fn as_ref(&self) -> &$crate::usage::ThreadUsage {
                &self.usage
            }
        }

        impl $crate::workload::CounterReading for $interval {
            fn t_ns(&self) -> u64 {
                self.t_ns
            }
        }
    };
}
pub(crate) use of_results;

/// A reading of a workload's cumulative counters.
pub trait CounterReading {
    /// `CLOCK_MONOTONIC` at the reading.
    fn t_ns(&self) -> u64;
}

/// A workload's end.
#[derive(Clone, Debug)]
pub struct Finished<R> {
    /// What came out.
    pub result: R,
    /// What to know before trusting it.
    pub warnings: Vec<Warning>,
    /// Times behind the quantiles of the result, so that trials can be merged instead of averaged; the quantiles of
    /// `service_time` are the result's `service_time_us`.
    pub histograms: Vec<(&'static str, Histogram)>,
}

impl<R> Finished<R> {
    /// Without empty histograms, and with a warning for each that has times over its range: its encoded form does not say.
    #[must_use]
    pub fn with_samples(mut self) -> Self {
        self.histograms.retain(|(_, histogram)| histogram.count() > 0);
        self.warnings.extend(self.histograms.iter().filter_map(clipped));
        self
    }
}

/// Counts by name as a warning lists them, without those of 0: `1,200 ECONNRESET, 1 EPIPE`.
pub(crate) fn listed(counts: &BTreeMap<String, u64>) -> String {
    let found = counts.iter().filter(|(_, count)| **count > 0);
    let each = found.map(|(name, count)| format!("{} {name}", grouped(*count)));
    each.collect::<Vec<String>>().join(", ")
}

/// Times over the histogram's range.
fn clipped((name, times): &(&'static str, Histogram)) -> Option<Warning> {
    let (count, name) = (times.clipped(), name.replace('_', " "));
    let shown = grouped(count);
    let text = format!("{shown} values of {name} were over 60 s and are counted as 60 s");
    (count > 0).then(|| Warning::new("clipped", text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_listed_with_grouped_digits_and_without_zeros() {
        let counts = [("ECONNRESET", 1_200), ("EPIPE", 1), ("timeout", 0)];
        let counts = counts.map(|(name, count)| (name.to_owned(), count));
        assert_eq!(listed(&counts.into()), "1,200 ECONNRESET, 1 EPIPE");
    }

    #[test]
    fn times_over_a_histogram_s_range_are_said() {
        let mut times = Histogram::of_times();
        times.record(5);
        let finished = |times: &Histogram| {
            let histograms = vec![("response_time", times.clone())];
            Finished { result: (), warnings: Vec::new(), histograms }.with_samples().warnings
        };
        assert!(finished(&times).is_empty());
        times.record_n(u64::MAX, 3);
        let said = finished(&times);
        let text = "3 values of response time were over 60 s and are counted as 60 s";
        assert_eq!((said.len(), said[0].code.as_str()), (1, "clipped"));
        assert_eq!(said[0].text, text);
    }
}
