//! `rxpath`: measures, explains, predicts and tunes the Linux network receive path.
//!
//! The binary is wiring only: the command line, one file per command, and how results are printed. Without the feature
//! `lab` it is rxpath-agent: what needs an experiment, a sender, a model or a terminal's screen is left out by module.

#![cfg_attr(
    not(feature = "lab"),
    allow(dead_code, reason = "modules of both programs have what only the full one calls")
)]

mod build_id;
mod cli;
mod cmd;
mod exit;
mod interrupt;
mod output;
mod tui;

use std::process::ExitCode;

fn main() -> ExitCode {
    if cli::complete::answered() {
        return ExitCode::SUCCESS;
    }
    let exit = match cli::parse() {
        Ok(cli) => {
            output::color::choose(cli.color);
            let command = cli.command.unwrap_or_else(cmd::alone);
            let outcome = command.run_there().unwrap_or_else(|| command.run());
            outcome.unwrap_or_else(|failure| failure.print())
        }
        Err(exit) => exit,
    };
    exit.into()
}
