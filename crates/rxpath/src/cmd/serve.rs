//! `rxpath serve`: the receiving side. A protocol is one file and one line in the list below.

mod http;
pub mod tcp;
mod udp;

use crate::cmd::commands;

commands! {
    /// `rxpath serve …`
    pub enum ServeCommand {
        /// Answer HTTP requests with a prepared reply
        Http(Box<http::ServeHttp>),
        /// Receive UDP datagrams and count them
        Udp(Box<udp::ServeUdp>),
        /// Serve TCP streams and transactions of `rxpath load tcp`; each connection announces its kind
        Tcp(Box<tcp::ServeTcp>),
    }
}
