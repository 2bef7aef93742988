//! The commands: one file each, and one line in the list below.

mod conduct;
mod load;
mod serve;

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
    /// Receive: count every datagram that arrives and say where the receiver's limit is
    Serve(serve::ServeCommand),
    /// Send: offer load by schedule or as fast as possible and say where the sender's limit is
    Load(load::LoadCommand),
}
