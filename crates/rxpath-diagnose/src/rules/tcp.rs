//! TCP's part of a watched host: connections that nobody accepts, windows that close, segments that are dropped or sent
//! again, softirqs without time left.
//!
//! What a trial's ledger of TCP says is another matter: here counters of the whole namespace moved.

pub mod accept;
pub mod reader;
pub mod receive;
pub mod retransmit;
pub mod softirq;

use rxpath_record::verdict::Confidence;

use crate::thresholds::REQUESTS_LOST_COUNT;

/// How sure losses at sockets are a limit, whose cause may be shown: a few are not.
fn confidence(lost: u64, is_shown: bool) -> Confidence {
    if lost < REQUESTS_LOST_COUNT { Confidence::Weak } else { Confidence::strong_if(is_shown) }
}

/// What decides among losses: a few are named where nothing else limits.
fn noteworthy(lost: u64) -> u64 {
    if lost >= REQUESTS_LOST_COUNT { lost } else { 0 }
}
