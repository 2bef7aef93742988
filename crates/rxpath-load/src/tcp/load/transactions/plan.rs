//! What a thread of transactions needs.

use std::sync::Arc;

use crate::engine::socket::Socket;
use crate::live::LiveTimes;
use crate::tcp::load::options::TransactionOptions;
use crate::tcp::open_connections::Listed;
use crate::tcp::pattern::Pattern;
use crate::tcp::preamble::Preamble;

/// What a worker needs.
#[derive(Debug)]
pub(super) struct Plan {
    /// While intervals read the connections; dropped before they are.
    pub(super) listed: Vec<Listed>,
    /// Persistent connections.
    pub(super) sockets: Vec<Socket>,
    /// Connections at a time.
    pub(super) slots: usize,
    pub(super) order: Preamble,
    pub(super) pattern: Arc<Pattern>,
    pub(super) options: TransactionOptions,
    pub(super) live: Arc<Vec<LiveTimes>>,
}
