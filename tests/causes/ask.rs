//! Makes a cause, asks `rxpath diagnose` about it, and tries the remedy.

use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::cause::{Cause, Made};
use crate::grade::{Answer, grade};
use crate::host::Host;
use crate::others::Moment;
use crate::row::{Row, Window};
use crate::state;

/// Windows with BPF; one more looks without it.
const WINDOWS: usize = 3;

/// Windows that others disturbed are taken again, so often.
const AGAIN: usize = 3;

/// A remedy has to take away at least half of what was lost.
const FALLS: f64 = 0.5;

pub fn about(cause: &Cause) -> Row {
    eprintln!("causes: {}", cause.name);
    let mut row = Row::new(cause.name);
    match Host::new().and_then(|mut host| {
        let made = (cause.make)(&mut host)?;
        Ok((host, made))
    }) {
        Err(why) => row.missing = Some(why),
        Ok((mut host, made)) => {
            std::thread::sleep(Duration::from_millis(700));
            windows(cause, &made, true, WINDOWS, &mut row);
            windows(cause, &made, false, 1, &mut row);
            row.remedy = remedy(&mut host, made);
        }
    }
    for window in &row.windows {
        let (bpf, grade) = (if window.bpf { "bpf" } else { "counters" }, window.grade.word());
        let beside = if window.is_disturbed() { ", disturbed" } else { "" };
        eprintln!(
            "  {bpf}{beside}: {grade}: {} ({}): {}",
            window.stage, window.confidence, window.sentence
        );
    }
    match &row.missing {
        Some(why) => eprintln!("  not available: {why}"),
        None => eprintln!("  remedy: {}", row.remedy),
    }
    row
}

/// Takes windows until there are so many that nobody disturbed.
fn windows(cause: &Cause, made: &Made, bpf: bool, wanted: usize, row: &mut Row) {
    for _ in 0..wanted + AGAIN {
        let one = window(cause, made, bpf, row.windows.len());
        row.windows.push(one);
        let counted = row.counted(bpf);
        if counted.len() >= wanted && !counted[0].is_disturbed() {
            return;
        }
    }
}

fn window(cause: &Cause, made: &Made, bpf: bool, number: usize) -> Window {
    let begun = Moment::now();
    let json = diagnose(made, bpf);
    let others_cpus = begun.others_since();
    state::keep_answer(cause.name, number, &json);
    let answer = Answer::of(&json).unwrap_or_else(|| Answer {
        stage: "unknown".into(),
        confidence: "none".into(),
        sentence: json.to_string().chars().take(200).collect(),
        more: String::new(),
        remedies: String::new(),
    });
    Window {
        bpf,
        grade: grade(cause.right, cause.honest, &answer),
        stage: answer.stage,
        confidence: answer.confidence,
        sentence: answer.sentence,
        others_cpus,
    }
}

fn diagnose(made: &Made, bpf: bool) -> Value {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", made.watched, env!("CARGO_BIN_EXE_rxpath")]);
    command.args(["diagnose", "--json", "-d", "2s"]).args(&made.words);
    if !bpf {
        command.arg("--no-bpf");
    }
    let output = command.stderr(Stdio::piped()).output().expect("ip of iproute2");
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| String::from_utf8_lossy(&output.stderr).into_owned().into())
}

/// What it did: the loss before and after, by the counts of the suite.
fn remedy(host: &mut Host, made: Made) -> String {
    let (words, apply) = match made.remedy {
        Ok(both) => both,
        Err(why) => return format!("not tried: {why}"),
    };
    let measure = made.measure.unwrap_or_else(|| Box::new(Host::lost));
    let before = measure(host);
    if let Err(why) = apply(host) {
        return format!("{words}: not possible: {why}");
    }
    // What waited in queues goes first.
    std::thread::sleep(Duration::from_millis(700));
    let after = measure(host);
    let verdict = if after <= before * FALLS { "helps" } else { "DOES NOT HELP" };
    format!("{words}: {verdict} ({} before, {} after)", amount(before), amount(after))
}

/// Shares in percent, anything else as it is.
fn amount(value: f64) -> String {
    if value <= 1.0 { format!("{:.1} %", 100.0 * value.max(0.0)) } else { format!("{value:.0}/s") }
}
