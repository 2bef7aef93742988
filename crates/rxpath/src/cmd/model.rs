//! `rxpath model`: what arithmetic says about the receive path, without measuring anything.

mod bounds;
mod eval;

use crate::exit::Outcome;

/// `rxpath model`
#[derive(Debug, clap::Args)]
pub struct ModelCommand {
    #[command(subcommand)]
    what: Model,
}

/// The sorts of answers.
#[derive(Debug, clap::Subcommand)]
enum Model {
    /// Say in sentences what each stage can carry, what it loses and how large its buffer must be
    Bounds(Box<bounds::BoundsCommand>),
    /// Compute the outputs of every case of a file of queueing problems
    Eval(eval::EvalCommand),
}

impl ModelCommand {
    /// Runs it.
    pub fn run(self) -> Outcome {
        match self.what {
            Model::Bounds(bounds) => bounds.run(),
            Model::Eval(eval) => eval.run(),
        }
    }
}
