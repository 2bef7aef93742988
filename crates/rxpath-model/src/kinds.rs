//! The kinds of cases: one file each, and one line in the list below.

use crate::inputs::{Inputs, Outputs, Problem};

pub mod balls;
pub mod coalesce_frames;
pub mod coalesce_usecs;
pub mod gated_poll;
pub mod inverse;
pub mod line_rate;
pub mod livelock;
pub mod md1;
pub mod md1k;
pub mod mg1;
pub mod mm1;
pub mod mm1k;
pub mod mmc;
pub mod napi_budget;
pub mod onoff;
pub mod priority;
pub mod share;
pub mod socket_capacity;
pub mod stall;
pub mod toeplitz;
pub mod token_cbr;
pub mod token_poisson;
pub mod vacation;

/// What computes a kind.
pub type Compute = fn(&Inputs) -> Result<Outputs, Problem>;

/// A kind of cases.
#[derive(Clone, Copy, Debug)]
pub struct CaseKind {
    /// The name in the field `kind` of a case.
    pub name: &'static str,
    /// Its formula.
    pub compute: Compute,
}

/// Every kind.
pub const ALL: &[CaseKind] = &[
    mm1k::KIND,
    md1k::KIND,
    mm1::KIND,
    md1::KIND,
    mg1::KIND,
    stall::KIND,
    coalesce_usecs::KIND,
    coalesce_frames::KIND,
    vacation::KIND,
    gated_poll::KIND,
    token_cbr::KIND,
    line_rate::KIND,
    token_poisson::KIND,
    livelock::KIND,
    priority::KIND,
    onoff::KIND,
    toeplitz::KIND,
    balls::KIND,
    mmc::KIND,
    napi_budget::KIND,
    share::KIND,
    socket_capacity::KIND,
    inverse::KIND,
];
