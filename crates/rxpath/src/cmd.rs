//! The commands: a file and a line in the list below for each.

#[cfg(feature = "lab")]
mod binary_args;
#[cfg(feature = "lab")]
pub mod capacity;
mod capture;
pub mod check;
pub mod cleanup;
#[cfg(feature = "lab")]
pub mod compare;
mod completions;
#[cfg(feature = "lab")]
mod conduct;
#[cfg(feature = "lab")]
mod demo;
pub mod diagnose;
mod doctor;
#[cfg(feature = "lab")]
mod endpoint;
pub mod explain;
pub mod export;
#[cfg(feature = "lab")]
pub mod gate;
#[cfg(feature = "lab")]
mod hosts;
#[cfg(feature = "lab")]
mod hosts_args;
#[cfg(feature = "lab")]
pub mod lab_args;
#[cfg(feature = "lab")]
mod lab_error;
#[cfg(feature = "lab")]
pub mod list;
#[cfg(feature = "lab")]
mod load;
mod man;
#[cfg(feature = "lab")]
mod model;
#[cfg_attr(not(feature = "lab"), path = "cmd/agent/on_host.rs")]
mod on_host;
mod prelude;
#[cfg(feature = "lab")]
pub mod report;
#[cfg(feature = "lab")]
pub mod reproduce;
#[cfg(feature = "lab")]
mod run;
#[cfg(feature = "lab")]
mod scenario;
#[cfg(feature = "lab")]
pub mod schema;
mod scope;
#[cfg(feature = "lab")]
mod serve;
mod steal;
mod trace;
pub mod tune;
mod values;
mod watch;
#[cfg(feature = "lab")]
mod workload_text;

use crate::exit::Outcome;

