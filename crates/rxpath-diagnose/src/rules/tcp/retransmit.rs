//! Segments are lost or overtaken on the network: in which direction, and whose connections.

use rxpath_record::evidence::{TcpService, TcpUse};

use crate::lines::tcp::{SENT_AGAIN, counters, moved, service, sum};
use crate::rules::prelude::*;

/// Segments that arrived ahead of a gap (net/ipv4/tcp_input.c `tcp_data_queue_ofo`).
const GAPS: &str = "TcpExt.TCPOFOQueue";
/// Segments that arrived twice (net/ipv4/tcp_input.c `tcp_dsack_set`).
const TWICE: [&str; 2] = ["TcpExt.TCPDSACKOldSent", "TcpExt.TCPDSACKOfoSent"];

/// Where segments get lost, as this side sees it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Towards this host.
    In,
    /// Towards this host, and they were there: what was lost is the acknowledgements, or the far end was impatient.
    Twice,
    /// From this host.
    Out,
}

/// The most of one kind: so many of so many.
fn most(tcp: &TcpUse) -> (Way, u64, u64) {
    let again = moved(tcp, SENT_AGAIN);
    let ways = [
        (Way::In, moved(tcp, GAPS), tcp.received_segments),
        (Way::Twice, sum(tcp, &TWICE), tcp.received_segments),
        (Way::Out, again, tcp.sent_segments.saturating_add(again)),
    ];
    let share = |(_, segments, of): &(Way, u64, u64)| *segments as f64 / (*of).max(1) as f64;
    let larger = |a: (Way, u64, u64), b| if share(&b) > share(&a) { b } else { a };
    larger(larger(ways[0], ways[1]), ways[2])
}

/// The service that has half of it or more.
fn whose(tcp: &TcpUse, way: Way, segments: u64) -> Option<&TcpService> {
    let of = |one: &TcpService| match way {
        Way::In => one.out_of_order_segments,
        Way::Out => one.retransmitted_segments,
        Way::Twice => 0,
    };
    let worst = tcp.services.iter().max_by_key(|one| of(one))?;
    (of(worst) > 0 && of(worst) >= segments.div_ceil(2)).then_some(worst)
}

pub fn judge(view: &View) -> Option<Claim> {
    let tcp = view.raw.tcp.as_ref()?;
    let (way, segments, of) = most(tcp);
    if !view.is_noteworthy_share(segments, of, TCP_AGAIN_RATIO) {
        return None;
    }
    let share = percent(segments as f64 / of.max(1) as f64);
    let at = whose(tcp, way, segments)
        .map_or_else(String::new, |one| format!(", most of them at {}", service(one)));
    let sentence = match way {
        Way::In => format!(
            "TCP: segments are lost or reordered on the way to this host: {share} of those that arrived were ahead of a gap{at}"
        ),
        Way::Twice => format!(
            "TCP: far ends send again what had arrived: {share} of the segments that arrived came twice; acknowledgements of this host are lost or late"
        ),
        Way::Out => format!(
            "TCP: segments are lost on the way from this host: it sent {share} of them again{at}"
        ),
    };
    // What this host loses itself makes the same gaps.
    let own = view.lost_at(Place::Ring).saturating_add(view.lost_at(Place::Backlog));
    let own = (own > 0).then(|| {
        let text = format!(
            "this host lost {} packets itself, in rings and backlogs: some of the gaps are those",
            count(own)
        );
        line(text, "the counters of rings and backlogs")
    });
    let claim = Claim::new(
        Stage::TcpRetransmit,
        if own.is_some() { Confidence::Weak } else { Confidence::Fair },
        &[Part::Window],
        sentence.clone(),
    )
    .because(counters(tcp, &[GAPS, TWICE[0], TWICE[1], SENT_AGAIN]))
    .because(own)
    .next(sentence);
    Some(match way {
        Way::In => claim
            .remedy("find where they are lost: the drops of this host's devices (`ethtool -S IF`), of the switch's port, of the sender's qdisc; reordering shows as gaps too, and comes from several paths or queues")
            .remedy("TCP itself slows down for it: no setting of the receiver makes up for lost segments"),
        Way::Twice => claim
            .remedy("look at the reverse path: drops of this host's qdisc (`tc -s qdisc`), asymmetric routes, acknowledgements that are delayed or filtered"),
        Way::Out => claim
            .remedy("find where they are lost: this host's qdisc (`tc -s qdisc show dev IF`), the far end's rings and sockets, the network between (`ss -ti` shows retrans by connection)")
            .remedy("a paced sender (qdisc `fq`) overflows fewer queues on the way"),
    })
}
