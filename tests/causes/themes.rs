//! The causes by theme: a cause is a small function and a line of its theme's list.

// A theme's list is a table.
#![allow(clippy::too_many_lines)]

mod devices;
mod filters;
mod fragments;
mod memory;
mod namespaces;
mod nothing;
mod readers;
mod reuseport;
mod routes;
mod steering;
mod stopped;
mod tcp;
mod tunnels;
mod udp;
mod waiting;

use crate::cause::Cause;

/// All of them.
pub fn all() -> Vec<Cause> {
    [
        readers::causes(),
        waiting::causes(),
        stopped::causes(),
        reuseport::causes(),
        memory::causes(),
        udp::causes(),
        filters::causes(),
        routes::causes(),
        fragments::causes(),
        devices::causes(),
        steering::causes(),
        tcp::causes(),
        tunnels::causes(),
        namespaces::causes(),
        nothing::causes(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
