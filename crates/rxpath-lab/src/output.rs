//! From the output of other people's programs to numbers with names.
//!
//! Pure functions: text in, metrics out. What a program says of itself is its word; the lab's counters
//! stand next to it and decide.

mod iperf3;
mod json;
mod regex;
mod wrk;

use std::collections::BTreeMap;
use std::fmt::Display;

use crate::scenario::spec::Parser;

/// Metrics by name, in the units of their names.
pub type Metrics = BTreeMap<String, f64>;

/// Reads the output of a program. `Parser::None` reads nothing.
///
/// # Errors
/// In words what the program failed with, or which numbers its output does not hold.
pub fn read(parser: &Parser, text: &str) -> Result<Metrics, String> {
    match parser {
        Parser::Iperf3 => iperf3::read(text),
        Parser::Wrk => wrk::read(text),
        Parser::Json(pointers) => json::read(text, pointers),
        Parser::Regex(pattern) => regex::read(text, pattern),
        Parser::None => Ok(Metrics::new()),
    }
}

/// Names of the metrics that a parser can give.
pub fn metric_names(parser: &Parser) -> Vec<String> {
    match parser {
        Parser::Iperf3 => iperf3::names(),
        Parser::Wrk => wrk::names(),
        Parser::Json(pointers) => pointers.keys().cloned().collect(),
        Parser::Regex(pattern) => regex::names(pattern),
        Parser::None => Vec::new(),
    }
}

/// Output that is not of the parser's form, with its first characters.
fn form(parser: &str, why: impl Display, text: &str) -> String {
    let line = text.trim_start().lines().next().unwrap_or_default();
    let start: String = line.chars().take(60).collect();
    format!("the output is not what the {parser} parser reads: {why}; it begins with `{start}`")
}

/// A metric that is missing or no number.
fn bad(metric: &str, why: impl Display) -> String {
    format!("metric `{metric}`: {why}")
}

#[cfg(test)]
mod tests;
