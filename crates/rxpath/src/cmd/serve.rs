//! `rxpath serve`: the receiving side. A protocol is one file and one line in the list below.

mod http;
pub mod tcp;
mod udp;

use crate::exit::Outcome;

/// `rxpath serve …`
#[derive(Debug, clap::Args)]
pub struct ServeCommand {
    #[command(subcommand)]
    protocol: Protocol,
}

#[derive(Debug, clap::Subcommand)]
enum Protocol {
    /// Answer HTTP requests with a prepared reply
    Http(Box<http::ServeHttp>),
    /// Receive UDP datagrams and count them
    Udp(Box<udp::ServeUdp>),
    /// Serve TCP streams and transactions of `rxpath load tcp`; each connection announces its kind
    Tcp(Box<tcp::ServeTcp>),
}

impl ServeCommand {
    /// Runs it.
    pub fn run(self) -> Outcome {
        match self.protocol {
            Protocol::Http(args) => args.run(),
            Protocol::Udp(args) => args.run(),
            Protocol::Tcp(args) => args.run(),
        }
    }
}
