//! From the output of other people's programs to numbers with names.
//!
//! Pure functions: text in, metrics out. What a program says of itself is its word; the lab's counters
//! stand next to it and decide.

mod iperf3;
mod json;
mod regex;
mod wrk;

use std::collections::BTreeMap;

use thiserror::Error;

use crate::scenario::spec::Parser;

/// Metrics by name, in the units of their names.
pub type Metrics = BTreeMap<String, f64>;

/// Output that does not hold the numbers it was to hold.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OutputError {
    /// The program reported a failure of its own.
    #[error("{program} failed: {message}")]
    Failed {
        /// The program.
        program: &'static str,
        /// Its message.
        message: String,
    },
    /// The output is not of the parser's form.
    #[error("the output is not what the {parser} parser reads: {why}; it begins with `{start}`")]
    Form {
        /// The parser.
        parser: &'static str,
        /// What was expected and not found.
        why: String,
        /// The first characters of the output.
        start: String,
    },
    /// A metric is missing or no number.
    #[error("metric `{metric}`: {why}")]
    Metric {
        /// The metric.
        metric: String,
        /// What was found instead.
        why: String,
    },
}

/// Reads the output of a program. `Parser::None` reads nothing.
pub fn read(parser: &Parser, text: &str) -> Result<Metrics, OutputError> {
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

fn form(parser: &'static str, why: impl Into<String>, text: &str) -> OutputError {
    let line = text.trim_start().lines().next().unwrap_or_default();
    OutputError::Form { parser, why: why.into(), start: line.chars().take(60).collect() }
}

#[cfg(test)]
mod tests;
