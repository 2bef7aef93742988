//! What this host's traffic does in a glance: a short window of the live view.

use std::time::{Duration, Instant};

use rxpath_host::netlink::{Link, Netlink};
use rxpath_lab::watch::{Options, ProbeLimit, Watcher};
use rxpath_record::verdict::Verdict;
use rxpath_record::watch::Slice;

use super::stop::Stop;
use crate::cmd::values::Wait;
use crate::interrupt::Interrupt;

/// What the probes may take of one CPU: enough for samples in each glance, where the live view has some in a minute.
const PROBES: ProbeLimit = ProbeLimit { cpu_ratio: 0.05, with_latency: true, with_any: true };

/// Watches one device's traffic.
pub struct Meter<'a> {
    watcher: Watcher,
    device: String,
    route: Netlink,
    packets: u64,
    interrupt: &'a Interrupt,
}

/// A short window.
#[derive(Debug)]
pub struct Glance {
    /// What passed, was lost and cost CPU time.
    pub slice: Slice,
    /// Packets per second that the device took.
    pub device_pps: f64,
    /// Whether its link is there.
    pub has_carrier: bool,
    /// What limits.
    pub verdict: Option<Verdict>,
}

impl<'a> Meter<'a> {
    /// Takes the first readings.
    ///
    /// # Errors
    /// If counters can't be read, or there is no such device.
    pub fn start(device: &str, interrupt: &'a Interrupt) -> Result<Self, Stop> {
        let route = Netlink::route()?;
        let mut watcher = Watcher::start(Options::default())?;
        watcher.limit(PROBES);
        let mut meter = Self { watcher, device: device.into(), route, packets: 0, interrupt };
        meter.packets = packets(&meter.link()?);
        Ok(meter)
    }

    /// Why CPU time and latencies are not measured exactly, if they are not.
    pub fn without_probes(&self) -> Option<&str> {
        self.watcher.without_probes()
    }

    /// What happened until now counts in no glance.
    pub fn begin(&mut self) -> Result<(), Stop> {
        self.watcher.frame()?;
        self.packets = packets(&self.link()?);
        Ok(())
    }

    /// The next window.
    pub fn glance(&mut self, length: Duration) -> Result<Glance, Stop> {
        let end = Instant::now() + length;
        let mut wait = Wait::new(self.interrupt);
        while Instant::now() < end {
            let due = self.watcher.due().map_or(end, |due| due.min(end));
            wait.until_time(due)?;
            if let Some(signal) = wait.signal() {
                return Err(Stop::Signal(signal));
            }
            self.watcher.note();
        }
        let frame = self.watcher.frame()?;
        let totals = self.watcher.totals(&frame);
        let link = self.link()?;
        let before = std::mem::replace(&mut self.packets, packets(&link));
        let mut slice = Slice::default();
        slice.add(&frame, totals.as_ref());
        Ok(Glance {
            slice,
            device_pps: self.packets.saturating_sub(before) as f64 / frame.window_s.max(1e-3),
            has_carrier: link.carrier != Some(false),
            verdict: frame.verdict,
        })
    }

    fn link(&mut self) -> Result<Link, Stop> {
        let links = self.route.links()?;
        let found = links.into_iter().find(|link| link.name == self.device);
        found.ok_or_else(|| Stop::Gone(self.device.clone()))
    }
}

fn packets(link: &Link) -> u64 {
    link.stat("rx.packets").unwrap_or(0)
}
