//! Fragments: what the counters on the path count if the sender's IP fragments its datagrams.
//!
//! Between the sender's IP and the receiver's reassembly every counter counts fragments. One lost fragment loses the
//! whole datagram, once. Only both ends together show how many datagrams were never completed: `FragOKs` counts those
//! whose fragments all entered the link, `ReasmOKs` those that were completed (net/ipv4/ip_output.c `ip_do_fragment`,
//! ip_fragment.c `ip_frag_reasm`; IPv6 alike). `ReasmFails` does not count datagrams: it counts one per time-out and
//! one per fragment that found no memory. If the sender's queue rejects a fragment, its datagram ends there
//! (`FragFails`, and `SndbufErrors`), so the sender's side of the link still counts datagrams.

use super::prelude::*;

/// Headers of IP and UDP.
const HEADERS_V4_BYTES: u32 = 28;
const HEADERS_V6_BYTES: u32 = 48;
/// What a path takes whose MTU is not known (RFC 8200: the least MTU of a link with IPv6).
const LEAST_MTU_BYTES: u32 = 1280;

/// The counters of fragments of one trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fragments {
    /// Datagrams of the sender whose pieces all entered the link.
    pub cut: i64,
    /// Pieces that came to reassembly.
    pub came: i64,
    /// Datagrams that were put together.
    pub made: i64,
    /// Pieces that found no memory, and datagrams whose time was over.
    pub failed: i64,
    /// Whether every datagram that the sender's kernel took was cut.
    pub all: bool,
}

impl Fragments {
    /// `None` where nothing was cut and no piece came. Of a host that others use also where the workload's datagrams cannot
    /// be cut: all fragments are of other programs then.
    pub fn read(view: View<'_>) -> Option<Self> {
        Self::of_all(view).filter(|_| !view.is_shared() || may_be_cut(view))
    }

    /// Those of all programs; `None` where there are none.
    pub fn of_all(view: View<'_>) -> Option<Self> {
        let ip = |side, counter: &str| view.ip(side, counter);
        let cut = ip(PathSide::Tx, "FragOKs");
        let came = ip(PathSide::Rx, "ReasmReqds");
        let pieces = ip(PathSide::Tx, "FragCreates");
        (pieces > 0 || came > 0).then(|| Self {
            cut,
            came,
            made: ip(PathSide::Rx, "ReasmOKs"),
            failed: ip(PathSide::Rx, "ReasmFails"),
            all: cut > 0 && cut == view.udp(PathSide::Tx, "OutDatagrams"),
        })
    }

    /// Whether they are put together where no counter of IP sees it: connection tracking does so for IPv6
    /// (net/ipv6/netfilter/nf_conntrack_reasm.c).
    pub fn joined_unseen(&self, view: View<'_>) -> bool {
        view.input.path.v6 && self.came == 0
    }

    /// Whether both ends tell how many datagrams never became whole.
    fn has_ends(&self, view: View<'_>) -> bool {
        self.cut > 0 && !view.input.sender.raw && !self.joined_unseen(view)
    }

    /// Datagrams that were cut and never became whole.
    fn never_whole(&self) -> i64 {
        self.cut - self.made
    }
}

/// Whether IP may cut the workload's datagrams.
fn may_be_cut(view: View<'_>) -> bool {
    let path = &view.input.path;
    let headers = if path.v6 { HEADERS_V6_BYTES } else { HEADERS_V4_BYTES };
    let payload = view.input.receiver.payload_bytes;
    payload.is_none_or(|bytes| bytes + headers > path.mtu_bytes.unwrap_or(LEAST_MTU_BYTES))
}

/// How many datagrams were offered, where the sender made the fragments itself: its counters count those.
pub(super) fn offered(view: View<'_>) -> Option<Inexact> {
    let fragments = Fragments::read(view)?;
    let sender = &view.input.sender;
    (sender.raw && fragments.came > 0).then(|| {
        let pieces = fragments.came.max(0).unsigned_abs();
        let whole = sender.offered_packets.saturating_sub(pieces);
        Inexact {
            figure: Figure::Offered,
            least_packets: whole + fragments.made.max(0).unsigned_abs(),
            most_packets: Some(sender.offered_packets),
            why: format!(
                "the sender's frames are counted, and {} of them at least were fragments that it made itself",
                grouped(pieces)
            ),
        }
    })
}

/// Whether a loss at this place is one of pieces.
fn counts_pieces(view: View<'_>, place: Place) -> bool {
    match place {
        // A NAPI device counts the packet before its backlog drops it, and the sender does not learn of it.
        Place::Backlog => matches!(view.link(), Link::VethNapi | Link::Nic),
        Place::IngressHook | Place::Ip | Place::ReversePath | Place::Routing => true,
        _ => false,
    }
}

/// What netfilter lost: pieces in front of reassembly, datagrams behind it.
///
/// `vanished` is what came to IP and went nowhere, pieces and datagrams together; `foreign` are the packets of other
/// protocols that IP delivered. Only where every datagram was cut can it be divided.
pub(super) fn behind_reassembly(view: View<'_>, vanished: i64, foreign: i64) -> Option<[i64; 2]> {
    let fragments = Fragments::read(view)?;
    if !fragments.all || !fragments.has_ends(view) {
        return None;
    }
    let behind = fragments.made - (view.ip(PathSide::Rx, "InDelivers") - foreign);
    Some([vanished - behind, behind])
}

