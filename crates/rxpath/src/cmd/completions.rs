//! `rxpath completions`: a shell's completion script.

use clap_complete::Shell;

use crate::cli::complete;
use crate::cmd::prelude::*;

/// Options of `rxpath completions`.
#[derive(Debug, Args)]
pub struct CompletionsCommand {
    /// The shell
    shell: Shell,
}

impl CompletionsCommand {
    /// Prints the script. The script calls the installed rxpath at each completion, so devices, rules and experiments
    /// are current.
    pub fn run(self) -> Outcome {
        let script = complete::script(&self.shell.to_string())?;
        output::text(&String::from_utf8_lossy(&script))?;
        Ok(Exit::Done)
    }
}
