//! Losses in UDP: no listener, checksum, receive buffer, memory, other errors.
//!
//! `InErrors` moves with each of the last four and owns only what none of them names. A checksum is verified
//! at the socket lookup up to 76 bytes of UDP length (`CHECKSUM_BREAK`, `include/linux/skbuff.h`): then no
//! socket's drops move. Longer datagrams are verified when the reader reaches them: `InCsumErrors` and the
//! socket's drops move together, and until then they take up receive buffer. Socket drops therefore own
//! nothing: they say which socket lost, and uncover what `InErrors` misses. On a host that others use too they show which
//! part of the counters is the workload's.

use super::arriving::check_reason;
use super::prelude::*;

/// UDP header.
const HEADER_BYTES: u32 = 8;
/// Longest UDP length (with header) that is verified at the lookup.
const CHECKSUM_BREAK: u32 = 76;

pub(super) fn terms(view: View<'_>, units: &Units) -> Vec<Term> {
    // A plain socket takes an aggregate apart before it queues (`udp_queue_rcv_skb`); a UDP_GRO socket does not.
    let unit = if view.input.receiver.gro { units.ip } else { Unit::Each(1) };
    let udp = Udp::read(view);
    vec![
        no_listener(view, units),
        checksum(view, &udp),
        socket_buffer(view, &udp, unit),
        memory(view, &udp, unit),
        uncounted(view, &udp, unit),
        other(view, &udp, unit),
    ]
}

struct Udp {
    errors: i64,
    rcvbuf: i64,
    memory: i64,
    checksum: i64,
    /// Drops of all sockets less the checksum errors that are among them.
    sockets: Option<i64>,
    /// Drops of all sockets, where the counters have those of other programs too.
    own: Option<i64>,
    /// Whether the sockets may have dropped more.
    is_sampled: bool,
    /// Whether checksums are verified by the reader.
    late: bool,
}

impl Udp {
    fn read(view: View<'_>) -> Self {
        let of = |counter| view.udp(PathSide::Rx, counter);
        let receiver = &view.input.receiver;
        let checksum = of("InCsumErrors");
        let sum = receiver.socket_drops.as_ref().map(|drops| drops.iter().sum::<u64>() as i64);
        let named = of("RcvbufErrors") + of("MemErrors");
        let late = match receiver.payload_bytes {
            Some(bytes) => bytes + HEADER_BYTES > CHECKSUM_BREAK,
            // Unknown: they are among the socket's drops if those exceed the rest.
            None => sum.is_some_and(|sum| checksum > 0 && sum > named),
        };
        let among = if late { checksum } else { 0 };
        let udp = Self {
            errors: of("InErrors"),
            rcvbuf: of("RcvbufErrors"),
            memory: of("MemErrors"),
            checksum,
            sockets: sum.map(|sum| (sum - among).max(0)),
            own: None,
            is_sampled: receiver.drops_are_sampled,
            late,
        };
        let others = |own: &i64| view.is_shared() && *own < udp.at_sockets() + among;
        Self { own: sum.filter(others), ..udp }
    }

    fn named(&self) -> i64 {
        self.rcvbuf + self.memory + self.checksum
    }

    /// Errors that no counter names. Parts above the whole are left to the parts: they own their drops.
    fn unnamed(&self) -> i64 {
        (self.errors - self.named()).max(0)
    }

    /// Leaves a term what the workload's sockets can have of its counter; `other` is what else of their drops may be.
    fn of_own(&self, term: &mut Term, other: i64, unit: Unit) {
        let Some(own) = self.own.filter(|_| term.datagrams > 0) else { return };
        let counted = match term.place {
            Place::SocketBuffer => self.rcvbuf,
            Place::UdpMemory => self.memory,
            _ => self.unnamed(),
        };
        let late = if self.late { self.checksum } else { 0 };
        let least = (own - other - late).clamp(0, counted);
        let most = if self.is_sampled { counted } else { own.min(counted) };
        let (datagrams, exact) = unit.least(least);
        term.counter = format!("SO_MEMINFO drops of the workload, within {}", term.counter);
        (term.datagrams, term.most, term.exact) =
            (datagrams, unit.most(most), exact && least == most);
        let why = "other programs' sockets dropped datagrams too";
        term.bound = (!term.exact).then(|| {
            let [least, most] = [least, most].map(signed);
            format!("{}: between {least} and {most} packets were dropped: {why}", term.counter)
        });
    }

    /// Errors that happened at a socket, by the better of the two ways to count them.
    fn at_sockets(&self) -> i64 {
        self.errors.max(self.named()) - self.checksum
    }
}