/// Makes datagrams of the terms that count pieces, and adds what reassembly lost.
pub(super) fn in_datagrams(view: View<'_>, terms: &mut Vec<Term>, notes: &mut Vec<String>) {
    let Some(fragments) = Fragments::read(view) else { return };
    let pieces = |term: &&mut Term| term.of_pieces || counts_pieces(view, term.place);
    if !fragments.has_ends(view) {
        for term in terms.iter_mut().filter(pieces).filter(|term| term.datagrams != 0) {
            bounded(term, 0, term.credited());
        }
        notes.push(unknown_ends(view, &fragments));
        return;
    }
    if fragments.never_whole() > 0 {
        silently(view, terms);
    }
    let whole = fragments.never_whole();
    if whole < 0 {
        notes.push(format!(
            "{} of {} datagrams that the sender cut became whole: these counters contradict each other",
            signed(fragments.made),
            signed(fragments.cut)
        ));
    }
    let mut left = whole.max(0);
    let losing = terms.iter_mut().filter(pieces).filter(|term| term.datagrams != 0);
    let mut losing: Vec<&mut Term> = losing.collect();
    let alone = losing.len() == 1 && fragments.failed == 0 && fragments.all;
    let any = !losing.is_empty();
    for term in &mut losing {
        let (lost, most) = (term.credited(), term.credited().min(whole.max(0)));
        // What nothing can cause is not credited, and no other place's loss either.
        let caused = term.witness.map_or(lost, |witness| witness.clamp(0, lost));
        if caused != lost {
            notes.push(format!(
                "{} is {} fragments, and what can cause it says {}",
                term.counter,
                signed(lost),
                signed(caused)
            ));
        }
        let share = lost.min(left);
        left -= share;
        bounded(term, share.min(caused), if fragments.all { most } else { lost });
        if alone && caused == lost && share == whole {
            let ends = ends(view);
            let counter = std::mem::replace(&mut term.counter, format!("{ends} (in datagrams)"));
            term.check(format!("{counter} (in fragments)"), lost, lost);
            term.exact = true;
        }
    }
    terms.extend(reassembly(view, &fragments, left, any));
}

/// A queue that drops another packet than the one that came (fq_codel, for example) does not tell the sender: what it
/// dropped beyond the sender's errors was pieces of datagrams that went on.
fn silently(view: View<'_>, terms: &mut Vec<Term>) {
    let queues = [Place::EgressHook, Place::Qdisc, Place::Ring, Place::Backlog];
    let at_queue =
        |term: &&mut Term| queues.contains(&term.place) && !counts_pieces(view, term.place);
    let dropped: i64 = terms.iter_mut().filter(at_queue).map(|term| term.credited()).sum();
    let silent = dropped - view.udp(PathSide::Tx, "SndbufErrors");
    let most = terms.iter_mut().filter(at_queue).max_by_key(|term| term.datagrams);
    let Some(term) = most.filter(|term| silent > 0 && term.datagrams >= silent) else { return };
    term.datagrams -= silent;
    let mut pieces = Term::owned(term.place, term.counter.clone(), silent, Unit::Each(1));
    pieces.of_pieces = true;
    terms.push(pieces);
}

fn ends(view: View<'_>) -> String {
    let ends = [(PathSide::Tx, "FragOKs"), (PathSide::Rx, "ReasmOKs")];
    ends.map(|(side, counter)| view.ip_name(side, counter)).join(" - ")
}

fn bounded(term: &mut Term, datagrams: i64, most: i64) {
    let pieces = term.credited();
    term.bound = Some(format!(
        "{}: {} fragments, of at most {} datagrams: {} is shown",
        term.counter,
        signed(pieces),
        signed(most),
        signed(datagrams)
    ));
    term.datagrams = datagrams;
    term.most = Some(most);
    term.witness = None;
    term.exact = false;
}

/// The datagrams that never became whole, less those that lost a piece at a place before.
fn reassembly(view: View<'_>, fragments: &Fragments, left: i64, others: bool) -> Option<Term> {
    if left == 0 {
        return None;
    }
    let mut formula = ends(view);
    if others {
        formula.push_str(" - (datagrams that lost a fragment at another place)");
    }
    let mut term = Term::derived(Place::Fragments, formula, left, Unit::Each(1), None);
    if others {
        term.exact = false;
        term.most = Some(fragments.never_whole());
        term.bound = Some(format!(
            "{} datagrams never became whole; {} of them or more lost no fragment at another place",
            signed(fragments.never_whole()),
            signed(left)
        ));
    }
    let failed = view.ip_name(PathSide::Rx, "ReasmFails");
    if fragments.failed != 0 {
        // In fragments or time-outs: nothing to agree with.
        term.check(failed, fragments.failed, fragments.failed);
    }
    Some(term)
}

fn unknown_ends(view: View<'_>, fragments: &Fragments) -> String {
    if fragments.joined_unseen(view) {
        return "fragments were put together by connection tracking, which counts none of them: how many datagrams never \
                became whole is not known"
            .into();
    }
    format!(
        "{} fragments came and {} datagrams were made of them; the sender's IP did not cut them, so that how many datagrams \
         they were is not known ({} counts {}, fragments without room and time-outs together)",
        signed(fragments.came),
        signed(fragments.made),
        view.ip_name(PathSide::Rx, "ReasmFails"),
        signed(fragments.failed)
    )
}
