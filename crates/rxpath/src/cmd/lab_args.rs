//! Options that commands share which make a run of the lab.

use rxpath_lab::run::LOCK_PATIENCE;

use crate::cmd::prelude::*;
use crate::cmd::values::seconds;

/// Default directory for run directories.
pub const BASE: &str = "rxpath-runs";

/// Where the run directory goes, and how long to wait for the lab.
#[derive(Debug, Default, clap::Args)]
pub struct LabArgs {
    /// Directory in which the run directory is created
    #[arg(long, value_name = "DIR", default_value = BASE)]
    pub out: PathBuf,
    #[command(flatten)]
    pub wait: WaitArgs,
}

/// How long to wait for the lab.
#[derive(Debug, Default, clap::Args)]
pub struct WaitArgs {
    /// Wait this long for another experiment on this machine to end; without a time: one day [default: 2s]
    #[arg(
        long,
        value_name = "TIME",
        value_parser = seconds,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "86400s"
    )]
    wait: Option<Nanos>,
}

impl WaitArgs {
    /// How long to wait for another experiment to end.
    pub fn patience(&self) -> Duration {
        self.wait.map_or(LOCK_PATIENCE, Nanos::as_duration)
    }

    /// Whether the option was given.
    pub fn is_given(&self) -> bool {
        self.wait.is_some()
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args, FromArgMatches};

    use super::*;
    use crate::cli;

    #[test]
    fn every_command_that_makes_a_lab_can_wait_for_another_one() {
        for line in [
            "run udp-pinning",
            "reproduce",
            "capacity udp",
            "tune auto --scenario udp-queue",
            "demo",
            "model calibrate",
            "model validate",
            "diagnose --selftest",
        ] {
            for option in ["--wait", "--wait=10min"] {
                let words = ["rxpath"].into_iter().chain(line.split(' ')).chain([option]);
                let read = cli::tree().try_get_matches_from(words);
                assert!(read.is_ok(), "{line} {option}: {}", read.unwrap_err());
            }
        }
    }

    #[test]
    fn without_a_time_it_waits_for_a_day_and_without_the_option_for_a_moment() {
        let patience = |words: &[&str]| {
            let command = WaitArgs::augment_args(clap::Command::new("lab"));
            let read = command.try_get_matches_from([&["lab"], words].concat()).unwrap();
            WaitArgs::from_arg_matches(&read).unwrap().patience()
        };
        assert_eq!(patience(&[]), Duration::from_secs(2), "as the help says");
        assert_eq!(patience(&["--wait"]), Duration::from_secs(86_400));
        assert_eq!(patience(&["--wait=10ms"]), Duration::from_millis(10));
    }
}
