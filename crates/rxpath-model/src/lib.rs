//! What arithmetic alone says about the receive path: queueing formulas, fluid bounds, reference cases.
//!
//! Pure: no host, no clock, no files. Numbers come in, numbers and their assumptions go out.
//! Each module states the literature and the assumptions of its formula; `docs/reference/model.md` summarises them.

pub mod bounds;
pub mod calibration;
pub mod eval;
pub mod inputs;
pub mod kinds;
pub mod poisson;
pub mod queue;
pub mod sim;
pub mod token_bucket;

pub use eval::{Evaluated, FileError, evaluate};
