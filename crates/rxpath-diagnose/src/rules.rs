//! The rules, one file each; a new one is a file and a line in [`ALL`], or in [`socket::judge`] if it is about a cause of drops
//! at sockets.

mod application;
mod backlog;
mod blocked;
mod checksum;
mod conntrack;
mod descheduled;
mod filter;
mod livelock;
mod network;
mod no_listener;
mod nobody_reads;
mod not_run;
mod nothing;
mod one_cpu;
mod prelude;
mod protocol;
mod qdisc;
mod ring;
mod segments;
mod sender;
mod sender_or_softirq;
mod sender_spare;
mod shared_socket;
mod socket;
mod socket_queue;
mod softirq;
mod tcp;
mod tick_artefact;
mod udp_memory;
mod uneven;
mod unknown;
mod victim;
mod waits_elsewhere;
mod who_reads;
mod xsk;

use rxpath_record::evidence::WindowEvidence;
use rxpath_record::ledger::LedgerUnit;

use crate::claim::Claim;
use crate::view::View;

/// A rule claims, or stays silent if it has nothing to say.
pub type DiagnosisRule = fn(&View) -> Option<Claim>;

/// The rules for this evidence, and what is said when none of them claims.
pub fn of(evidence: &WindowEvidence) -> (&'static [DiagnosisRule], fn(&View) -> Claim) {
    match evidence.ledger.unit {
        LedgerUnit::Segment if !evidence.watched => (segments::ALL, segments::rest),
        _ => (ALL, unknown::rest),
    }
}

/// The rules of trials over UDP, and of watched hosts. Among claims of equal loss, and among claims without loss, the first
/// rule wins.
pub const ALL: &[DiagnosisRule] = &[
    // Losses, in the order of the path.
    qdisc::judge,
    network::judge,
    one_cpu::judge,
    softirq::judge,
    ring::judge,
    backlog::judge,
    xsk::judge,
    filter::judge,
    conntrack::judge,
    protocol::judge,
    no_listener::judge,
    checksum::judge,
    socket::judge,
    udp_memory::judge,
    // A significant TCP loss ranks with the losses. TCP waits rather than loses, so it may limit without a loss.
    tcp::accept::judge,
    tcp::reader::judge,
    tcp::receive::judge,
    tcp::softirq::judge,
    tcp::retransmit::judge,
    // No significant UDP loss: which thread or CPU had no time left.
    victim::judge,
    tick_artefact::judge,
    nothing::judge,
    blocked::judge,
    sender_or_softirq::judge,
    sender::judge,
    sender_spare::judge,
];
