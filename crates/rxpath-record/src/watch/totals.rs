//! What a window adds to totals, of all tasks together: the rows of a frame are the largest ones only.

use std::collections::BTreeMap;

use rxpath_core::Log2;

/// CPU time in seconds of a window, by who took it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TakenTime {
    /// Hard interrupts, between their tracepoints.
    pub hardirq_s: f64,
    /// Estimated: their entry and exit, outside all tracepoints.
    pub irq_entry_s: f64,
    /// Network softirqs.
    pub network_s: f64,
    /// Other softirqs.
    pub softirq_s: f64,
    /// The hypervisor.
    pub hypervisor_s: f64,
}

impl TakenTime {
    /// Each part with its name.
    pub fn parts(&self) -> [(&'static str, f64); 5] {
        [
            ("hardirq", self.hardirq_s),
            ("irq_entry", self.irq_entry_s),
            ("network", self.network_s),
            ("softirq", self.softirq_s),
            ("hypervisor", self.hypervisor_s),
        ]
    }

    /// So many times as much of each part.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        Self {
            hardirq_s: self.hardirq_s * factor,
            irq_entry_s: self.irq_entry_s * factor,
            network_s: self.network_s * factor,
            softirq_s: self.softirq_s * factor,
            hypervisor_s: self.hypervisor_s * factor,
        }
    }

    /// All parts together.
    pub fn sum_s(&self) -> f64 {
        self.parts().iter().map(|(_, seconds)| seconds).sum()
    }
}

impl std::ops::AddAssign for TakenTime {
    fn add_assign(&mut self, other: Self) {
        self.hardirq_s += other.hardirq_s;
        self.irq_entry_s += other.irq_entry_s;
        self.network_s += other.network_s;
        self.softirq_s += other.softirq_s;
        self.hypervisor_s += other.hypervisor_s;
    }
}

/// Who pays, by what it is: `unit`, `pod`, `container`, `user`, `group`, `kernel` or `other`; and its name.
pub type VictimName = (&'static str, String);

/// A protocol (`udp`, `tcp`, `other`) and a local port; port 0 has all that the kernel chose for connections of this host.
pub type PortName = (&'static str, u16);

/// CPU time that was taken in a window. Each kind of rows adds up to the same total.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WindowTotals {
    /// By whose it was.
    pub victims: BTreeMap<VictimName, TakenTime>,
    /// The network softirqs of all victims by the device that was polled; what was spent between polls is no device's.
    pub devices_s: BTreeMap<String, f64>,
    /// The same by protocol and local port, divided by the packets that sockets got: an estimate. What reached no socket is
    /// no port's.
    pub flows_s: BTreeMap<PortName, f64>,
    /// CPU time of network softirqs by vector, whatever it interrupted: `net_rx`, with the polls of NAPI threads, and `net_tx`.
    pub softirqs_s: BTreeMap<&'static str, f64>,
    /// CPU time of networking in threads of its own, by kind: `ksoftirqd`, `napi`.
    pub deferred_s: BTreeMap<&'static str, f64>,
    /// What the estimate of `irq_entry_s` rests on: what an interrupt was measured with (`packets`, `interrupts` that do nothing,
    /// `given`), and its entry and exit in seconds at the mean rate of this window; none without an estimate.
    pub irq_entry: Option<(&'static str, f64)>,
    /// Latencies that were measured, by stage; not scaled to the window.
    pub latencies: BTreeMap<String, StageLatency>,
    /// Polls that were counted, by device; not scaled to the window.
    pub polls: BTreeMap<String, PollSizes>,
    /// Records that found no room in the maps of each probe, since it was loaded.
    pub lost_count: BTreeMap<&'static str, u64>,
}

/// Packets of the polls of a device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PollSizes {
    /// How many polls took how many.
    pub packets_per_poll: Log2,
    /// All together.
    pub packets: u64,
}

/// Latencies of a stage.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StageLatency {
    /// How many took how long.
    pub histogram_ns: Log2,
    /// All together.
    pub sum_s: f64,
}

impl WindowTotals {
    /// What was taken from all victims.
    pub fn taken(&self) -> TakenTime {
        self.victims.values().fold(TakenTime::default(), |mut sum, time| {
            sum += *time;
            sum
        })
    }
}
