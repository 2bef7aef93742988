//! What this host's traffic does in a glance: a short window of the live view.

use std::io;
use std::time::{Duration, Instant};

use rxpath_host::Root;
use rxpath_host::netlink::Netlink;
use rxpath_host::read::netlink::NetworkLink;
use rxpath_host::read::session::{self, Session};
use rxpath_live::watch::{LiveWatcher, ProbeLimit, WatcherOptions};
use rxpath_record::verdict::DiagnosisVerdict;
use rxpath_record::watch::TrafficSlice;

use super::stop::Stop;

/// What the probes may take of one CPU: enough for samples in each glance, where the live view has some in a minute.
const PROBES: ProbeLimit = ProbeLimit { cpu_ratio: 0.05, with_latency: true, with_any: true };

/// Waits until then, or until a signal arrives: which.
pub type WaitUntil<'a> = dyn Fn(Instant) -> io::Result<Option<i32>> + 'a;

/// Watches one device's traffic.
pub struct Meter<'a> {
    watcher: LiveWatcher,
    device: String,
    route: Netlink,
    /// The ssh session of the user, if it can be cut.
    session: Option<Session>,
    packets: u64,
    wait: &'a WaitUntil<'a>,
}

/// A short window.
#[derive(Debug)]
pub struct Glance {
    /// What passed, was lost and cost CPU time.
    pub slice: TrafficSlice,
    /// Packets per second that the device took.
    pub device_pps: f64,
    /// Whether its link is there.
    pub has_carrier: bool,
    /// Why the user's ssh session is cut off, if it is.
    pub session_cut: Option<String>,
    /// What limits.
    pub verdict: Option<DiagnosisVerdict>,
}

impl<'a> Meter<'a> {
    /// Takes the first readings.
    ///
    /// # Errors
    /// If counters can't be read, or there is no such device.
    pub fn start(device: &str, wait: &'a WaitUntil<'a>) -> Result<Self, Stop> {
        let mut route = Netlink::route()?;
        let links = route.links()?;
        // A session that can't be reached at the start says nothing of the settings.
        let session = match session::current(&Root::host())? {
            Some(session) if session.cut(&mut route, &links)?.is_none() => Some(session),
            _ => None,
        };
        let mut watcher = LiveWatcher::start(WatcherOptions::default())?;
        watcher.limit(PROBES);
        let mut meter = Self { watcher, device: device.into(), route, session, packets: 0, wait };
        meter.packets = packets(meter.own(&links)?);
        Ok(meter)
    }

    /// Why CPU time and latencies are not measured exactly, if they are not.
    pub fn without_probes(&self) -> Option<&str> {
        self.watcher.without_probes()
    }

    /// What happened until now counts in no glance.
    ///
    /// # Errors
    /// If counters can't be read, or the device is gone.
    pub fn begin(&mut self) -> Result<(), Stop> {
        self.watcher.frame();
        let links = self.route.links()?;
        self.packets = packets(self.own(&links)?);
        Ok(())
    }

    /// The next window.
    ///
    /// # Errors
    /// As [`Meter::begin`], and [`Stop::Signal`].
    pub fn glance(&mut self, length: Duration) -> Result<Glance, Stop> {
        let end = Instant::now() + length;
        while Instant::now() < end {
            let due = self.watcher.due().map_or(end, |due| due.min(end));
            if let Some(signal) = (self.wait)(due)? {
                return Err(Stop::Signal(signal));
            }
            self.watcher.note();
        }
        let frame = self.watcher.frame();
        let totals = self.watcher.totals(&frame);
        let links = self.route.links()?;
        let link = self.own(&links)?;
        let has_carrier = link.carrier != Some(false);
        // A link that is away for a moment has a limit of its own.
        let session_cut = match &self.session {
            Some(session) if has_carrier => session.cut(&mut self.route, &links)?,
            _ => None,
        };
        let before = std::mem::replace(&mut self.packets, packets(link));
        let mut slice = TrafficSlice::default();
        slice.add(&frame, totals.as_ref());
        Ok(Glance {
            slice,
            device_pps: self.packets.saturating_sub(before) as f64 / frame.window_s.max(1e-3),
            has_carrier,
            session_cut,
            verdict: frame.verdict,
        })
    }

    fn own<'b>(&self, links: &'b [NetworkLink]) -> Result<&'b NetworkLink, Stop> {
        let found = links.iter().find(|link| link.name == self.device);
        found.ok_or_else(|| Stop::Gone(self.device.clone()))
    }
}

fn packets(link: &NetworkLink) -> u64 {
    link.stat("rx.packets").unwrap_or(0)
}
