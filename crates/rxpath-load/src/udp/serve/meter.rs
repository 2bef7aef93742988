//! What is done with each datagram that was read.

use crate::engine::clock;
use crate::engine::spin;
use crate::udp::header::{HEADER_BYTES, Header, MAGIC, Stamp};
use crate::udp::sender_clock::SenderClock;
use crate::udp::tracker::Tracker;
use rxpath_stats::Histogram;

/// Counts, checks and times the datagrams of one thread.
#[derive(Debug, Default)]
pub(super) struct Meter {
    pub(super) tracker: Tracker,
    pub(super) delay: Histogram,
    pub(super) wait: Histogram,
    pub(super) unnumbered: u64,
    /// Stamped before they were sent, by the clocks as they were compared.
    pub(super) early: u64,
    /// The clock of the sender that was heard last.
    clock: SenderClock,
    clocks: Vec<SenderClock>,
    /// Added to each delay in the histogram.
    margin_ns: u64,
    work_steps: u64,
    /// Send time of the datagrams not yet in the histogram, and how many they are: datagrams of
    /// one call carry one stamp.
    pending: (u64, u64),
}

impl Meter {
    pub(super) fn new(work_ns: u64, senders: &[SenderClock]) -> Self {
        let own = SenderClock { id: clock::identity(), ..SenderClock::default() };
        let clocks: Vec<SenderClock> = senders.iter().copied().chain([own]).collect();
        let work_steps = spin::steps_of(work_ns);
        let margin_ns = margin_ns(senders);
        Self { clock: own, clocks, margin_ns, work_steps, ..Self::default() }
    }

    /// One datagram, read at `now_ns`.
    #[inline]
    pub(super) fn datagram(&mut self, data: &[u8], now_ns: u64) {
        if let Some(header) = Header::read(data) {
            self.tracker.take(header.stream, header.sequence);
            if header.clock == self.clock.id || self.turn_to(header.clock, now_ns) {
                if header.time_ns == self.pending.0 {
                    self.pending.1 += 1;
                } else {
                    self.flush(now_ns);
                    self.pending = (header.time_ns, 1);
                }
            }
        } else {
            self.unnumbered += 1;
        }
        spin::run(self.work_steps);
    }

    /// Goes over to another sender's clock; whether it is known.
    #[cold]
    fn turn_to(&mut self, id: u16, now_ns: u64) -> bool {
        let Some(clock) = self.clocks.iter().find(|clock| clock.id == id).copied() else {
            return false;
        };
        self.flush(now_ns);
        self.clock = clock;
        true
    }

    /// Puts the pending delays into the histogram; call it at the end of each batch.
    #[inline]
    pub(super) fn flush(&mut self, now_ns: u64) {
        let (time_ns, count) = std::mem::take(&mut self.pending);
        // Number 0: that sender could not read its clock's identity.
        if count > 0 && self.clock.id != 0 {
            let header = Header { stream: 0, clock: 0, sequence: 0, time_ns };
            match header.delay_ns(self.clock.there(now_ns).wrapping_add(self.margin_ns)) {
                Some(delay) => self.delay.record_n(delay, count),
                None => self.early += count,
            }
        }
    }
}

/// What meters add to each delay.
fn margin_ns(senders: &[SenderClock]) -> u64 {
    senders.iter().map(SenderClock::margin_ns).max().unwrap_or(0)
}

/// Delays as they are, of a histogram of meters. Those that the clocks' error makes less than zero are zero.
pub(super) fn without_margin(delays: Histogram, senders: &[SenderClock]) -> Histogram {
    let margin_ns = margin_ns(senders);
    if margin_ns == 0 {
        return delays;
    }
    let mut shifted = Histogram::of_times();
    for (ns, count) in delays.recorded() {
        shifted.record_n(ns.saturating_sub(margin_ns), count);
    }
    shifted
}

/// The receive loop's own cost per datagram, without system calls. **Unit** ns, the best of `rounds`.
///
/// It runs the same code over a batch of prepared datagrams of 32 bytes, a clock reading per batch included.
pub fn dry_loop_ns(batch: usize, rounds: u32) -> f64 {
    const SIZE: usize = 32;
    const BATCHES: u64 = 2_000;
    let (mut meter, identity) = (Meter::new(0, &[]), clock::identity());
    let mut data = vec![0u8; batch.max(1) * SIZE];
    let mut sequence = 0;
    let mut best = f64::MAX;
    for _ in 0..rounds.max(1) {
        let mut spent = 0;
        for _ in 0..BATCHES {
            let stamp = Stamp::new(1, identity, clock::now_ns());
            for payload in data.chunks_exact_mut(SIZE) {
                stamp.write(sequence, payload);
                payload[HEADER_BYTES..HEADER_BYTES + 4].copy_from_slice(&MAGIC);
                sequence += 1;
            }
            let start = clock::now_ns();
            let now = clock::now_ns();
            for payload in std::hint::black_box(&data).chunks_exact(SIZE) {
                meter.datagram(payload, now);
            }
            meter.flush(now);
            spent += clock::now_ns() - start;
        }
        best = best.min(spent as f64 / (BATCHES * batch.max(1) as u64) as f64);
    }
    best
}
