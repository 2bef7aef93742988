//! Which CPU the receive softirq of each flow runs on, found out with one datagram per flow before the load.
//!
//! RPS picks the CPU from a hash with a secret key (`__skb_get_hash_net`, net/core/flow_dissector.c), so it cannot be
//! computed, only seen: a connected receiver notes the CPU in `SO_INCOMING_CPU` (`sk_incoming_cpu_update`, called by
//! `__udp_queue_rcv_skb` for connected sockets only). With one datagram under way at a time there is no doubt whose
//! it is. A *connected* sender stamps its datagrams with a random hash of its own (`sk_set_txhash`): for such flows a
//! probe by another socket would tell of another hash, so nothing is said about them.

use std::io;
use std::net::SocketAddr;

use rxpath_core::Side;
use rxpath_host::{HostError, Namespace};
use rxpath_load::engine::socket::Socket;
use rxpath_record::manifest::FlowCpu;

use crate::error::LabError;

/// A datagram over a veth takes microseconds; one that is not there after this is lost (a firewall, no route).
const PATIENCE_MS: i32 = 200;

/// The CPU of each flow, `from` a port of the sender `to` an address of the receiver.
pub fn landing(
    tx: &Namespace,
    rx: &Namespace,
    flows: &[(SocketAddr, SocketAddr)],
) -> Result<Vec<FlowCpu>, LabError> {
    flows.iter().map(|(from, to)| one(tx, rx, *from, *to)).collect()
}

fn one(
    tx: &Namespace,
    rx: &Namespace,
    from: SocketAddr,
    to: SocketAddr,
) -> Result<FlowCpu, LabError> {
    let failed = |side: Side, source: io::Error| {
        LabError::from(HostError::kernel(
            format!("probe the flow {from} to {to} ({side})"),
            source.raw_os_error().unwrap_or(0),
        ))
    };
    // A socket belongs to the namespace of the thread that opened it, wherever it is used then.
    let receiver = rx.run(move |_| {
        let socket = Socket::udp(to)?;
        socket.bind(to)?;
        socket.connect(from)?;
        Ok::<_, io::Error>(socket)
    })?;
    let receiver = receiver.map_err(|source| failed(Side::Rx, source))?;
    let sent = tx.run(move |_| {
        let socket = std::net::UdpSocket::bind(from)?;
        socket.send_to(&[], to)?;
        Ok::<_, io::Error>(())
    })?;
    sent.map_err(|source| failed(Side::Tx, source))?;
    let came = receiver.wait_readable(PATIENCE_MS).map_err(|e| failed(Side::Rx, e))?;
    let cpu = if came { receiver.incoming_cpu() } else { None };
    Ok(FlowCpu { from, to, cpu })
}
