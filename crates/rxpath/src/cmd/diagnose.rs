//! `rxpath diagnose`: the stage that limits, the confidence, the evidence, and what to change.

pub mod host;
pub mod runs;
#[cfg_attr(not(feature = "lab"), path = "agent/selftest.rs")]
pub mod selftest;

use rxpath_record::verdict::DiagnosisVerdict;

use crate::cmd::on_host::OnHost;
use crate::cmd::prelude::*;
use crate::cmd::scope::ScopeArgs;
use crate::cmd::values::seconds;
use crate::output::table::hanging;
use crate::output::width;

/// `rxpath diagnose`
#[derive(Debug, clap::Args)]
pub struct DiagnoseCommand {
    /// Run directories to judge with the current rules; without any, this host is watched
    #[arg(value_name = "RUN", conflicts_with_all = ["port", "duration"])]
    runs: Vec<PathBuf>,
    /// Watch this host for this long, 100ms to 1h
    #[arg(short, long, value_name = "TIME", value_parser = seconds, default_value = "3s")]
    duration: Nanos,
    /// Judge only the sockets of this local port; losses before a socket, and TCP's counters, still cover all ports
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    #[command(flatten)]
    scope: ScopeArgs,
    /// Use counters only, no tracepoints: no lock waits, no CPU time taken from tasks, no check for wrong tick
    /// accounting
    #[arg(long, conflicts_with = "runs")]
    no_bpf: bool,
    #[command(flatten)]
    made: selftest::SelftestArgs,
    #[command(flatten)]
    format: FormatArgs,
    #[command(flatten)]
    pub on: OnHost,
}

impl DiagnoseCommand {
    /// Runs it.
    pub fn run(self) -> Outcome {
        if self.scope.is_given() && (self.made.is_asked() || !self.runs.is_empty()) {
            return Err(Failure::usage(
                "--netns, --pid and --cgroup apply only when this host is watched",
            ));
        }
        if self.made.is_asked() {
            return self.made.run(&self.format);
        }
        if self.made.is_given() {
            return Err(Failure::usage(
                "--draws, --seed, --case, --hold, --out and --wait are about --selftest",
            )
            .hint("add --selftest, or leave them out"));
        }
        if self.runs.is_empty() { host::run(&self) } else { runs::run(&self.runs, &self.format) }
    }
}

/// A verdict as text: the sentence, the evidence, the remedy.
fn text(verdict: &DiagnosisVerdict) -> String {
    let mut out = verdict.headline() + "\n";
    out.extend(verdict.evidence.iter().map(|it| format!("  {}   [{}]\n", it.text, it.source)));
    for (at, remedy) in verdict.remedies.iter().enumerate() {
        out += &hanging(if at == 0 { "to change:" } else { "" }, 11, remedy, width());
    }
    if !verdict.check_rules.is_empty() {
        out += &format!("rules of check: {} (rxpath explain ID)\n", verdict.check_rules.join(", "));
    }
    out.extend(verdict.next.iter().map(|next| format!("next limit: {next}\n")));
    out
}

#[cfg(test)]
mod tests {
    use rxpath_record::verdict::Stage;

    #[test]
    fn every_rule_that_a_verdict_names_is_there_to_be_explained() {
        for stage in Stage::ALL {
            for id in rxpath_diagnose::stages::info(stage).check_rules {
                assert!(rxpath_tune::rules::find(id).is_some(), "{stage:?}: {id}");
            }
        }
    }
}
