//! When a loss gets a deep look, and for how long its verdict stands: a state machine without a clock.
//!
//! A deep look is the diagnosis of three seconds with more evidence than a window has. It costs what some windows cost, so it comes
//! at most once in five minutes, and only when the budget of these five minutes has room for it.

use rxpath_record::verdict::{DiagnosisVerdict, EvidenceLine, Stage};
use rxpath_record::watch::WatchFrame;

use crate::families::{DEEP_LOOKS, Families, SHED};
use crate::governor::Governor;

/// Length of a deep look.
pub const LENGTH_S: f64 = 3.0;
/// From one deep look to the next, and the longest time that a verdict stands.
const PAUSE_S: f64 = 300.0;
/// CPU time that a deep look takes, until one was made.
const FIRST_CPU_S: f64 = 0.1;
/// The gap of a frame whose loss waits, and what the budget costs then.
const DEEP_LOOK: &str = "deep look";
/// What became of deep looks.
const MADE: usize = 0;
const BUDGET: usize = 1;
const FAILED: usize = 2;
const RESULTS: [&str; 3] = ["made", "budget", "failed"];

/// Why a loss waits for its deep look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The budget of the last five minutes has no room for it.
    Budget,
    /// A list of sockets costs so much that it is read once in five minutes.
    Sockets,
}

impl Obstacle {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Budget => "the budget of the last five minutes has no room for it",
            Self::Sockets => {
                "a list of sockets takes more than 20 ms of CPU time, and is read once in five minutes"
            }
        }
    }
}

/// What to do after a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeepLookAction {
    /// Nothing.
    Rest,
    /// Begin a deep look.
    Begin,
    /// Say that a loss waits for it. At most once in five minutes.
    Say(Obstacle),
}

/// The verdict of a deep look.
#[derive(Debug)]
struct Kept {
    verdict: DiagnosisVerdict,
    /// The verdict of the window that asked for it.
    of: Stage,
    age_s: f64,
}

/// The deep looks of an exporter.
#[derive(Debug)]
pub struct DeepLooks {
    /// Since the last one began.
    since_s: f64,
    /// Since it was last said that a loss waits.
    quiet_s: f64,
    /// CPU time that the next one needs: that of the last one, less with each time that it is said again that a loss waits.
    cpu_s: f64,
    /// Since the last one began it was said that a loss waits for the budget.
    was_said: bool,
    /// What the loss of the last window waits for.
    waits: Option<Obstacle>,
    /// The verdict of the window for which one is made.
    of: Stage,
    kept: Option<Kept>,
    /// By result, not exported yet.
    counts: [u64; RESULTS.len()],
}

impl Default for DeepLooks {
    fn default() -> Self {
        Self {
            since_s: f64::INFINITY,
            quiet_s: f64::INFINITY,
            cpu_s: FIRST_CPU_S,
            was_said: false,
            waits: None,
            of: Stage::Unknown,
            kept: None,
            counts: [0; RESULTS.len()],
        }
    }
}

impl DeepLooks {
    /// A window is over; `loses` says whether it lost packets above the thresholds of the rules. A loss that waits leaves a gap in
    /// the frame.
    pub fn window(
        &mut self,
        frame: &mut WatchFrame,
        loses: bool,
        governor: &Governor,
    ) -> DeepLookAction {
        self.since_s += frame.window_s;
        self.quiet_s += frame.window_s;
        if !loses {
            self.give_up();
            return DeepLookAction::Rest;
        }
        // In the first window nobody knows what the budget has room for.
        if self.since_s < PAUSE_S || !governor.knows_cost() {
            return DeepLookAction::Rest;
        }
        let Some(obstacle) = self.obstacle(frame, governor) else {
            (self.since_s, self.waits, self.was_said) = (0.0, None, false);
            self.of = frame.verdict.as_ref().map_or(Stage::Unknown, |verdict| verdict.stage);
            return DeepLookAction::Begin;
        };
        self.waits = Some(obstacle);
        frame.gaps.insert(DEEP_LOOK.to_owned(), obstacle.words().to_owned());
        if self.quiet_s < PAUSE_S {
            return DeepLookAction::Rest;
        }
        self.quiet_s = 0.0;
        if obstacle == Obstacle::Budget {
            self.age();
        }
        DeepLookAction::Say(obstacle)
    }

