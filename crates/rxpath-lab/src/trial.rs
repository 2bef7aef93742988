//! One trial: lab quiescent, load, ramp, settle, measure, stop, drain, quiescent, read.
//!
//! The ledger spans the whole trial from rest to rest; rates use the measured window inside it.

mod attached;
pub mod background;
pub mod compose;
pub mod config;
pub mod evidence;
pub mod external;
mod kept_output;
pub mod kernel_lines;
pub mod line;
pub mod measurements;
pub mod noise;
pub mod observers;
pub mod peer;
pub mod phase;
pub mod program;
pub mod reasons;
pub mod result;
pub mod runner;
pub mod sampler;
pub mod several;
pub mod side;
pub mod sides;
pub mod start;
mod steadiness;
pub mod stolen;
mod tracing;
pub(crate) mod unreaped;
mod victim;
mod waiting;
pub mod window;
