//! Flows of whole Ethernet frames, for engines that hand them to a device.

use std::io;
use std::net::SocketAddr;

use rxpath_host::netlink::Netlink;
use rxpath_host::read::netlink::NetworkLink;
use rxpath_host::write::netlink::next_hop::NextHop;

use crate::LoadError;
use crate::engine::frame;
use crate::engine::packet::Ends;
use crate::engine::socket::Socket;
use crate::udp::load::options::{Engine, LoadOptions};
use crate::udp::load::transmit::{Flow, connect};
pub(in crate::udp::load) use crate::udp::xdp::refused_by_host as refused;

/// A flow, the device that takes its frames, and the UDP socket that holds the source port.
#[derive(Debug)]
pub(in crate::udp::load) struct FrameFlow {
    pub(in crate::udp::load) frames: frame::FrameTemplate,
    pub(in crate::udp::load) hop: NextHop,
    from: SocketAddr,
    _port: Socket,
}

impl Flow for FrameFlow {
    fn call(options: &LoadOptions) -> &'static str {
        match options.engine {
            Engine::XdpFrames => "BPF_PROG_TEST_RUN",
            _ => "sendto of an AF_XDP socket",
        }
    }

    fn open(port: Socket, to: SocketAddr, options: &LoadOptions) -> Result<Self, LoadError> {
        connect(&port, to)?;
        let from = port.local().map_err(|e| LoadError::io("getsockname", e))?;
        let scope = match to {
            SocketAddr::V6(to) => to.scope_id(),
            SocketAddr::V4(_) => 0,
        };
        let engine = options.engine.option();
        let hop = Netlink::route()
            .and_then(|mut netlink| netlink.next_hop(to.ip(), scope))
            .map_err(|error| refused(engine, error))?;
        let frames = frame::FrameTemplate::new(&hop, Ends { from, to }, options.size);
        Ok(Self { frames, hop, from, _port: port })
    }

    fn source(&self) -> io::Result<SocketAddr> {
        Ok(self.from)
    }
}

/// The device that all these flows leave by.
pub(in crate::udp::load) fn one_device<'a>(
    engine: &str,
    flows: impl IntoIterator<Item = &'a FrameFlow>,
) -> Result<&'a NetworkLink, LoadError> {
    let mut devices = flows.into_iter().map(|flow| &flow.hop.device);
    let first = devices.next().ok_or_else(|| LoadError::usage("no destination", ""))?;
    let Some(other) = devices.find(|other| other.index != first.index) else { return Ok(first) };
    let (first, other) = (&first.name, &other.name);
    let what = format!(
        "{engine} sends by one device, and the destinations are behind {first} and {other}"
    );
    Err(LoadError::usage(what, "run one sender for each device"))
}
