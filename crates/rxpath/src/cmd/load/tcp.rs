//! `rxpath load tcp`: one file per kind of traffic, and the options that all kinds share.

mod stream;
mod transactions;

use std::net::SocketAddr;

use rxpath_core::{Bytes, ItemCount};
use rxpath_load::tcp::load::options::{Common, CommonSettings};
use rxpath_load::tcp::result::{Mismatch, ServerReport};
use rxpath_load::tcp::socket::SocketOptions;

use crate::cmd::address::address;
use crate::cmd::commands;
use crate::cmd::conduct::ConductArgs;
use crate::cmd::values::small_size;
use crate::cmd::workload_args::{BufferArgs, ThreadArgs, placed};
use crate::exit::{Exit, Failure};
use crate::output::tcp::socket_text;

commands! {
    /// `rxpath load tcp …`
    pub enum LoadTcp {
        /// Move bytes, in one direction or both, at full speed or by a schedule
        Stream(Box<stream::LoadStream>),
        /// Request and response in turn, on persistent connections
        Rr(Box<transactions::LoadTransactions>),
        /// Connect, request, response, close, repeat
        Crr(Box<transactions::LoadSingles>),
    }
}

/// Options that all kinds share.
#[derive(Clone, Debug, clap::Args)]
pub struct CommonArgs {
    /// The server: IP:PORT, [v6]:PORT, [v6%IF]:PORT or HOST:PORT of a `rxpath serve tcp`
    #[arg(value_parser = address)]
    addr: SocketAddr,
    /// Connections over all threads (default: one per thread)
    #[arg(short, long, value_name = "N")]
    connections: Option<ItemCount>,
    #[command(flatten)]
    threads: ThreadArgs,
    /// Most bytes per call
    #[arg(long, value_name = "BYTES", default_value = "128KiB")]
    buffer: Bytes,
    #[command(flatten)]
    buffers: BufferArgs,
    /// Congestion control of what this side sends (TCP_CONGESTION)
    #[arg(long, value_name = "NAME")]
    congestion: Option<String>,
    /// Largest segment (TCP_MAXSEG)
    #[arg(long, value_name = "BYTES", value_parser = small_size)]
    mss: Option<u32>,
    /// Let the receiver check every byte; the first difference is reported with its offset, exit status 1
    #[arg(long)]
    verify: bool,
    #[command(flatten)]
    conduct: ConductArgs,
}

impl CommonArgs {
    fn common(&self) -> Result<Common, Failure> {
        let threads = self.threads.threads()?;
        Ok(Common {
            addr: self.addr,
            connections: self.connections.map_or(threads.count, |count| count.0 as usize),
            threads,
            buffer_bytes: self.buffer.0 as usize,
            verify: self.verify,
            socket: SocketOptions {
                rcvbuf: self.buffers.rcvbuf.map(|bytes| bytes.0),
                sndbuf: self.buffers.sndbuf.map(|bytes| bytes.0),
                congestion: self.congestion.clone(),
                mss_bytes: self.mss,
                ..SocketOptions::default()
            },
            duration_ns: self.conduct.duration.map(|duration| duration.0),
        })
    }
}

/// The row about connections whose data was checked at both ends.
fn checked(own: &[Mismatch], server: Option<&ServerReport>) -> (&'static str, String) {
    let wrong = own.len() + server.map_or(0, |server| server.mismatches.len());
    ("check", format!("{wrong} connections with wrong data"))
}

/// Settings that all kinds print.
fn common_rows(s: &CommonSettings) -> Vec<(&'static str, String)> {
    let mut rows = vec![
        ("server", format!("rxpath {}, {} threads", s.server_program, s.server_threads_count)),
        ("threads", placed(&s.threads)),
        ("connections", s.connections_count.to_string()),
        ("sockets", socket_text(&s.socket)),
    ];
    rows.extend(s.mss_bytes.map(|mss| ("segment", format!("{mss} bytes"))));
    if s.verify {
        rows.push(("check", "every byte, by its receiver".into()));
    }
    rows
}

/// How a run ends: wrong data are a negative verdict; a lost server makes the result partial.
fn exit(mismatches: &[Mismatch], server: Option<&ServerReport>, peer_lost: bool) -> Exit {
    if !mismatches.is_empty() || server.is_some_and(|server| !server.mismatches.is_empty()) {
        Exit::Negative
    } else if peer_lost {
        Exit::Partial
    } else {
        Exit::Done
    }
}
