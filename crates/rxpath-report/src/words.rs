//! The words for the record's enums: one place, so that page and Markdown use the same.

use rxpath_record::comparison::Comparison;
use rxpath_record::manifest::{LoopKind, Status};
use rxpath_record::verdict::Stage;

/// The limiting stage in two or three words.
pub(crate) fn stage(stage: Stage, cpu: Option<u32>) -> String {
    let word = stage.words();
    match cpu {
        Some(cpu) => format!("{word}, CPU {cpu}"),
        None => word.into(),
    }
}

/// The scenario's expectation, and what became of it: `up: confirmed`.
pub(crate) fn expected(comparison: &Comparison) -> String {
    match (&comparison.expected, comparison.met()) {
        (Some(expected), Some(met)) => format!("{expected}: {}", met.word()),
        _ => "–".into(),
    }
}

/// How a run ended.
pub(crate) fn status(status: Status) -> &'static str {
    match status {
        Status::Running => "not ended",
        Status::Complete => "complete",
        Status::Interrupted => "interrupted",
        Status::Failed => "failed",
    }
}

/// Whether a trial was open or closed loop.
pub(crate) fn loop_kind(kind: LoopKind) -> &'static str {
    match kind {
        LoopKind::Open => "open",
        LoopKind::Closed => "closed",
    }
}

/// A metric's name as a phrase that says whose number it is.
pub(crate) fn metric(name: &str) -> String {
    let title = rxpath_record::metric::metric(name).map_or("", |metric| metric.title);
    if title.is_empty() { name.replace('_', " ") } else { title.into() }
}
