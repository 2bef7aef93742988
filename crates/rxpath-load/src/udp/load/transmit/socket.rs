//! UDP sockets: `sendmmsg`, or `send` of one message, with or without GSO.

use std::io;
use std::net::SocketAddr;

use socket2::SockAddr;

use crate::LoadError;
use crate::engine::batch::SendBatch;
use crate::engine::socket::Socket;
use crate::udp::load::options::LoadOptions;
use crate::udp::load::transmit::{Flow, Transmit, connect_error};

/// The engine.
#[derive(Debug)]
pub(in crate::udp::load) struct UdpSockets {
    sockets: Vec<Socket>,
    batch: SendBatch,
    is_batched: bool,
    is_connected: bool,
}

/// A socket, and where to if it is not connected.
#[derive(Debug)]
pub(in crate::udp::load) struct UdpFlow {
    socket: Socket,
    to: Option<SockAddr>,
}

impl Flow for UdpFlow {
    fn open(socket: Socket, to: SocketAddr, options: &LoadOptions) -> Result<Self, LoadError> {
        if options.unconnected {
            return Ok(Self { socket, to: Some(to.into()) });
        }
        socket.connect(to).map_err(|e| connect_error(to, e))?;
        Ok(Self { socket, to: None })
    }

    fn send_buffer(&self) -> Option<&Socket> {
        Some(&self.socket)
    }

    fn source(&self) -> io::Result<SocketAddr> {
        self.socket.local()
    }
}

impl UdpSockets {
    /// The engine of a thread, with room for the messages of a batch.
    pub(in crate::udp::load) fn of(flows: Vec<UdpFlow>, options: &LoadOptions) -> Self {
        let segment = if options.gso.is_some() { options.size as u16 } else { 0 };
        let mut batch = SendBatch::new(options.batch, options.size * options.segments(), segment);
        let (sockets, to): (Vec<_>, Vec<_>) =
            flows.into_iter().map(|flow| (flow.socket, flow.to)).unzip();
        let to: Vec<SockAddr> = to.into_iter().flatten().collect();
        let is_connected = to.is_empty();
        batch.set_destinations(to);
        Self { sockets, batch, is_batched: options.batch > 1, is_connected }
    }
}

impl Transmit for UdpSockets {
    type Flow = UdpFlow;

    fn new(flows: Vec<UdpFlow>, options: &LoadOptions) -> Result<Self, LoadError> {
        Ok(Self::of(flows, options))
    }

    #[inline]
    fn payload(&mut self, i: usize) -> &mut [u8] {
        self.batch.data(i)
    }

    #[inline]
    fn address(&mut self, flow: usize, _messages: usize) {
        if !self.is_connected {
            self.batch.aim(flow);
        }
    }

    #[inline]
    fn send(&mut self, flow: usize, from: usize, to: usize) -> io::Result<usize> {
        if self.is_batched {
            self.batch.send(&self.sockets[flow], from, to)
        } else {
            self.batch.send_one(&self.sockets[flow], from)
        }
    }

    fn wait_for_room(&self, flow: usize) -> io::Result<bool> {
        self.sockets[flow].wait(libc::POLLOUT, 20)
    }
}
