//! The deep looks of the exporter: they run next to its windows, and scrapes get the page that is there.

use rxpath_export::Families;
use rxpath_export::deep::{DeepLookAction, DeepLooks, LENGTH_S, WindowLoss};
use rxpath_export::governor::Governor;
use rxpath_live::deep::{DeepLook, DeepSeen, Programs, ProgramsCpu};
use rxpath_record::watch::WatchFrame;

use crate::cmd::prelude::*;

/// When one is due, and the one that runs.
#[derive(Debug, Default)]
pub(super) struct Deeper {
    looks: DeepLooks,
    running: Option<DeepLook>,
    /// For the next one.
    programs: Option<Programs>,
    /// Kernel memory of their maps between two deep looks.
    map_bytes: u64,
    /// CPU time of one that has ended, not charged yet.
    uncharged: Duration,
    /// CPU time of its BPF programs, not charged yet.
    programs_cpu: ProgramsCpu,
}

impl Deeper {
    /// With these programs, which were loaded before the privileges went.
    pub(super) fn new(programs: Programs) -> Self {
        Self { map_bytes: programs.map_bytes(), programs: Some(programs), ..Self::default() }
    }

    /// A window is over: takes what a deep look has found, begins one if it is due, and puts its verdict into the frame.
    pub(super) fn window(
        &mut self,
        frame: &mut WatchFrame,
        loss: WindowLoss,
        governor: &Governor,
        families: &Families,
    ) {
        if let Some(look) = self.running.take_if(|look| look.is_over()) {
            self.ended(look.end());
        }
        // One that runs for more than five minutes is followed by none.
        let judged = loss.loses.filter(|_| self.running.is_none());
        match self.looks.window(frame, WindowLoss { loses: judged, ..loss }, governor) {
            DeepLookAction::Rest => {}
            DeepLookAction::Begin => self.begin(),
            DeepLookAction::Say(obstacle) => {
                let text = format!("a loss waits for its deep look: {}", obstacle.words());
                output::warning(&Warning::new("deep-look-waits", text));
            }
        }
        self.looks.judge(frame, loss.loses == Some(true));
        families.deep_looks(&mut self.looks);
    }

    fn begin(&mut self) {
        match DeepLook::begin(Duration::from_secs_f64(LENGTH_S), &mut self.programs) {
            Ok(look) => self.running = Some(look),
            Err(error) => self.failed(&error.to_string()),
        }
    }

    fn ended(&mut self, seen: DeepSeen) {
        self.uncharged += seen.uncharged;
        self.programs_cpu.runs += seen.programs_cpu.runs;
        self.programs_cpu.entries += seen.programs_cpu.entries;
        self.map_bytes = seen.programs.map_bytes();
        self.programs = Some(seen.programs);
        match seen.verdict {
            Ok(verdict) => {
                crate::note!("rxpath: deep look at a loss: {}", verdict.sentence);
                self.looks.made(verdict, seen.cpu.as_secs_f64());
            }
            Err(why) => self.failed(&why),
        }
    }

    fn failed(&mut self, why: &str) {
        self.looks.failed();
        let text = format!("no deep look at a loss: {why}");
        output::warning(&Warning::new("deep-look-failed", text));
    }

    /// CPU time that deep looks took since the last call: of their threads, and of their BPF programs.
    pub(super) fn charge(&mut self) -> (Duration, ProgramsCpu) {
        let running = self.running.as_mut().map_or(Duration::ZERO, DeepLook::charge);
        let threads = std::mem::take(&mut self.uncharged) + running;
        (threads, std::mem::take(&mut self.programs_cpu))
    }

    /// Kernel memory of the maps of their programs, without what one that runs has counted.
    pub(super) fn map_bytes(&self) -> u64 {
        self.map_bytes
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use rxpath_export::governor::WindowCost;

    use super::*;

    #[test]
    fn a_deep_look_runs_next_to_windows_and_is_charged_to_them() {
        let families = Families::new("1", 1).unwrap();
        let (mut deeper, mut governor) = (Deeper::default(), Governor::new(1.0));
        let (mut windows, deadline) = (0, Instant::now() + Duration::from_secs(60));
        let series = "rxpath_agent_deep_looks_total{result=\"made\"} 1";
        loop {
            let mut frame = WatchFrame { window_s: 0.05, ..WatchFrame::default() };
            let loss = WindowLoss { loses: Some(true), has_dear_list: false };
            deeper.window(&mut frame, loss, &governor, &families);
            let (threads, programs) = deeper.charge();
            governor.looked((threads + programs.whole()).as_secs_f64());
            governor.window(WindowCost { window_s: 0.05, ..WindowCost::default() });
            windows += 1;
            if families.text().unwrap().lines().any(|line| line == series) {
                break;
            }
            assert!(Instant::now() < deadline, "{deeper:?}");
            // why: the pace of the windows; the deadline above ends it.
            std::thread::sleep(Duration::from_millis(50));
        }
        assert!(windows > 2, "it stood in the way of {windows} windows");
        assert!(governor.cost() > 0.0, "{governor:?}");
    }
}