/// Declares commands: each variant is a subcommand whose arguments have a `run`; with `cfg`, only in some builds.
macro_rules! commands {
    (
        $(#[doc = $about:tt])*
        $vis:vis enum $all:ident {
            $(
                $(#[doc = $doc:tt])*
                $(#[cfg($($cfg:tt)*)])?
                $(#[command($($command:tt)*)])?
                $name:ident($args:ty),
            )*
        }
    ) => {
        $(#[doc = $about])*
        #[derive(Debug, clap::Subcommand)]
        $vis enum $all {
            $(
                $(#[doc = $doc])*
                $(#[cfg($($cfg)*)])?
                $(#[command($($command)*)])?
                $name($args),
            )*
        }

        impl $all {
            /// Runs the command to its end.
            $vis fn run(self) -> $crate::exit::Outcome {
                match self {
                    $(
                        $(#[cfg($($cfg)*)])?
                        Self::$name(args) => args.run(),
                    )*
                }
            }
        }
    };
}
pub(crate) use commands;

commands! {
    /// The commands of rxpath.
    pub enum Command {
        /// Is this host's receive path set up right? (`rxpath` alone does the same)
        Check(check::CheckCommand),
        /// Save this host's state (files and answers of the kernel) as a scrubbed tree for `--sysroot`
        Capture(capture::CaptureCommand),
        /// Explain a rule, sysctl, counter, ethtool name, drop reason, term, stage or exit status
        Explain(explain::ExplainCommand),
        /// The tutorial: a lab with a planted bottleneck: find it, explain it, fix it, measure again, write a report
        #[cfg(feature = "lab")]
        Demo(demo::DemoCommand),
        /// Run an experiment, in a lab of two network namespaces by default
        #[cfg(feature = "lab")]
        Run(run::RunCommand),
        /// The published experiments that this host can run, in one book: what others found next to what is found here
        #[cfg(feature = "lab")]
        Reproduce(reproduce::ReproduceCommand),
        /// The highest rate that holds, as bounds: UDP without loss, requests under a latency limit
        #[cfg(feature = "lab")]
        Capacity(capacity::CapacityCommand),
        /// Which stage limits the receive path, with confidence and evidence: on this host, in a run, or for limits made on
        /// purpose
        Diagnose(diagnose::DiagnoseCommand),
        /// The bundled experiments, each with its question
        #[cfg(feature = "lab")]
        List(list::ListCommand),
        /// Receive over UDP, TCP or HTTP: count what arrives and report where the receiver's limit is
        #[cfg(feature = "lab")]
        #[command(subcommand)]
        Serve(serve::ServeCommand),
        /// Send over UDP, TCP or HTTP, by schedule or without pause, and report where the sender's limit is
        #[cfg(feature = "lab")]
        #[command(subcommand)]
        Load(load::LoadCommand),
        /// What can be measured on this host, what cannot, and why
        Doctor(doctor::DoctorCommand),
        /// Trace softirqs, NAPI polls, interrupts, drops and stage latencies for a while
        Trace(trace::TraceCommand),
        /// CPU time that network processing takes from other work: measured per task, with its cause
        Steal(steal::StealCommand),
        /// The live receive path, stage by stage: rates, drops, queues, CPU time; can be recorded and replayed
        Watch(watch::WatchCommand),
        /// Metrics of the live receive path for Prometheus, on a port or as a file
        Export(export::ExportCommand),
        /// Predict what the receive path can carry: fluid bounds, queueing formulas, simulation
        #[cfg(feature = "lab")]
        #[command(subcommand)]
        Model(model::ModelCommand),
        /// Change the host's settings: plan, apply, verify, undo
        #[command(subcommand)]
        Tune(tune::TuneCommand),
        /// Check real hosts before experiments between them, and undo what killed runs left there
        #[cfg(feature = "lab")]
        #[command(subcommand)]
        Hosts(hosts::HostsCommand),
        /// One host of an experiment between hosts; started over ssh
        #[cfg(feature = "lab")]
        #[command(hide = true)]
        Endpoint(endpoint::EndpointCommand),
        /// Remove what a killed run left behind; nothing else is touched
        Cleanup(cleanup::CleanupCommand),
        /// Print the JSON Schemas of rxpath's files and output
        #[cfg(feature = "lab")]
        Schema(schema::SchemaCommand),
        /// Print a shell's completion script
        Completions(completions::CompletionsCommand),
        /// Print or write the man pages
        Man(man::ManCommand),
        /// Is the second run better, worse or the same as the first?
        #[cfg(feature = "lab")]
        Compare(compare::CompareCommand),
        /// Write a readable report from a run directory
        #[cfg(feature = "lab")]
        Report(report::ReportCommand),
    }
}

impl Command {
    /// Runs it on the other host that its options name, if they name one.
    pub fn run_there(&self) -> Option<Outcome> {
        let on = match self {
            Self::Check(it) => &it.on,
            Self::Diagnose(it) => &it.on,
            Self::Doctor(it) => &it.on,
            Self::Trace(it) => &it.on,
            Self::Steal(it) => &it.on,
            Self::Watch(it) => &it.on,
            _ => return None,
        };
        on.run()
    }
}

/// What `rxpath` does without a command.
pub fn alone() -> Command {
    Command::Check(check::CheckCommand::default())
}

#[cfg(test)]
mod tests {
    #[cfg(feature = "lab")]
    #[test]
    fn every_command_with_the_option_runs_on_the_other_host() {
        use clap::Parser;

        let tree = crate::cli::bare_tree();
        let has_option = |command: &&clap::Command| {
            command.get_arguments().any(|option| option.get_long() == Some("host"))
        };
        let names: Vec<&str> =
            tree.get_subcommands().filter(has_option).map(clap::Command::get_name).collect();
        assert!(names.contains(&"check"), "{names:?}");
        for name in names {
            // No name of a host: it is refused before ssh is started.
            let read = crate::cli::Cli::try_parse_from(["rxpath", name, "--host", ""]).unwrap();
            let there = read.command.unwrap().run_there();
            assert!(there.is_some_and(|outcome| outcome.is_err()), "{name} would run here");
        }
    }
}
