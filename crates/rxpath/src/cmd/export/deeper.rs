//! The deep looks of the exporter: they run next to its windows, and scrapes get the page that is there.

use std::collections::BTreeMap;

use rxpath_core::IntoMap;
use rxpath_export::Families;
use rxpath_export::deep::{DeepLookAction, DeepLooks, LENGTH_S, WindowLoss};
use rxpath_export::governor::Governor;
use rxpath_live::deep::{DeepLook, DeepSeen, Programs, ProgramsCpu};
use rxpath_live::watch::Unloaded;
use rxpath_record::watch::WatchFrame;

use crate::cmd::prelude::*;

/// When one is due, and the one that runs.
#[derive(Debug, Default)]
pub(super) struct Deeper {
    looks: DeepLooks,
    running: Option<DeepLook>,
    /// For the next one.
    programs: Option<Programs>,
    /// Kernel memory of their maps: at the end of the last deep look, when they are the largest.
    pub(super) map_bytes: u64,
    /// What no deep look sees, because a program did not load, with the reason.
    unloaded: BTreeMap<&'static str, String>,
    /// What the last one did not see, because a program was refused its place.
    refused: BTreeMap<&'static str, String>,
    /// CPU time of one that has ended, not charged yet.
    uncharged: Duration,
    /// CPU time of its BPF programs, not charged yet.
    programs_cpu: ProgramsCpu,
}

impl Deeper {
    /// With these programs, which were loaded before the privileges went, and without those that did not load.
    pub(super) fn new(programs: Programs, unloaded: &[Unloaded]) -> Self {
        Self {
            map_bytes: programs.map_bytes(),
            programs: Some(programs),
            unloaded: unloaded.iter().map(|one| (one.what, one.why.clone())).into_map(),
            ..Self::default()
        }
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
        let unseen = self.unloaded.iter().chain(&self.refused);
        frame.gaps.extend(unseen.map(|(what, why)| ((*what).to_owned(), why.clone())));
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
        self.map_bytes = seen.map_bytes;
        self.programs = Some(seen.programs);
        refusals(&self.refused, &seen.refused).iter().for_each(output::warning);
        self.refused = seen.refused;
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
}

/// For the log: what a deep look did not see and the one before it did, or was the first to try.
fn refusals(
    before: &BTreeMap<&'static str, String>,
    now: &BTreeMap<&'static str, String>,
) -> Vec<Warning> {
    let new = now.iter().filter(|(what, _)| !before.contains_key(*what));
    let warning = |(what, why): (&&str, &String)| {
        Warning::new("deep-look-incomplete", format!("{what} not measured: {why}"))
            .cure("the next deep look tries again")
    };
    new.map(warning).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use rxpath_export::governor::WindowCost;

    use super::*;

    #[test]
    fn what_deep_looks_do_not_see_is_a_gap_of_each_window() {
        let families = Families::new("1", 1).unwrap();
        let unloaded = Unloaded { what: "waits", why: "no BTF".into(), needs: Unloaded::KERNEL };
        let mut deeper = Deeper::new(Programs::none("not in this test"), &[unloaded]);
        deeper.refused = [("readers", "no descriptor".to_owned())].into();
        let mut frame = WatchFrame::default();
        deeper.window(&mut frame, WindowLoss::default(), &Governor::new(1.0), &families);
        assert_eq!(frame.gaps["waits"], "no BTF");
        assert_eq!(frame.gaps["readers"], "no descriptor");
    }

    #[test]
    fn a_program_that_is_refused_its_place_again_and_again_is_said_once() {
        let refused = |whats: &[&'static str]| -> BTreeMap<&'static str, String> {
            whats.iter().map(|what| (*what, "no descriptor".to_owned())).into_map()
        };
        let said = |before: &[&'static str], now: &[&'static str]| -> Vec<String> {
            refusals(&refused(before), &refused(now)).iter().map(Warning::to_string).collect()
        };
        let first = said(&[], &["readers", "waits"]);
        assert_eq!(first.len(), 2, "{first:?}");
        assert!(first[0].starts_with("readers not measured: no descriptor"), "{first:?}");
        assert_eq!(said(&["readers", "waits"], &["readers"]), Vec::<String>::new());
        assert_eq!(said(&[], &["readers"]).len(), 1, "it worked in between");
    }

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
