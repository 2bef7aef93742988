//! A queue of packets with the inputs of Little's law: the area under its length, and the times spent in it.

use std::collections::VecDeque;

/// One packet in the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packet {
    /// When it came to the NIC.
    pub arrived: u64,
    /// When it came to the stage it is in.
    pub entered: u64,
    /// Kernel memory, once queued.
    pub truesize: u32,
    /// Its flow.
    pub flow: u32,
}

/// How long a queue is, over time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Gauge {
    level: u64,
    since: u64,
    area: u128,
    /// The highest level.
    pub most: u64,
}

impl Gauge {
    #[inline]
    pub(super) fn set(&mut self, now: u64, level: u64) {
        self.area += u128::from(self.level) * u128::from(now - self.since);
        self.since = now;
        self.level = level;
        self.most = self.most.max(level);
    }

    /// The mean level from 0 to `now`.
    pub(super) fn mean(mut self, now: u64) -> f64 {
        self.set(now, self.level);
        if now == 0 { 0.0 } else { self.area as f64 / now as f64 }
    }
}

/// A first-in first-out queue.
#[derive(Debug, Default)]
pub(super) struct Fifo {
    packets: VecDeque<Packet>,
    pub(super) gauge: Gauge,
    /// Time that packets which have left spent in it.
    pub(super) spent_ns: u128,
    /// Packets that have left.
    pub(super) left: u64,
}

impl Fifo {
    pub(super) fn new(places: u64) -> Self {
        Self { packets: VecDeque::with_capacity(places.min(4096) as usize), ..Self::default() }
    }

    #[inline]
    pub(super) fn len(&self) -> u64 {
        self.packets.len() as u64
    }

    #[inline]
    pub(super) fn push(&mut self, now: u64, packet: Packet) {
        self.packets.push_back(Packet { entered: now, ..packet });
        self.gauge.set(now, self.packets.len() as u64);
    }

    #[inline]
    pub(super) fn pop(&mut self, now: u64) -> Option<Packet> {
        let packet = self.packets.pop_front()?;
        self.gauge.set(now, self.packets.len() as u64);
        self.spent_ns += u128::from(now - packet.entered);
        self.left += 1;
        Some(packet)
    }
}
