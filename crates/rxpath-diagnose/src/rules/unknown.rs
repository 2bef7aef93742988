//! The cases that no other rule knows: names what is missing. The one rule that always claims, after all others.

use rxpath_record::ledger::Balance;

use crate::rules::prelude::*;

const EVERYTHING: &[Part] =
    &[Part::Ledger, Part::Window, Part::Cpus, Part::Senders, Part::Readers, Part::Sockets];

pub fn rest(view: &View) -> Claim {
    if view.raw.watched && view.offered_packets() == 0 && !view.has_tcp() {
        return quiet(view);
    }
    if !view.raw.watched && view.offered_packets() == 0 && view.offered_pps() <= 0.0 {
        return unknown("nothing was offered: there is nothing to explain".into())
            .remedy(Remedy::start_traffic(false));
    }
    if let Some(lost) = view.loss_at(Place::SocketBuffer).filter(|_| view.reader.count == 0) {
        let sentence = format!(
            "the socket's queue overflowed ({} of the offered datagrams) and the receiver's CPU time was not measured: it was too slow, off its CPU, or stalled",
            percent(view.of_offered(lost))
        );
        return unknown(sentence)
                .losing(lost)
                .because(drops(view, Place::SocketBuffer))
                .because(services(view))
                .because([rates(view)])
                .remedy("measure the receiver's threads: /proc/PID/task/*/schedstat of its process, by the same user or root");
    }
    if let Some(claim) = unbalanced(view).or_else(|| maybe_lost(view)) {
        return claim;
    }
    // Always speaks, behind every other claim. Losses that only add up to something have no rule of their own.
    let sentence = if view.loses() {
        "the limit is not known: a little was lost at several places, and none of them stands out"
    } else {
        "the limit is not known: little or nothing was lost, and the evidence does not show who had no time left"
    };
    unknown(sentence.into())
        .because(traffic(view))
        .remedy("measure what is missing above and repeat with a longer window")
}

/// No loss is sure, and within the bounds of a counter there may be one.
fn maybe_lost(view: &View) -> Option<Claim> {
    let (drop, most) = view.possible_losses().into_iter().next().filter(|_| !view.loses())?;
    let sentence = format!(
        "the limit is not known: up to {} of {} offered datagrams may be lost at {}",
        count(most.min(view.offered_packets())),
        count(view.offered_packets()),
        drop.place.words().noun
    );
    Some(
        unknown(sentence)
            .because([drop_line(view, drop), rates(view)])
            .remedy(format!("find whose packets were dropped: `{}` counted them", drop.counter)),
    )
}

/// Datagrams that vanished without a counter weigh like a loss; those that came and were never sent are none.
fn unbalanced(view: &View) -> Option<Claim> {
    let outweighs = |packets| view.is_loss(packets) && packets > view.lost_packets();
    match view.raw.ledger.balance() {
        Balance::Missing(packets) if outweighs(packets) => {
            let share = percent(view.of_offered(packets));
            let sentence = format!(
                "the limit is not known: {share} of the offered datagrams are in no counter"
            );
            Some(unknown(sentence)
                .losing(packets)
                .because([rates(view)])
                .remedy("repeat on a link without other traffic; if it stays, a counter of this kernel or device is missing from the ledger"))
        }
        Balance::Excess(packets) if outweighs(packets) => {
            let sentence = format!(
                "the limit is not known: {} more datagrams arrived than were sent",
                count(packets)
            );
            Some(unknown(sentence)
                .because([rates(view)])
                .remedy("look for what duplicates packets (nft `dup`, a tap, a second sender), and repeat without it"))
        }
        _ => None,
    }
}

/// Nothing came to a watched host: what was looked at, and where packets went instead.
fn quiet(view: &View) -> Claim {
    let span = span(view.window_s.unwrap_or(0.0));
    let segments = match view.raw.tcp.as_ref().map_or(0, |tcp| tcp.received_segments) {
        0 => "no TCP segment".to_owned(),
        1 => "1 TCP segment".to_owned(),
        few => format!("{} TCP segments", count(few)),
    };
    let sentence = format!(
        "no traffic: no UDP datagram and {segments} arrived in {span} in this network namespace{}",
        named(view)
    );
    // It is an answer about a window, not about the threads and sockets that nobody used.
    let claim = Claim::new(Stage::Unknown, Confidence::Weak, &[Part::Window], sentence);
    let strays = (view.lost_packets() > 0).then(|| lossless(view));
    let elsewhere = view.raw.elsewhere_pps.is_some();
    claim.because(strays).remedy(Remedy::start_traffic(elsewhere))
}

fn unknown(sentence: String) -> Claim {
    Claim::new(Stage::Unknown, Confidence::Weak, EVERYTHING, sentence)
}
