//! rxpath-agent prints samples and draws none: it has no library for terminals.

use super::recorder::Recorder;
use super::source::FrameSource;
use crate::exit::{Failure, Outcome};
use crate::interrupt::Interrupt;

const MISSING: &str = "rxpath-agent has no full screen; the package rxpath has one";

/// Why a full screen can't be shown here.
#[allow(clippy::unnecessary_wraps, reason = "the full program has one, on most terminals")]
pub fn missing() -> Option<&'static str> {
    Some(MISSING)
}

/// Refuses; [`missing`] is asked first.
pub fn show(
    _source: Box<dyn FrameSource>,
    _recorder: Option<Recorder>,
    _interrupt: &Interrupt,
    _color: bool,
) -> Outcome {
    Err(Failure::usage(MISSING))
}
