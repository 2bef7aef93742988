//! What `make causes` makes of an answer: its grade, the intervals, the page. No root, nothing is made.

#[path = "../causes/grade.rs"]
mod grade;
#[path = "../causes/row.rs"]
mod row;
#[path = "../causes/table.rs"]
mod table;

use grade::{Answer, Grade, Said, grade as graded, of_windows};
use row::{Row, Window};

const FULL: &[Said] = &[Said("application", "waits for something else")];
const SEEN: &[Said] = &[Said("nothing", "ring of b")];

fn answer(stage: &str, confidence: &str, line: &str) -> Answer {
    let json = serde_json::json!({"result": {
        "stage": stage, "confidence": confidence, "sentence": "a sentence",
        "evidence": [{"text": line, "source": "made up"}],
        "remedies": ["less work"], "next": [],
    }});
    Answer::of(&json).unwrap()
}

#[test]
fn an_answer_is_right_with_the_stage_and_the_words_that_are_true() {
    let right = answer("application", "strong", "it waits for something else");
    assert_eq!(graded(FULL, SEEN, &right), Grade::Right);
    // The right stage with another story is wrong.
    let other = answer("application", "strong", "it is full");
    assert_eq!(graded(FULL, SEEN, &other), Grade::WrongStrong);
    assert_eq!(graded(FULL, SEEN, &answer("filter", "fair", "")), Grade::Wrong);
    assert!(Answer::of(&serde_json::json!("an error")).is_none());
}

#[test]
fn a_doubt_is_honest_where_it_names_what_is_missing() {
    let gap = "missing: what the ring of b drops";
    assert_eq!(graded(FULL, SEEN, &answer("nothing", "fair", gap)), Grade::Honest);
    assert_eq!(graded(FULL, SEEN, &answer("nothing", "fair", "another gap")), Grade::Wrong);
    // No doubt is left: what it names beside it does not help.
    assert_eq!(graded(FULL, SEEN, &answer("nothing", "strong", gap)), Grade::WrongStrong);
    assert_eq!(graded(FULL, SEEN, &answer("filter", "weak", "")), Grade::Honest);
    assert_eq!(graded(FULL, SEEN, &answer("unknown", "fair", "")), Grade::Honest);
}

#[test]
fn the_middle_window_counts_but_a_strong_error_stays() {
    use Grade::{Honest, Right, Wrong, WrongStrong};
    assert_eq!(of_windows(&[]), None);
    assert_eq!(of_windows(&[Right, Right, Wrong]), Some(Right));
    assert_eq!(of_windows(&[Wrong, Right, Honest]), Some(Honest));
    assert_eq!(of_windows(&[Right, Wrong]), Some(Wrong));
    assert_eq!(of_windows(&[Right, Right, WrongStrong]), Some(WrongStrong));
}

/// Reference values: Newcombe, Statistics in Medicine 17 (1998), table I, method 3.
#[test]
fn the_interval_is_wilsons() {
    let near = |(low, high): (f64, f64), want: (f64, f64)| {
        assert!((low - want.0).abs() < 5e-4 && (high - want.1).abs() < 5e-4, "{low} {high}");
    };
    near(table::wilson(81, 263), (0.2553, 0.3662));
    near(table::wilson(15, 148), (0.0624, 0.1605));
    near(table::wilson(0, 20), (0.0, 0.1611));
    near(table::wilson(1, 29), (0.0061, 0.1718));
    near(table::wilson(0, 0), (0.0, 1.0));
}

#[test]
fn the_page_has_a_row_for_each_cause_and_says_what_is_missing() {
    let window = |bpf, grade, stage: &str| Window {
        bpf,
        grade,
        stage: stage.into(),
        confidence: "strong".into(),
        sentence: String::new(),
        others_cpus: 0.1,
    };
    let mut asked = Row::new("slow");
    asked.truth = "it is slow".into();
    asked.remedy = "a|b".into();
    asked.windows = vec![
        window(true, Grade::Right, "application"),
        window(true, Grade::Right, "application"),
        window(true, Grade::WrongStrong, "filter"),
        window(false, Grade::Honest, "unknown"),
    ];
    let mut gone = Row::new("nat");
    gone.missing = Some("no nft".into());
    let page = table::page(&[asked.clone(), gone]);
    let said = "| slow | it is slow | 2 x application (strong), filter (strong) | wrong strong | unknown (strong) | honest | a\\|b |";
    assert!(page.contains(said), "{page}");
    assert!(page.contains("| nat |  | not available: no nft |"), "{page}");
    assert!(page.contains("| all causes, BPF | 1 | 0 (0 to 79 %) |"), "{page}");
    assert!(page.contains("| not disturbed, counters alone | 1 | 0 (0 to 79 %) |"), "{page}");
    assert_eq!(asked.without_bpf(), Some(Grade::Honest));
    // Others had the CPU in the one that was wrong, and then in all of them.
    asked.windows[2].others_cpus = 0.4;
    assert_eq!((asked.grade(), asked.is_disturbed()), (Some(Grade::Right), false));
    assert!(table::page(&[asked.clone()]).contains("| 2 x application (strong) | right |"));
    asked.windows.iter_mut().for_each(|window| window.others_cpus = 0.4);
    let page = table::page(&[asked]);
    assert!(page.contains("| wrong strong, disturbed |"), "{page}");
    assert!(page.contains("| not disturbed, BPF | 0 |"), "{page}");
}
