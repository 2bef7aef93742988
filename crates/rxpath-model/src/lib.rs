//! What the receive path must do by arithmetic alone: queueing formulas, fluid bounds, reference cases.
//!
//! Pure: no host, no clock, no files. Numbers come in, numbers and their assumptions go out.
//! The literature and the assumptions of each formula stand in its module and, retold, in `docs/model.md`.

pub mod bounds;
pub mod calibration;
pub mod eval;
pub mod inputs;
pub mod kinds;
pub mod poisson;
pub mod queue;
pub mod sim;

pub use eval::{Evaluated, FileError, evaluate};
