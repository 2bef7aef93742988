//! `rxpath load tcp`: one file per kind of traffic, and the texts that all kinds share.

mod stream;
mod transactions;

use rxpath_load::tcp::load::options::CommonSettings;
use rxpath_load::tcp::result::{Mismatch, ServerReport};

use crate::cmd::commands;
use crate::cmd::workload_text::placed;
use crate::exit::Exit;
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
    rows.extend(s.verify.then(|| ("check", "every byte, by its receiver".into())));
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