    /// From the second time on that it is said, the next one is expected to need half as much: what a dear one took would be known
    /// for ever, because only another one can correct it.
    fn age(&mut self) {
        if std::mem::replace(&mut self.was_said, true) {
            self.cpu_s = self.cpu_s.min((self.cpu_s / 2.0).max(FIRST_CPU_S));
        }
    }

    fn obstacle(&self, frame: &WatchFrame, governor: &Governor) -> Option<Obstacle> {
        if frame.gaps.values().any(|why| why.starts_with(WatchFrame::READ_SELDOM)) {
            return Some(Obstacle::Sockets);
        }
        (!governor.has_room(self.cpu_s)).then_some(Obstacle::Budget)
    }

    /// The loss was over before its deep look could be made.
    fn give_up(&mut self) {
        match self.waits.take() {
            None => {}
            Some(Obstacle::Budget) => self.counts[BUDGET] += 1,
            Some(Obstacle::Sockets) => self.counts[FAILED] += 1,
        }
    }

    /// One ended with this verdict, and took so much CPU time.
    pub fn made(&mut self, verdict: DiagnosisVerdict, cpu_s: f64) {
        self.counts[MADE] += 1;
        self.cpu_s = cpu_s;
        let decides = !matches!(verdict.stage, Stage::Nothing | Stage::Unknown);
        self.kept = decides.then(|| Kept { verdict, of: self.of, age_s: 0.0 });
    }

    /// One could not be made.
    pub fn failed(&mut self) {
        self.counts[FAILED] += 1;
    }

    /// Puts the verdict of the last deep look in place of that of this window, as long as the same loss lasts: the window says
    /// the same stage as the one that asked for it, or the stage that was found. A verdict that is surer than it stays.
    pub fn judge(&mut self, frame: &mut WatchFrame, loses: bool) {
        let Some(kept) = &mut self.kept else { return };
        kept.age_s += frame.window_s;
        if kept.age_s > PAUSE_S {
            self.kept = None;
            return;
        }
        let Some(counted) = frame.verdict.as_ref().filter(|_| loses) else { return };
        let is_same = [kept.of, kept.verdict.stage].contains(&counted.stage);
        if !is_same || counted.confidence > kept.verdict.confidence {
            return;
        }
        let mut verdict = kept.verdict.clone();
        verdict.evidence.push(EvidenceLine {
            text: format!(
                "found by a deep look of {LENGTH_S:.0} s, within the {:.0} s before the end of this window",
                kept.age_s + LENGTH_S
            ),
            source: "rxpath export".into(),
        });
        frame.verdict = Some(verdict);
    }
}

