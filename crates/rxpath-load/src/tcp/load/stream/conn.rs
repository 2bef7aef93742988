//! One connection of a streaming client.

use std::io;
use std::sync::Arc;

use crate::engine::listen::errno_name;
use crate::engine::socket::Socket;
use crate::tcp::connection::{ConnectionResult, TcpSummary};
use crate::tcp::flow::{Feed, Sink};
use crate::tcp::load::options::StreamOptions;
use crate::tcp::open_connections::Listed;
use crate::tcp::pattern::Pattern;
use crate::tcp::preamble::Preamble;
use crate::tcp::result::name;

/// See the module.
#[derive(Debug)]
pub(super) struct StreamConn {
    _listed: Listed,
    pub(super) socket: Socket,
    order: Preamble,
    pub(super) feed: Option<Feed>,
    pub(super) sink: Option<Sink>,
    /// Bytes that the schedule allows to be sent.
    pub(super) due_bytes: u64,
    /// Why it was lost before the end.
    pub(super) error: Option<String>,
    /// The server has ended its direction.
    pub(super) is_ended: bool,
    pub(super) name: String,
}

impl StreamConn {
    pub(super) fn new(
        (socket, listed): (Socket, Listed),
        options: &StreamOptions,
        order: Preamble,
        pattern: &Arc<Pattern>,
    ) -> io::Result<Self> {
        let common = &options.common;
        let feed = options.direction.sends().then(|| {
            Feed::new(Arc::clone(pattern), options.send, common.buffer_bytes, common.verify)
        });
        feed.iter().try_for_each(|feed| feed.prepare(&socket))?;
        let sink = || Sink::new(&socket, options.receive, common.verify);
        let sink = options.direction.receives().then(sink).transpose()?;
        let name = name(socket.local(), socket.peer());
        let due_bytes = if options.bitrate_bps.is_some() { 0 } else { u64::MAX };
        Ok(Self {
            _listed: listed,
            socket,
            order,
            feed,
            sink,
            due_bytes,
            error: None,
            is_ended: false,
            name,
        })
    }

    /// Tells the server what it is for; from here on the server may send.
    pub(super) fn order(&mut self) {
        // 40 bytes fit into every send buffer.
        if let Err(error) = self.socket.send_with(&self.order.to_bytes(), 0) {
            self.lose(&error);
        }
    }

    /// It is lost.
    pub(super) fn lose(&mut self, error: &io::Error) {
        if self.error.is_none() && !self.is_ended {
            self.error = Some(errno_name(error));
        }
        self.is_ended = true;
    }

    pub(super) fn sent_bytes(&self) -> u64 {
        self.feed.as_ref().map_or(0, |feed| feed.offset)
    }

    pub(super) fn delivered_bytes(&self) -> u64 {
        self.sink.as_ref().map_or(0, |sink| sink.offset)
    }

    pub(super) fn result(&self, thread: usize) -> ConnectionResult {
        ConnectionResult {
            name: self.name.clone(),
            thread: thread as u32,
            sent_bytes: self.sent_bytes(),
            delivered_bytes: self.delivered_bytes(),
            transactions_total: 0,
            error: self.error.clone(),
            tcp: TcpSummary::read(self.socket.fd()),
        }
    }
}
