//! `rxpath model`: what arithmetic says about the receive path, without measuring anything.

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
    /// Compute the outputs of every case of a file of queueing problems
    Eval(eval::EvalCommand),
}

impl ModelCommand {
    /// Runs it.
    pub fn run(self) -> Outcome {
        match self.what {
            Model::Eval(eval) => eval.run(),
        }
    }
}
