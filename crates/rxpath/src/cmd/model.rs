//! `rxpath model`: predictions for the receive path by calculation.

mod bounds;
pub mod calibrate;
pub mod calibration;
mod eval;
pub mod from_run;
pub mod simulate;
mod validate;

use crate::cmd::commands;

commands! {
    /// `rxpath model …`
    pub enum ModelCommand {
        /// Report what each stage can carry, what it loses and how large its buffer must be
        Bounds(Box<bounds::BoundsCommand>),
        /// Measure the cost of each step of the receive path on this host
        Calibrate(calibrate::CalibrateCommand),
        /// Compute the outputs of every case of a file of queueing problems
        Eval(eval::EvalCommand),
        /// Compare the simulator's predictions with measurements
        Validate(Box<validate::ValidateCommand>),
        /// Simulate the receive path packet by packet, from parameters
        Simulate(Box<simulate::SimulateCommand>),
    }
}
