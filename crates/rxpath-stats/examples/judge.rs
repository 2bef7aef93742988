//! Judges a benchmark's goal over its blocks: reads one value a line, a ratio, a share or an error, and prints the mean with
//! its 95 % interval and `reached`, `not reached` or `inconclusive`.
//!
//! Usage: `judge [--ratio] at-most LIMIT | at-least LIMIT | within LIMIT | nothing`. `--ratio`: values are compared on the
//! logarithmic scale. `within` is -LIMIT to LIMIT; `nothing` only prints. Exit 0 reached, 1 not reached, 2 usage,
//! 4 inconclusive.

use std::io::Read;
use std::process::ExitCode;

use rxpath_stats::ConfidenceInterval;
use rxpath_stats::goal::{Reached, judge};

const USAGE: &str = "usage: judge [--ratio] at-most|at-least|within LIMIT, or nothing";

fn main() -> ExitCode {
    match run() {
        Ok((text, code)) => {
            println!("{text}");
            ExitCode::from(code)
        }
        Err(error) => {
            eprintln!("judge: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<(String, u8), String> {
    let words = std::env::args_os().skip(1);
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    let is_ratio = words.first().is_some_and(|word| word == "--ratio");
    let words = &words[usize::from(is_ratio)..];
    let limit = words.get(1).and_then(|limit| limit.parse::<f64>().ok());
    let whole = ConfidenceInterval { low: f64::NEG_INFINITY, high: f64::INFINITY };
    let goal = match (words.first().map(String::as_str), limit) {
        (Some("at-most"), Some(high)) => ConfidenceInterval { high, ..whole },
        (Some("at-least"), Some(low)) => ConfidenceInterval { low, ..whole },
        (Some("within"), Some(limit)) => ConfidenceInterval { low: -limit, high: limit },
        (Some("nothing"), None) => whole,
        _ => return Err(USAGE.into()),
    };
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(|error| error.to_string())?;
    let parsed: Result<Vec<f64>, _> = text.split_whitespace().map(str::parse).collect();
    let values = parsed.map_err(|error| format!("each line must be a number: {error}"))?;
    if values.iter().any(|value| !value.is_finite() || (is_ratio && *value <= 0.0)) {
        return Err("each line must be a finite number, and above 0 with --ratio".into());
    }
    let onto = |value: f64| if is_ratio { value.ln() } else { value };
    let back = |value: f64| if is_ratio { value.exp() } else { value };
    let goal_here = ConfidenceInterval {
        low: onto_end(goal.low, is_ratio),
        high: onto_end(goal.high, is_ratio),
    };
    let scaled: Vec<f64> = values.iter().map(|value| onto(*value)).collect();
    let Some((found, reached)) = judge(&scaled, goal_here) else {
        return Ok((format!("{} values give no interval: inconclusive", values.len()), 4));
    };
    let (word, code) = match reached {
        _ if goal == whole => ("", 0),
        Reached::Yes => (": reached", 0),
        Reached::No => (": not reached", 1),
        Reached::Unknown => (": inconclusive", 4),
    };
    let (low, high) = (back(found.interval.low), back(found.interval.high));
    let value = back(found.value);
    Ok((format!("{value:.4} ({low:.4} to {high:.4}, {} blocks){word}", values.len()), code))
}

/// An end of the goal, on the scale of the values.
fn onto_end(end: f64, is_ratio: bool) -> f64 {
    if is_ratio && end.is_finite() { end.max(f64::MIN_POSITIVE).ln() } else { end }
}
