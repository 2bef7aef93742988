//! Flows of whole Ethernet frames, for engines that hand them to a device.

use std::io;
use std::net::SocketAddr;

use rxpath_host::netlink::Netlink;
use rxpath_host::read::netlink::NetworkLink;
use rxpath_host::write::netlink::next_hop::NextHop;

use crate::LoadError;
use crate::buffers;
use crate::engine::frame::{FrameTemplate, LONGEST_HEAD};
use crate::engine::packet::Ends;
use crate::engine::socket::{Buffer, Socket};
use crate::engine::xsk::{Frame, Side, Xsk};
use crate::udp::load::options::{Engine, LoadOptions, LoadSettings};
use crate::udp::load::transmit::{Flow, connect_error};
use crate::udp::xdp;
pub(in crate::udp::load) use crate::udp::xdp::refused_by_host as refused;

/// Memory of a packet in addition to its data: its struct, the shared info, headroom.
const PACKET_EXTRA: u64 = 1024;

/// A flow, the device that takes its frames, and the UDP socket that holds the source port.
#[derive(Debug)]
pub(in crate::udp::load) struct FrameFlow {
    pub(in crate::udp::load) frames: FrameTemplate,
    pub(in crate::udp::load) hop: NextHop,
    port: Socket,
    /// The AF_XDP socket of a thread, which its first flow brings.
    pub(super) xsk: Option<(Xsk, Vec<Frame>)>,
}

impl Flow for FrameFlow {
    fn open(port: Socket, to: SocketAddr, options: &LoadOptions) -> Result<Self, LoadError> {
        port.connect(to).map_err(|e| connect_error(to, e))?;
        let from = port.local().map_err(|e| LoadError::io("getsockname", e))?;
        let scope = match to {
            SocketAddr::V6(to) => to.scope_id(),
            SocketAddr::V4(_) => 0,
        };
        let engine = options.engine.option();
        let hop = Netlink::route()
            .and_then(|mut netlink| netlink.next_hop(to.ip(), scope))
            .map_err(|error| refused(engine, error))?;
        let frames = FrameTemplate::new(&hop, Ends { from, to }, options.size);
        Ok(Self { frames, hop, port, xsk: None })
    }

    fn source(&self) -> io::Result<SocketAddr> {
        self.port.local()
    }

    fn share(
        threads: &mut [Vec<Self>],
        options: &LoadOptions,
        settings: &mut LoadSettings,
    ) -> Result<(), LoadError> {
        if options.engine != Engine::Xdp {
            return Ok(());
        }
        let device = one_device(options.engine.option(), threads.iter().flatten())?.clone();
        let lengths = threads.iter().flatten().map(|flow| flow.frames.frame.len());
        // The payload of every flow begins at the same place.
        let longest = lengths.max().unwrap_or(0).max(LONGEST_HEAD + options.size);
        let (sockets, of_all) =
            xdp::open(&device, Side::Send, &options.xdp, threads.len(), longest)?;
        // Room for all frames: then only frames hold a sender up.
        let each = u64::from(of_all.frame_bytes) + PACKET_EXTRA;
        let bytes = u64::from(of_all.frames_count) * each;
        for (flows, (socket, frames)) in threads.iter_mut().zip(sockets) {
            if socket.is_copying {
                let asked = options.sndbuf.unwrap_or(bytes);
                settings.sndbuf_forced = buffers::set(socket.socket(), Buffer::Send, asked)?;
                let memory = socket.socket().meminfo();
                let memory = memory.map_err(|e| LoadError::io("SO_MEMINFO", e))?;
                settings.sndbuf_bytes = Some(memory.sndbuf.into());
            }
            if let Some(first) = flows.first_mut() {
                first.xsk = Some((socket, frames));
            }
        }
        settings.xdp = Some(of_all);
        Ok(())
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
