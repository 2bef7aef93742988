//! `rxpath load`: the sending side. A protocol is one file and one line in the list below.

mod http;
mod tcp;
mod udp;

use crate::exit::Outcome;

/// `rxpath load …`
#[derive(Debug, clap::Args)]
pub struct LoadCommand {
    #[command(subcommand)]
    protocol: Protocol,
}

#[derive(Debug, clap::Subcommand)]
enum Protocol {
    /// Send UDP datagrams
    Udp(Box<udp::LoadUdp>),
    /// Send requests to a web server, in a closed loop or by schedule
    Http(Box<http::LoadHttp>),
    /// Send TCP streams and transactions to `rxpath serve tcp`
    Tcp(Box<tcp::LoadTcp>),
}

impl LoadCommand {
    /// Runs it.
    pub fn run(self) -> Outcome {
        match self.protocol {
            Protocol::Udp(args) => args.run(),
            Protocol::Http(args) => args.run(),
            Protocol::Tcp(args) => args.run(),
        }
    }
}
