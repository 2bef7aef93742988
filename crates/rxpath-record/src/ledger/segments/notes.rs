//! What is said of a ledger of segments: counters that could not be read, losses with bounds.

use super::SegmentInput;
use crate::ledger::prelude::*;

/// One note for each source that could not be read.
pub(super) fn gaps(input: &SegmentInput, moved: &Moved) -> Vec<String> {
    let (ip, ext, _) = input.path.groups();
    let mut wanted = Vec::new();
    for side in [PathSide::Tx, PathSide::Rx] {
        let tcp = ["OutSegs", "RetransSegs", "InSegs", "InCsumErrors"];
        wanted.extend(tcp.map(|counter| name::snmp(side, "Tcp", counter)));
        wanted.extend([name::snmp(side, ip, "InDelivers"), name::snmp(side, ext, "InNoECTPkts")]);
        wanted.push(name::snmp(side, "TcpExt", "TCPBacklogDrop"));
    }
    let path = &input.path;
    wanted.extend(path.tx_device.iter().map(|it| name::link(PathSide::Tx, it, "tx.dropped")));
    wanted.extend(path.rx_device.iter().map(|it| name::link(PathSide::Rx, it, "rx.dropped")));
    wanted.extend(path.ring.iter().cloned());
    if let WireFacts::Counted(wire) = &path.wire {
        let both = wire.forward.counters().chain(wire.backward.counters());
        wanted.extend(both.filter(|it| !path.ring.contains(it)).cloned());
    }
    moved.notes_of_gaps(&wanted)
}

/// A note for each loss that is only known to lie between two figures.
pub(super) fn bounds(terms: &[Term]) -> Vec<String> {
    let may_be_any = |term: &&Term| term.datagrams > 0 || term.room() != Some(0);
    let open = terms.iter().filter(|term| !term.exact && !term.is_narrow).filter(may_be_any);
    let note = |term: &Term| {
        if let Some(bound) = &term.bound {
            return bound.clone();
        }
        let most = term.most.map_or_else(|| "an unknown number of".into(), signed);
        format!(
            "{}: counts buffers, each of one or more segments: {} is shown, {most} is the most",
            term.counter,
            signed(term.datagrams)
        )
    };
    open.map(note).collect()
}
