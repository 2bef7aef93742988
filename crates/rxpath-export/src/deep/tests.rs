//! Which losses get a deep look, and how long its verdict stands.

use proptest::prelude::*;
use rxpath_record::verdict::Confidence;

use super::*;
use crate::governor::WindowCost;
use crate::tests::bounded::verdict;

const LOST: WindowLoss = WindowLoss { loses: Some(true), has_dear_list: false };
const NONE_LOST: WindowLoss = WindowLoss { loses: Some(false), ..LOST };
const LATE: WindowLoss = WindowLoss { loses: None, ..LOST };

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
        let step = looks.window(&mut window(10.0), if n > 6 { LOST } else { NONE_LOST }, &governor);
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
        match looks.window(&mut frame, LOST, &spent(1.0)) {
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
        looks.window(&mut frame, LOST, &spent(0.5)),
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
    assert_eq!(looks.window(&mut frame, LOST, &governor), DeepLookAction::Rest);
    assert!(!frame.gaps.contains_key(DEEP_LOOK), "{:?}", frame.gaps);
    governor.window(WindowCost { window_s: 10.0, threads_s: 0.01, programs_s: 0.0 });
    assert_eq!(looks.window(&mut frame, LOST, &governor), DeepLookAction::Begin);
}

#[test]
fn a_loss_that_ends_while_it_waits_counts_as_given_up_by_its_obstacle() {
    let (mut looks, families) = (DeepLooks::default(), Families::new("1", 1).unwrap());
    looks.window(&mut window(10.0), LOST, &spent(1.0));
    looks.window(&mut window(10.0), NONE_LOST, &spent(1.0));
    families.deep_looks(&mut looks);
    assert_eq!(counted(&families), [0, 1, 0]);
    let (mut frame, dear) = (window(10.0), WindowLoss { has_dear_list: true, ..LOST });
    // It waits for the budget no more, and was said to wait less than five minutes ago.
    assert_eq!(looks.window(&mut frame, dear, &spent(0.0)), DeepLookAction::Rest);
    assert_eq!(frame.gaps[DEEP_LOOK], Obstacle::Sockets.words());
    families.deep_looks(&mut looks);
    assert_eq!(value(&families, "rxpath_agent_shed{what=\"deep look\"}"), Some(0));
    looks.window(&mut window(10.0), NONE_LOST, &spent(0.0));
    families.deep_looks(&mut looks);
    assert_eq!(counted(&families), [0, 1, 1]);
}

#[test]
fn a_late_window_ends_no_loss_that_waits() {
    let (mut looks, families) = (DeepLooks::default(), Families::new("1", 1).unwrap());
    looks.window(&mut window(10.0), LOST, &spent(1.0));
    assert_eq!(looks.window(&mut window(40.0), LATE, &spent(0.0)), DeepLookAction::Rest);
    families.deep_looks(&mut looks);
    let shed = value(&families, "rxpath_agent_shed{what=\"deep look\"}");
    assert_eq!((shed, counted(&families)), (Some(1), [0; 3]));
    // Its time counts.
    assert_eq!(looks.window(&mut window(10.0), LOST, &spent(0.0)), DeepLookAction::Begin);
    looks.window(&mut window(290.0), LATE, &spent(0.0));
    assert_eq!(looks.window(&mut window(10.0), LOST, &spent(0.0)), DeepLookAction::Begin);
}

#[test]
fn a_list_that_is_not_due_keeps_no_loss_waiting() {
    let mut frame = window(0.2);
    let why = format!("{}1.9s: the last list is of 1s ago", WatchFrame::READ_SELDOM);
    frame.gaps.insert("UDP sockets".into(), why);
    let step = DeepLooks::default().window(&mut frame, LOST, &spent(0.0));
    assert_eq!(step, DeepLookAction::Begin);
}

#[test]
fn the_next_one_needs_room_for_what_the_last_one_took() {
    let mut looks = DeepLooks::default();
    // Room for 0.3 s.
    assert_eq!(looks.window(&mut window(10.0), LOST, &spent(0.9)), DeepLookAction::Begin);
    looks.made(verdict(Confidence::Strong), 0.31);
    let step = looks.window(&mut window(300.0), LOST, &spent(0.9));
    assert_eq!(step, DeepLookAction::Say(Obstacle::Budget));
    assert_eq!(looks.window(&mut window(10.0), LOST, &spent(0.89)), DeepLookAction::Begin);
}

#[test]
fn one_that_was_dear_is_forgotten_while_a_loss_waits() {
    let mut looks = DeepLooks::default();
    assert_eq!(looks.window(&mut window(10.0), LOST, &spent(0.0)), DeepLookAction::Begin);
    // Five minutes have 3 s.
    looks.made(verdict(Confidence::Strong), 10.0);
    let steps = [(); 4].map(|()| looks.window(&mut window(PAUSE_S), LOST, &spent(0.0)));
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
    looks.window(&mut window(10.0), LOST, &spent(0.0));
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
    for (stage, confidence) in
        [(Stage::ApplicationDescheduled, Fair), (Stage::Nothing, Strong), (Stage::Unknown, Strong)]
    {
        let mut looks = DeepLooks::default();
        looks.window(&mut window(10.0), LOST, &spent(0.0));
        looks.made(found(stage, confidence), 0.1);
        assert_eq!(shown(&mut looks, found(sure.0, sure.1), true), sure, "{stage:?}");
    }
    let mut looks = DeepLooks::default();
    looks.window(&mut window(10.0), LOST, &spent(0.0));
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
        windows in proptest::collection::vec((0.1f64..60.0, any::<Option<bool>>(), 0.0f64..1.2), 1..300),
    ) {
        let (mut looks, mut since_s) = (DeepLooks::default(), f64::INFINITY);
        for (window_s, loses, share) in windows {
            since_s += window_s;
            let action = looks.window(&mut window(window_s), WindowLoss { loses, ..LOST }, &spent(share));
            if action == DeepLookAction::Begin {
                prop_assert!(loses == Some(true) && share <= 1.0 && since_s >= PAUSE_S, "{share} {since_s}");
                since_s = 0.0;
            }
        }
    }
}
