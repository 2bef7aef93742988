//! Which CPU the receive softirq of each flow runs on, found out with one datagram per flow before the load.
//!
//! RPS picks the CPU from a hash with a secret key (`__skb_get_hash_net`, net/core/flow_dissector.c), so it cannot be
//! computed, only seen. With one datagram under way at a time there is no doubt whose it is. A *connected* sender stamps
//! its datagrams with a random hash of its own (`sk_set_txhash`): for such flows a probe by another socket would report
//! another hash, so nothing is said about them.

use std::net::SocketAddr;

use rxpath_host::lab::netns::Namespace;
use rxpath_host::read::steering::cpu::{cpu_of, end};
use rxpath_host::read::steering::{Flow, FlowProtocol};
use rxpath_record::manifest::FlowCpu;

use crate::error::LabError;

/// The CPU of each flow, `from` a port of the sender `to` an address of the receiver.
pub fn landing(
    tx: &Namespace,
    rx: &Namespace,
    flows: &[(SocketAddr, SocketAddr)],
) -> Result<Vec<FlowCpu>, LabError> {
    let one = |&(from, to): &(SocketAddr, SocketAddr)| {
        let flow = Flow { source: from, destination: to, protocol: FlowProtocol::Udp };
        // A socket belongs to the namespace of the thread that opened it, wherever it is used then.
        let receiver = rx.run(move |_| end(to))??;
        let sender = tx.run(move |_| end(from))??;
        let cpu = cpu_of(flow, &sender, &receiver)?;
        Ok(FlowCpu { from, to, cpu })
    };
    flows.iter().map(one).collect()
}
