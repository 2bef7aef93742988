//! The commands: a file and a line in the list below for each.

mod address;
mod binary_args;
pub mod capacity;
mod capture;
pub mod check;
pub mod cleanup;
pub mod compare;
mod completions;
mod conduct;
mod demo;
pub mod diagnose;
mod doctor;
mod endpoint;
pub mod explain;
pub mod export;
pub mod gate;
mod hosts;
mod hosts_args;
pub mod lab_args;
pub mod list;
mod load;
mod man;
mod micros;
mod model;
mod on_host;
pub mod report;
pub mod reproduce;
mod run;
pub mod schema;
mod scope;
mod serve;
mod steal;
mod trace;
pub mod tune;
mod values;
mod watch;
mod workload_args;

use crate::exit::Outcome;

/// Declares the commands: each variant is a subcommand whose arguments have a `run`.
macro_rules! commands {
    ($($(#[$doc:meta])* $name:ident($args:ty),)*) => {
        /// The commands of rxpath.
        #[derive(Debug, clap::Subcommand)]
        pub enum Command {
            $($(#[$doc])* $name($args),)*
        }

        impl Command {
            /// Runs the command to its end.
            pub fn run(self) -> Outcome {
                match self {
                    $(Self::$name(args) => args.run(),)*
                }
            }
        }
    };
}

commands! {
    /// Is this host's receive path set up right? (`rxpath` alone does the same)
    Check(check::CheckCommand),
    /// Save this host's state (files and answers of the kernel) as a scrubbed tree for `--sysroot`
    Capture(capture::CaptureCommand),
    /// Explain a rule, sysctl, counter, ethtool name, drop reason, term, stage or exit status
    Explain(explain::ExplainCommand),
    /// The tutorial: a lab with a planted bottleneck: find it, explain it, fix it, measure again, write a report
    Demo(demo::DemoCommand),
    /// Run an experiment, in a lab of two network namespaces by default
    Run(run::RunCommand),
    /// The published experiments that this host can run, in one book: what others found next to what is found here
    Reproduce(reproduce::ReproduceCommand),
    /// The highest rate that holds, as bounds: UDP without loss, requests under a latency limit
    Capacity(capacity::CapacityCommand),
    /// Which stage limits the receive path, with confidence and evidence: on this host, in a run, or for limits made on
    /// purpose
    Diagnose(diagnose::DiagnoseCommand),
    /// The bundled experiments, each with its question
    List(list::ListCommand),
    /// Receive over UDP, TCP or HTTP: count what arrives and report where the receiver's limit is
    Serve(serve::ServeCommand),
    /// Send over UDP, TCP or HTTP, by schedule or without pause, and report where the sender's limit is
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
    Model(model::ModelCommand),
    /// Change the host's settings: plan, apply, verify, undo
    Tune(tune::TuneCommand),
    /// Are the real hosts of an inventory ready for experiments?
    Hosts(hosts::HostsCommand),
    /// One host of an experiment between hosts; started over ssh
    #[command(hide = true)]
    Endpoint(endpoint::EndpointCommand),
    /// Remove what a killed run left behind; nothing else is touched
    Cleanup(cleanup::CleanupCommand),
    /// Print the JSON Schemas of rxpath's files and output
    Schema(schema::SchemaCommand),
    /// Print a shell's completion script
    Completions(completions::CompletionsCommand),
    /// Print or write the man pages
    Man(man::ManCommand),
    /// Is the second run better, worse or the same as the first?
    Compare(compare::CompareCommand),
    /// Write a readable report from a run directory
    Report(report::ReportCommand),
}

/// What `rxpath` does without a command.
pub fn alone() -> Command {
    Command::Check(check::CheckCommand::default())
}
