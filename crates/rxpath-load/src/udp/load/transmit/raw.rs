//! Raw sockets: whole packets with a wrong UDP checksum (see [`engine::packet`](crate::engine::packet)).

use std::io::{self, ErrorKind};
use std::net::SocketAddr;

use crate::LoadError;
use crate::engine::batch::SendBatch;
use crate::engine::packet::Ends;
use crate::engine::socket::Socket;
use crate::udp::load::options::LoadOptions;
use crate::udp::load::transmit::{Flow, Transmit, connect_error};

/// The engine.
#[derive(Debug)]
pub(in crate::udp::load) struct RawSockets {
    flows: Vec<RawFlow>,
    batch: SendBatch,
    header_bytes: usize,
}

/// A raw socket, the ends of its packets, and the UDP socket that holds the source port.
#[derive(Debug)]
pub(in crate::udp::load) struct RawFlow {
    socket: Socket,
    ends: Ends,
    _port: Socket,
}

impl Flow for RawFlow {
    fn open(port: Socket, to: SocketAddr, _options: &LoadOptions) -> Result<Self, LoadError> {
        port.connect(to).map_err(|e| connect_error(to, e))?;
        let from = port.local().map_err(|e| LoadError::io("getsockname", e))?;
        let socket = Socket::raw(to).map_err(|source| match source.kind() {
            ErrorKind::PermissionDenied => LoadError::Denied {
                what: "--corrupt checksum (a raw socket)".into(),
                needs: "CAP_NET_RAW",
            },
            _ => LoadError::io("raw socket", source),
        })?;
        Ok(Self { socket, ends: Ends { from, to }, _port: port })
    }

    fn send_buffer(&self) -> Option<&Socket> {
        Some(&self.socket)
    }

    fn source(&self) -> io::Result<SocketAddr> {
        Ok(self.ends.from)
    }
}

impl Transmit for RawSockets {
    type Flow = RawFlow;

    fn new(flows: Vec<RawFlow>, options: &LoadOptions) -> Result<Self, LoadError> {
        let header_bytes = flows.iter().map(|flow| flow.ends.header_bytes()).max().unwrap_or(0);
        let mut batch = SendBatch::new(options.batch, header_bytes + options.size, 0);
        // A raw socket takes no port.
        let to = flows.iter().map(|flow| SocketAddr::new(flow.ends.to.ip(), 0).into());
        batch.set_destinations(to.collect());
        Ok(Self { flows, batch, header_bytes })
    }

    #[inline]
    fn payload(&mut self, i: usize) -> &mut [u8] {
        &mut self.batch.data(i)[self.header_bytes..]
    }

    #[inline]
    fn address(&mut self, flow: usize, messages: usize) {
        self.batch.aim(flow);
        for i in 0..messages {
            self.flows[flow].ends.write_with_wrong_checksum(self.batch.data(i));
        }
    }

    #[inline]
    fn send(&mut self, flow: usize, from: usize, to: usize) -> io::Result<usize> {
        self.batch.send(&self.flows[flow].socket, from, to)
    }

    fn wait_for_room(&self, flow: usize) -> io::Result<bool> {
        self.flows[flow].socket.wait(libc::POLLOUT, 20)
    }
}
