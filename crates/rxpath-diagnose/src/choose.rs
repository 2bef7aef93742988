//! Which claim becomes the verdict, its confidence, and what is said of the other claims.

use rxpath_core::SortFew;
use rxpath_record::verdict::{Confidence, DiagnosisVerdict, EvidenceLine, Stage};

use crate::claim::Claim;
use crate::headroom;
use crate::lines::{drop_line, elsewhere, line, rates, tcp};
use crate::part::Part;
use crate::remedy::Remedy;
use crate::stages::{StageProtocol, check_rules, info};
use crate::view::View;

/// The verdict from all claims: the largest loss decides; without a loss, the first rule that claimed; at last `rest`.
pub fn verdict(view: &View, mut claims: Vec<Claim>, rest: Claim) -> DiagnosisVerdict {
    // A stable sort: equal losses keep the order of the rules.
    claims.sort_few_by_key(|claim| std::cmp::Reverse(claim.lost_packets));
    let first = match claims.first() {
        Some(claim) if claim.lost_packets >= rest.lost_packets => claims.remove(0),
        _ => rest,
    };
    let next = claims.into_iter().map(|claim| claim.next);
    let mut next: Vec<String> = next.filter(|next| !next.is_empty()).collect();
    if next.is_empty() {
        next.push(headroom::of(view, first.stage));
    }
    let gaps: Vec<_> = view.gaps_in(first.needs).collect();
    let confidence = gaps.iter().map(|gap| gap.cap).fold(first.confidence, Confidence::min);
    let sentence = format!("{}{}", about(view, &first), first.sentence);
    let besides = besides(view, &first);
    let mut evidence = first.evidence;
    evidence.extend(besides);
    let possible = view.possible_losses().into_iter().map(|(drop, _)| drop_line(view, drop));
    let unsaid: Vec<_> = possible.filter(|line| !evidence.contains(line)).collect();
    evidence.extend(unsaid);
    evidence.extend(gaps.iter().map(|gap| line(format!("missing: {}", gap.text), gap.source)));
    DiagnosisVerdict {
        stage: first.stage,
        cpu: first.cpu,
        confidence,
        sentence,
        evidence,
        remedies: first.remedies.into_iter().map(|remedy| in_words(view, remedy)).collect(),
        check_rules: check_rules(first.stage, view.raw.ledger.unit),
        next,
        paired_trial: first.paired_trial,
    }
}

fn in_words(view: &View, remedy: Remedy) -> String {
    if view.raw.watched { remedy.live } else { remedy.of_a_trial }.into_owned()
}

/// Of a watched host: that the sentence is about UDP, and of which service, where it is.
fn about(view: &View, claim: &Claim) -> String {
    let of_udp = match info(claim.stage).protocol {
        StageProtocol::Udp => true,
        // A loss that belongs to no stage belongs to IP: packets of any protocol.
        StageProtocol::Said => {
            let at_sockets = claim.needs.contains(&Part::Sockets);
            claim.stage == Stage::Unknown && view.offered_packets() > 0 && at_sockets
        }
        StageProtocol::Tcp | StageProtocol::Any => false,
    };
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

/// On a watched host: the state of the other protocol, and packets to other namespaces.
fn besides(view: &View, claim: &Claim) -> Vec<EvidenceLine> {
    // Its own lines say it already.
    if !view.raw.watched || claim.stage == Stage::Nothing {
        return elsewhere(view).filter(|_| view.raw.watched).into_iter().collect();
    }
    let udp = view.offered_packets() > 0;
    let mut lines = match info(claim.stage).protocol {
        StageProtocol::Tcp if udp => vec![rates(view)],
        _ => Vec::new(),
    };
    lines.extend(tcp::summary(view));
    lines.retain(|line| !claim.evidence.contains(line));
    lines.extend(elsewhere(view));
    lines
}
