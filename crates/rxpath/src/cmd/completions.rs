//! `rxpath completions` and `rxpath man`: what a package ships beside the binary.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use clap_complete::Shell;

use crate::cli;
use crate::exit::{Exit, Outcome};
use crate::output;

/// Options of `rxpath completions`.
#[derive(Debug, Args)]
pub struct CompletionsCommand {
    /// The shell
    shell: Shell,
}

impl CompletionsCommand {
    /// Prints the script.
    pub fn run(self) -> Outcome {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut cli::tree(), "rxpath", &mut script);
        output::text(&String::from_utf8_lossy(&script))?;
        Ok(Exit::Done)
    }
}

/// Options of `rxpath man`.
#[derive(Debug, Args)]
pub struct ManCommand {
    /// Directory for one page per command; without it the main page goes to standard output
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl ManCommand {
    /// Prints or writes the pages.
    pub fn run(self) -> Outcome {
        if let Some(directory) = self.out {
            clap_mangen::generate_to(cli::tree(), &directory)
                .with_context(|| format!("cannot write man pages into {}", directory.display()))?;
            return Ok(Exit::Done);
        }
        let mut page = Vec::new();
        clap_mangen::Man::new(cli::tree()).render(&mut page)?;
        output::text(&String::from_utf8_lossy(&page))?;
        Ok(Exit::Done)
    }
}