/// Datagrams with a wrong checksum that the workload's sockets dropped, at least: as many of their drops as no other counter of
/// drops at sockets can have. There may be more, because connection tracking verifies checksums before the sockets
/// (net/netfilter/utils.c `nf_ip_checksum`).
pub(super) fn damaged_at_sockets(view: View<'_>) -> i64 {
    let udp = Udp::read(view);
    let drops = view.input.receiver.socket_drops.iter().flatten().sum::<u64>() as i64;
    let other = udp.rcvbuf + udp.memory + udp.unnamed();
    if udp.late { (drops - other).min(udp.checksum).max(0) } else { 0 }
}

fn no_listener(view: View<'_>, units: &Units) -> Term {
    let name = view.udp_name(PathSide::Rx, "NoPorts");
    let packets = view.get(&name);
    let mut term = Term::owned(Place::NoListener, name, packets, units.ip);
    check_reason(view, &mut term, "NO_SOCKET", packets);
    term
}

fn checksum(view: View<'_>, udp: &Udp) -> Term {
    let name = view.udp_name(PathSide::Rx, "InCsumErrors");
    let mut term = Term::owned(Place::Checksum, name, udp.checksum, Unit::Each(1));
    check_errors(view, &mut term, udp);
    check_reason(view, &mut term, "UDP_CSUM", udp.checksum);
    term
}

fn socket_buffer(view: View<'_>, udp: &Udp, unit: Unit) -> Term {
    let name = view.udp_name(PathSide::Rx, "RcvbufErrors");
    let mut term = Term::owned(Place::SocketBuffer, name, udp.rcvbuf, unit);
    udp.of_own(&mut term, udp.memory, unit);
    check_errors(view, &mut term, udp);
    if let Some(drops) = &view.input.receiver.socket_drops {
        let sum = drops.iter().sum::<u64>() as i64;
        let late = if udp.late { udp.checksum } else { 0 };
        // Drops above these are a place of their own, drops below them are other programs'.
        let is_part = udp.own.is_some() || udp.is_sampled;
        let least = if is_part { 0 } else { udp.at_sockets() + late };
        term.check("SO_MEMINFO drops", sum, sum.max(least));
    }
    check_reason(view, &mut term, "SOCKET_RCVBUFF", udp.rcvbuf);
    term
}

fn memory(view: View<'_>, udp: &Udp, unit: Unit) -> Term {
    let name = view.udp_name(PathSide::Rx, "MemErrors");
    let mut term = Term::owned(Place::UdpMemory, name, udp.memory, unit);
    udp.of_own(&mut term, udp.rcvbuf, unit);
    check_errors(view, &mut term, udp);
    check_reason(view, &mut term, "PROTO_MEM", udp.memory);
    term
}

/// Drops that only the socket counted.
///
/// **Source** Linux 6.18 `__udp_enqueue_schedule_skb` (`net/ipv4/udp.c`): datagrams that the memory limit
/// refuses while the per-node queue is flushed move `sk_drops` alone; fixed upstream by 820990d66577.
fn uncounted(view: View<'_>, udp: &Udp, unit: Unit) -> Term {
    let formula = format!(
        "SO_MEMINFO drops - ({} - {})",
        view.udp_name(PathSide::Rx, "InErrors"),
        view.udp_name(PathSide::Rx, "InCsumErrors")
    );
    let read = view.knows(&view.udp_name(PathSide::Rx, "InErrors"));
    let sockets = udp.sockets.filter(|_| read);
    let only = sockets.map_or(0, |sockets| (sockets - udp.at_sockets()).max(0));
    // Where InErrors owns drops of its own, being less than the sockets' makes it doubtful.
    let witness = (udp.errors > udp.named()).then_some(0);
    Term::derived(Place::UdpMemoryUncounted, formula, only, unit, witness)
}

/// `InErrors` less its named parts. Nothing but a socket that refuses datagrams itself causes it in a lab;
/// where none does, it would only hide a wrong counter, so its witness is zero.
fn other(view: View<'_>, udp: &Udp, unit: Unit) -> Term {
    let counters = ["InErrors", "RcvbufErrors", "MemErrors", "InCsumErrors"];
    let formula = counters.map(|counter| view.udp_name(PathSide::Rx, counter)).join(" - ");
    let witness = (!view.input.receiver.may_refuse).then_some(0);
    let rest = udp.unnamed();
    // A socket of another program may refuse datagrams.
    let own = if view.is_shared() && witness.is_some() { 0 } else { rest };
    let mut term = Term::derived(Place::UdpOther, formula, own, unit, witness);
    udp.of_own(&mut term, udp.rcvbuf + udp.memory, unit);
    check_reason(view, &mut term, "SOCKET_FILTER", rest);
    term
}

fn check_errors(view: View<'_>, term: &mut Term, udp: &Udp) {
    let errors = view.udp_name(PathSide::Rx, "InErrors");
    if udp.errors != 0 || term.datagrams != 0 {
        let may_refuse = view.input.receiver.may_refuse || view.is_shared();
        let expected =
            if may_refuse && udp.errors > udp.named() { udp.errors } else { udp.named() };
        term.check(errors, udp.errors, expected);
    }
}
