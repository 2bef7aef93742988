//! The commands: one file each, and one line in the list below.

mod address;
mod capture;
pub mod check;
pub mod cleanup;
pub mod compare;
mod completions;
mod conduct;
mod demo;
pub mod diagnose;
mod doctor;
pub mod explain;
pub mod list;
mod load;
mod man;
mod micros;
mod model;
pub mod report;
mod run;
pub mod schema;
mod scope;
mod serve;
mod steal;
mod trace;
pub mod tune;
mod values;
mod watch;

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
    /// Write this host's files and answers as a scrubbed tree that `--sysroot` takes
    Capture(capture::CaptureCommand),
    /// Explain a rule, sysctl, counter, ethtool name, drop reason, term, stage or exit status
    Explain(explain::ExplainCommand),
    /// The tutorial: a lab with a planted bottleneck, found, explained, fixed, measured again, reported
    Demo(demo::DemoCommand),
    /// Run an experiment, in a lab of two network namespaces by default
    Run(run::RunCommand),
    /// Which stage limits, how sure, by what evidence: of this host, of a run, or of limits made on purpose
    Diagnose(diagnose::DiagnoseCommand),
    /// The bundled experiments, each with its question
    List(list::ListCommand),
    /// Receive over UDP, TCP or HTTP: count all that arrives and say where the receiver's limit is
    Serve(serve::ServeCommand),
    /// Send over UDP, TCP or HTTP: offer load by schedule or without pause and say where the sender's limit is
    Load(load::LoadCommand),
    /// What can be measured here, and why not
    Doctor(doctor::DoctorCommand),
    /// Softirqs, NAPI polls, interrupts, drops and the latency of stages, for a while
    Trace(trace::TraceCommand),
    /// CPU time that networking takes from work: by task, measured, with who caused it
    Steal(steal::StealCommand),
    /// The live path, stage by stage: rates, drops, queues, CPU taken; recorded and replayed
    Watch(watch::WatchCommand),
    /// Predict: fluid bounds and queueing formulas of the receive path
    Model(model::ModelCommand),
    /// Change the host's settings: plan, apply, verify, undo
    Tune(tune::TuneCommand),
    /// Remove what a killed run left behind, and nothing else
    Cleanup(cleanup::CleanupCommand),
    /// Print the JSON Schemas of what is written and printed
    Schema(schema::SchemaCommand),
    /// Print a shell's completion script
    Completions(completions::CompletionsCommand),
    /// Print or write the man pages
    Man(man::ManCommand),
    /// Is the second run better, worse or the same as the first?
    Compare(compare::CompareCommand),
    /// Write a page that a person reads from a run directory
    Report(report::ReportCommand),
}

/// What `rxpath` does without a command.
pub fn alone() -> Command {
    Command::Check(check::CheckCommand::default())
}