impl Families {
    /// What became of deep looks since the last call, and whether one is left out to keep the budget.
    pub fn deep_looks(&self, looks: &mut DeepLooks) {
        for (result, count) in RESULTS.iter().zip(std::mem::take(&mut looks.counts)) {
            self.add(DEEP_LOOKS, &[result], count as f64);
        }
        let is_shed = looks.waits == Some(Obstacle::Budget);
        self.set(SHED, &[DEEP_LOOK], f64::from(u8::from(is_shed)));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rxpath_record::verdict::Confidence;

    use super::*;
    use crate::governor::WindowCost;
    use crate::tests::bounded::verdict;

    fn window(window_s: f64) -> WatchFrame {
        WatchFrame { window_s, verdict: Some(verdict(Confidence::Fair)), ..WatchFrame::default() }
    }

    fn found(stage: Stage, confidence: Confidence) -> DiagnosisVerdict {
        DiagnosisVerdict { stage, ..verdict(confidence) }
    }

    /// The budget of a hundredth of a CPU, spent by this share in the last five minutes.
    fn spent(share: f64) -> Governor {
        let mut governor = Governor::new(0.01);
        governor.window(WindowCost { window_s: 300.0, threads_s: 3.0 * share, programs_s: 0.0 });
        governor
    }

    /// A value of the page.
    fn value(families: &Families, series: &str) -> Option<u64> {
        let text = families.text().unwrap();
        text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
    }

    /// Deep looks by result.
    fn counted(families: &Families) -> [u64; 3] {
        RESULTS.map(|result| {
            let series = format!("rxpath_agent_deep_looks_total{{result=\"{result}\"}}");
            value(families, &series).unwrap()
        })
    }

    #[test]
    fn a_loss_begins_one_deep_look_in_five_minutes_and_none_without_a_loss() {
        let (mut looks, governor) = (DeepLooks::default(), spent(0.5));
        let mut begun_at_s = Vec::new();
        for n in 1..=100 {
            // No loss in the first minute, and one that lasts.
            let step = looks.window(&mut window(10.0), n > 6, &governor);
            match step {
                DeepLookAction::Begin => begun_at_s.push(10 * n),
                other => assert_eq!(other, DeepLookAction::Rest, "{n}"),
            }
        }
        assert_eq!(begun_at_s, [70, 370, 670, 970]);
    }

    #[test]
    fn a_deep_look_waits_while_the_budget_is_spent_and_says_so_once_in_five_minutes() {
        let (mut looks, families) = (DeepLooks::default(), Families::new("1", 1).unwrap());
        let mut said = 0;
        for n in 0..40 {
            let mut frame = window(10.0);
            match looks.window(&mut frame, true, &spent(1.0)) {
                DeepLookAction::Say(obstacle) => {
                    assert_eq!(obstacle, Obstacle::Budget);
                    said += 1;
                }
                other => assert_eq!(other, DeepLookAction::Rest, "{n}"),
            }
            assert_eq!(frame.gaps[DEEP_LOOK], Obstacle::Budget.words());
        }
        assert_eq!(said, 2);
        families.deep_looks(&mut looks);
        let shed = "rxpath_agent_shed{what=\"deep look\"}";
        assert_eq!((value(&families, shed), counted(&families)), (Some(1), [0; 3]));
        let mut frame = window(10.0);
        assert_eq!(
            looks.window(&mut frame, true, &spent(0.5)),
            DeepLookAction::Begin,
            "there is room now"
        );
        assert!(!frame.gaps.contains_key(DEEP_LOOK));
        looks.made(verdict(Confidence::Strong), 0.2);
        families.deep_looks(&mut looks);
        assert_eq!((value(&families, shed), counted(&families)), (Some(0), [1, 0, 0]));
    }

    #[test]
    fn a_loss_in_the_first_window_gets_its_deep_look_after_the_second() {
        let (mut looks, mut governor) = (DeepLooks::default(), Governor::new(0.01));
        let mut frame = window(10.0);
        assert_eq!(looks.window(&mut frame, true, &governor), DeepLookAction::Rest);
        assert!(!frame.gaps.contains_key(DEEP_LOOK), "{:?}", frame.gaps);
        governor.window(WindowCost { window_s: 10.0, threads_s: 0.01, programs_s: 0.0 });
        assert_eq!(looks.window(&mut frame, true, &governor), DeepLookAction::Begin);
    }

    #[test]
    fn a_loss_that_ends_while_it_waits_counts_as_given_up_by_its_obstacle() {
        let (mut looks, families) = (DeepLooks::default(), Families::new("1", 1).unwrap());
        looks.window(&mut window(10.0), true, &spent(1.0));
        looks.window(&mut window(10.0), false, &spent(1.0));
        families.deep_looks(&mut looks);
        assert_eq!(counted(&families), [0, 1, 0]);
        let mut dear = window(10.0);
        let why = format!("{}5 minutes: it took 31 ms", WatchFrame::READ_SELDOM);
        dear.gaps.insert("UDP sockets".into(), why);
        // It waits for the budget no more, and was said to wait less than five minutes ago.
        assert_eq!(looks.window(&mut dear, true, &spent(0.0)), DeepLookAction::Rest);
        assert_eq!(dear.gaps[DEEP_LOOK], Obstacle::Sockets.words());
        families.deep_looks(&mut looks);
        assert_eq!(value(&families, "rxpath_agent_shed{what=\"deep look\"}"), Some(0));
        looks.window(&mut window(10.0), false, &spent(0.0));
        families.deep_looks(&mut looks);
        assert_eq!(counted(&families), [0, 1, 1]);
    }

    #[test]
    fn the_next_one_needs_room_for_what_the_last_one_took() {
        let mut looks = DeepLooks::default();
        // Room for 0.3 s.
        assert_eq!(looks.window(&mut window(10.0), true, &spent(0.9)), DeepLookAction::Begin);
        looks.made(verdict(Confidence::Strong), 0.31);
        let step = looks.window(&mut window(300.0), true, &spent(0.9));
        assert_eq!(step, DeepLookAction::Say(Obstacle::Budget));
        assert_eq!(looks.window(&mut window(10.0), true, &spent(0.89)), DeepLookAction::Begin);
    }

    #[test]
    fn one_that_was_dear_is_forgotten_while_a_loss_waits() {
        let mut looks = DeepLooks::default();
        assert_eq!(looks.window(&mut window(10.0), true, &spent(0.0)), DeepLookAction::Begin);
        // Five minutes have 3 s.
        looks.made(verdict(Confidence::Strong), 10.0);
        let steps = [(); 4].map(|()| looks.window(&mut window(PAUSE_S), true, &spent(0.0)));
        // 10 s are needed, still 10 s, 5 s, and 2.5 s.
        let say = DeepLookAction::Say(Obstacle::Budget);
        assert_eq!(steps, [say, say, say, DeepLookAction::Begin]);
    }

    /// The stage and the confidence that a window shows that had this verdict.
    fn shown(looks: &mut DeepLooks, counted: DiagnosisVerdict, loses: bool) -> (Stage, Confidence) {
        let mut frame = WatchFrame { verdict: Some(counted), ..window(10.0) };
        looks.judge(&mut frame, loses);
        let verdict = frame.verdict.unwrap();
        (verdict.stage, verdict.confidence)
    }

    #[test]
    fn its_verdict_stands_as_long_as_the_same_loss_lasts_and_no_longer_than_five_minutes() {
        use Confidence::{Fair, Strong, Weak};
        let mut looks = DeepLooks::default();
        looks.window(&mut window(10.0), true, &spent(0.0));
        let deep = (Stage::ApplicationDescheduled, Strong);
        looks.made(found(deep.0, deep.1), 0.1);
        for (stage, confidence, loses, right) in [
            (Stage::SocketQueue, Fair, true, deep),
            (Stage::ApplicationDescheduled, Weak, true, deep),
            // Another loss, and none.
            (Stage::Ring, Fair, true, (Stage::Ring, Fair)),
            (Stage::SocketQueue, Weak, false, (Stage::SocketQueue, Weak)),
        ] {
            assert_eq!(shown(&mut looks, found(stage, confidence), loses), right, "{stage:?}");
        }
        for _ in 4..30 {
            assert_eq!(shown(&mut looks, found(Stage::SocketQueue, Fair), true), deep);
        }
        let last = shown(&mut looks, found(Stage::SocketQueue, Fair), true);
        assert_eq!(last, (Stage::SocketQueue, Fair), "five minutes are over");
    }

    #[test]
    fn a_window_that_is_surer_keeps_its_verdict_and_so_does_one_of_which_nothing_was_found() {
        use Confidence::{Fair, Strong, Weak};
        let sure = (Stage::SocketQueue, Strong);
        for (stage, confidence) in [
            (Stage::ApplicationDescheduled, Fair),
            (Stage::Nothing, Strong),
            (Stage::Unknown, Strong),
        ] {
            let mut looks = DeepLooks::default();
            looks.window(&mut window(10.0), true, &spent(0.0));
            looks.made(found(stage, confidence), 0.1);
            assert_eq!(shown(&mut looks, found(sure.0, sure.1), true), sure, "{stage:?}");
        }
        let mut looks = DeepLooks::default();
        looks.window(&mut window(10.0), true, &spent(0.0));
        looks.made(found(Stage::Application, Fair), 0.1);
        let mut frame = WatchFrame { verdict: Some(verdict(Weak)), ..window(10.0) };
        looks.judge(&mut frame, true);
        let verdict = frame.verdict.unwrap();
        let last = verdict.evidence.last().unwrap();
        assert!(last.text.contains("deep look of 3 s, within the 13 s"), "{}", last.text);
    }

    proptest! {
        #[test]
        fn whatever_happens_deep_looks_are_five_minutes_apart_and_only_of_losses_with_room(
            windows in proptest::collection::vec((0.1f64..60.0, any::<bool>(), 0.0f64..1.2), 1..300),
        ) {
            let (mut looks, mut since_s) = (DeepLooks::default(), f64::INFINITY);
            for (window_s, loses, share) in windows {
                since_s += window_s;
                let action = looks.window(&mut window(window_s), loses, &spent(share));
                if action == DeepLookAction::Begin {
                    prop_assert!(loses && share <= 1.0 && since_s >= PAUSE_S, "{share} {since_s}");
                    since_s = 0.0;
                }
            }
        }
    }
}
