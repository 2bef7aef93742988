//! When a datagram came, at the latest: the kernel's stamp has no wait of the program in it.

use rxpath_host::read::clock::RealtimeReading;

use crate::clock::monotonic_ns;

/// Brings the kernel's stamps to the clock here, by readings before and after each datagram.
pub(super) struct ArrivalClock {
    /// The last one.
    before: RealtimeReading,
}

impl ArrivalClock {
    /// Begins before the first datagram comes.
    pub(super) fn start() -> Self {
        Self { before: RealtimeReading::now() }
    }

    /// When what was just read came at the latest, with its stamp, if it has one. **Unit** ns.
    ///
    /// **Cost** about 1 µs. To be called after each wait, also after one in which nothing came: a step of the clock between
    /// two readings takes the stamps between them.
    pub(super) fn latest_ns(&mut self, stamp_ns: Option<u64>) -> u64 {
        let read_ns = monotonic_ns();
        let after = RealtimeReading::now();
        let before = std::mem::replace(&mut self.before, after);
        latest_ns(stamp_ns, read_ns, [before, after])
    }
}

/// The earlier one of the kernel's stamp and the program's reading. Both are at or after the arrival.
fn latest_ns(stamp_ns: Option<u64>, read_ns: u64, [before, after]: [RealtimeReading; 2]) -> u64 {
    let stamped_ns = stamp_ns.and_then(|stamp_ns| before.latest_of(after, stamp_ns));
    stamped_ns.map_or(read_ns, |stamped_ns| stamped_ns.min(read_ns))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::endpoint::clock::ClockPair;
    use crate::endpoint::clock::{ClockBounds, Exchange};

    const START: u64 = 1_000_000_000_000;

    /// A host: its clocks at each instant of the world.
    #[derive(Clone, Copy, Debug)]
    struct Simulated {
        /// Its `CLOCK_MONOTONIC` is ahead of the world's by this.
        ahead_ns: i64,
        /// When its `CLOCK_REALTIME` is stepped, and by how much.
        step: (u64, i64),
        /// How long the two halves of a reading of both clocks take.
        halves: [u64; 2],
    }

    impl Simulated {
        fn monotonic(self, at: u64) -> u64 {
            at.saturating_add_signed(self.ahead_ns)
        }

        fn realtime(self, at: u64) -> u64 {
            let (from, by) = self.step;
            let unstepped = at + 1_700_000_000_000_000_000;
            if at >= from { unstepped.saturating_add_signed(by) } else { unstepped }
        }

        fn reading(self, at: u64) -> RealtimeReading {
            let within = at + self.halves[0];
            RealtimeReading {
                before_ns: self.monotonic(at),
                realtime_ns: self.realtime(within),
                after_ns: self.monotonic(within + self.halves[1]),
            }
        }

        /// What it notes of a datagram that came at `at` and is read `late` later, with the reading of both clocks before it.
        fn notes(self, at: u64, late: u64, before: u64, has_stamp: bool) -> u64 {
            let stamp = self.realtime(at + late.min(50));
            let both = [self.reading(before), self.reading(at + late)];
            latest_ns(has_stamp.then_some(stamp), self.monotonic(at + late), both)
        }
    }

    /// An exchange between two hosts; the directions take 20 us and 30 us. Each end first reads both clocks so long before its
    /// datagram comes, or after that.
    fn exchange(
        [here, host]: [Simulated; 2],
        late: [u64; 2],
        reads_before: [i64; 2],
        has_stamp: bool,
    ) -> Exchange {
        let got = START + 20_000;
        let before = |at: u64, by: i64| at.saturating_add_signed(-by);
        let got_ns = host.notes(got, late[0], before(got, reads_before[0]), has_stamp);
        let answered = got + late[0] + 2_000;
        let back = answered + 30_000;
        let back_ns = here.notes(back, late[1], before(back, reads_before[1]), has_stamp);
        let there = ClockPair { got_ns, answered_ns: host.monotonic(answered) };
        Exchange { asked_ns: here.monotonic(START), there, back_ns }
    }

    fn steady(ahead_ns: i64) -> Simulated {
        Simulated { ahead_ns, step: (0, 0), halves: [30, 40] }
    }

    #[test]
    fn a_late_program_widens_no_interval_whose_datagrams_the_kernel_stamped() {
        let day = 86_400_000_000_000;
        let hosts = [steady(0), steady(day)];
        let bounds = |has_stamp| {
            let made = exchange(hosts, [400_000, 700_000], [60_000, 600_000], has_stamp);
            ClockBounds::of(&[made]).unwrap()
        };
        let (with, without) = (bounds(true), bounds(false));
        // The clocks may come 1,382 ns apart in the 1.152 ms of the exchange.
        assert_eq!((without.least_ns, without.most_ns), (day - 731_382, day + 420_000));
        // 50 ns until the kernel stamps, 40 ns of a reading; 542 ns in 0.452 ms.
        assert_eq!((with.least_ns, with.most_ns), (day - 30_632, day + 20_090));
        assert_eq!((with.round_trip_ns, without.round_trip_ns), (50_180, 1_150_000));
    }

    #[test]
    fn a_stamp_from_before_a_step_is_not_used() {
        let step = (START + 100_000, -3_600_000_000_000);
        let there = Simulated { step, ..steady(5) };
        let hosts = [steady(0), there];
        let notes = |has_stamp| exchange(hosts, [400_000, 9], [60_000, 600_000], has_stamp).there;
        assert_eq!(notes(true), notes(false));
        // A step forward, between the two readings; then one before both of them, which shows only in that the stamp would be
        // an hour before the datagram was sent.
        for (at, reads_before) in [(START + 100_000, 60_000), (START + 20_100, -900)] {
            let there = Simulated { step: (at, -step.1), ..there };
            let made = exchange([steady(0), there], [400_000, 9], [reads_before, 600_000], true);
            assert_eq!(made.there.got_ns, START + 420_005);
        }
    }

    proptest! {
        #[test]
        fn the_truth_is_inside_whatever_steps_a_clock_and_however_late_a_program_is(
            ahead in -100_000_000_000i64..100_000_000_000,
            late in [1_000u64..1_000_000, 1_000..1_000_000],
            reads_before in [-900i64..100_000, -900..100_000],
            halves in [[0u64..2_000, 0..2_000], [0..2_000, 0..2_000]],
            steps_at in [0u64..2_200_000, 0..2_200_000],
            steps_by in prop_oneof![
                [-3_000i64..3_000, -3_000i64..3_000],
                [-5_000_000_000i64..5_000_000_000, -5_000_000_000i64..5_000_000_000],
            ],
        ) {
            let host = |i: usize, ahead_ns: i64| Simulated {
                ahead_ns,
                step: (START - 100_000 + steps_at[i], steps_by[i]),
                halves: halves[i],
            };
            let hosts = [host(0, 0), host(1, ahead)];
            let of = |has_stamp| {
                ClockBounds::of(&[exchange(hosts, late, reads_before, has_stamp)])
            };
            let with = of(true);
            prop_assert!(with.is_some(), "a contradiction");
            let (with, without) = (with.unwrap(), of(false).unwrap());
            prop_assert!(with.least_ns <= ahead && ahead <= with.most_ns, "{with:?} {ahead}");
            prop_assert!(with.least_ns >= without.least_ns && with.most_ns <= without.most_ns);
        }
    }
}
