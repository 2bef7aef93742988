//! Which claim becomes the verdict, how sure it may be, and what is said of the others.

use rxpath_record::verdict::{Confidence, Stage, Verdict};

use crate::claim::{Claim, Part};
use crate::lines::line;
use crate::view::View;
use crate::{check, headroom};

/// The verdict out of all claims: the largest loss decides; without one, the first rule that spoke; at last `rest`.
pub fn verdict(view: &View, mut claims: Vec<Claim>, rest: Claim) -> Verdict {
    // A stable sort: equal losses keep the order of the rules.
    claims.sort_by_key(|claim| std::cmp::Reverse(claim.lost_packets));
    let first = match claims.first() {
        Some(claim) if claim.lost_packets >= rest.lost_packets => claims.remove(0),
        _ => rest,
    };
    let mut next: Vec<String> = claims
        .iter()
        .filter(|claim| !claim.next.is_empty())
        .map(|claim| claim.next.clone())
        .collect();
    if next.is_empty() {
        next.push(headroom::of(view, first.stage));
    }
    let gaps: Vec<_> = view.gaps_in(first.needs).collect();
    let confidence = gaps.iter().map(|gap| gap.cap()).fold(first.confidence, Confidence::min);
    let sentence = format!("{}{}", about(view, &first), first.sentence);
    let mut evidence = first.evidence;
    evidence.extend(gaps.iter().map(|gap| line(format!("missing: {}", gap.text), gap.source)));
    Verdict {
        stage: first.stage,
        cpu: first.cpu,
        confidence,
        sentence,
        evidence,
        remedies: first.remedies,
        check_rules: check::rules(first.stage).iter().map(|id| (*id).to_owned()).collect(),
        next,
        paired_trial: first.paired_trial,
    }
}

/// Of a watched host: that the sentence is about UDP, and of which service, where it is.
fn about(view: &View, claim: &Claim) -> String {
    let of_udp = !matches!(
        claim.stage,
        Stage::Softirq
            | Stage::OneCpu
            | Stage::RpsMissing
            | Stage::RpsPointless
            | Stage::Backlog
            | Stage::Ring
            | Stage::Filter
            | Stage::ConntrackFull
            | Stage::AcceptQueue
            | Stage::TcpReceive
            | Stage::Victim
            | Stage::TickArtefact
    );
    // A loss that is no stage's is IP's: packets of any protocol.
    let at_sockets = claim.needs.contains(&Part::Sockets);
    let of_udp = of_udp && (claim.stage != Stage::Unknown || claim.lost_packets == 0 || at_sockets);
    if !view.raw.watched || !of_udp {
        return String::new();
    }
    let at_socket = claim.needs.contains(&Part::Sockets) && claim.lost_packets > 0;
    let at_socket = at_socket && view.services_lost_most();
    match view.services.first().filter(|_| at_socket) {
        Some(service) => format!("UDP, {}: ", service.name()),
        None => "UDP: ".into(),
    }
}
