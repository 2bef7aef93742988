//! `rxpath completions`: a shell's completion script.

use clap::Args;
use clap_complete::Shell;

use crate::cli::complete;
use crate::exit::{Exit, Outcome};
use crate::output;

/// Options of `rxpath completions`.
#[derive(Debug, Args)]
pub struct CompletionsCommand {
    /// The shell
    shell: Shell,
}

impl CompletionsCommand {
    /// Prints the script. It asks the installed rxpath at each completion, so that devices, rules and experiments are
    /// those of the moment.
    pub fn run(self) -> Outcome {
        let script = complete::script(&self.shell.to_string())?;
        output::text(&String::from_utf8_lossy(&script))?;
        Ok(Exit::Done)
    }
}
