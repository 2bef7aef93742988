//! `rxpath load`: the sending side. A protocol is one file and one line in the list below.

mod http;
mod tcp;
mod udp;

use crate::cmd::commands;

commands! {
    /// `rxpath load …`
    pub enum LoadCommand {
        /// Send UDP datagrams
        Udp(Box<udp::LoadUdp>),
        /// Send requests to a web server, in a closed loop or by schedule
        Http(Box<http::LoadHttp>),
        /// Send TCP streams and transactions to `rxpath serve tcp`
        #[command(subcommand)]
        Tcp(tcp::LoadTcp),
    }
}
