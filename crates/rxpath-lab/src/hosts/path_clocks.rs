//! The clocks of each sender and each receiver by datagrams on their path, once a run is over.

use std::collections::BTreeMap;

use rxpath_record::hosts::PathOffset;
use rxpath_record::manifest::HostPart;

use super::Hosts;
use super::probe::ports;
use crate::scenario::spec::Resolved;

impl Hosts {
    /// Notes for each sender how far its clock is ahead of each receiver's, if a variant sends datagrams. Pairs that have one
    /// clock, and paths that lose the datagrams, have none.
    ///
    /// **Cost** some ms for each round of pairs; 0.3 s if the path loses the datagrams.
    pub fn note_path_clocks(&self, parts: &mut BTreeMap<String, HostPart>, resolved: &Resolved) {
        let Some(udp) = ports(resolved).into_iter().find(|port| !port.tcp) else { return };
        let pairs = self.receivers.iter().flat_map(|receiver| {
            self.senders.iter().map(move |sender| [sender, receiver].map(|it| it.client.alias()))
        });
        for ([sender, receiver], found) in pairs.zip(self.clocks_over_path(udp.port)) {
            let (Ok(Some(bounds)), Some(part)) = (found, parts.get_mut(sender)) else { continue };
            let (ahead_ns, error_ns) = (bounds.clock().ahead_ns, bounds.error_ns());
            part.path_clocks.insert(receiver.to_owned(), PathOffset { ahead_ns, error_ns });
        }
    }
}
