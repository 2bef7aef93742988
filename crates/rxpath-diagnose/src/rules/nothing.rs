//! The target rate was reached and nothing significant was lost.

use crate::lines::tcp::in_short;
use crate::rules::prelude::*;

/// Whether the sender offered what it was asked for. On a watched host what comes is what was wanted.
pub fn reached(view: &View) -> bool {
    if view.raw.watched {
        return view.offered_pps() > 0.0 || view.has_tcp();
    }
    view.target_pps().is_some_and(|target| view.offered_pps() >= RATE_REACHED_RATIO * target)
}

fn said(view: &View) -> Option<String> {
    if view.raw.watched {
        let udp = (view.offered_pps() > 0.0).then(|| udp(view));
        let tcp = in_short(view);
        let of = match (&udp, &tcp) {
            (Some(_), Some(_)) => "UDP and TCP",
            (None, Some(_)) => "TCP",
            _ => "UDP",
        };
        let parts: Vec<String> = udp.into_iter().chain(tcp).collect();
        return Some(format!("{of}: nothing limits: {}", parts.join("; ")));
    }
    let rate = rate(view.target_pps()?);
    let sure = if view.possible_losses().is_empty() { "" } else { " that is sure" };
    Some(format!(
        "nothing limits at this rate: the target rate of {rate} was offered and delivered without significant loss{sure}"
    ))
}

/// What became of UDP's datagrams on a watched host.
fn udp(view: &View) -> String {
    if delivered(view) {
        return format!(
            "{} arrived and were delivered without significant loss",
            rate(view.offered_pps())
        );
    }
    let (came, span) = (datagrams(view.offered_packets()), span(view.raw.window_s));
    format!("{came} arrived in {span}, and too few were lost to be a limit")
}

/// The ledger says that nothing was lost; a delivered rate far below would contradict it.
fn delivered(view: &View) -> bool {
    view.delivered_pps() >= RATE_REACHED_RATIO * view.offered_pps()
}

pub fn judge(view: &View) -> Option<Claim> {
    if view.loses() || !reached(view) {
        return None;
    }
    let delivered = delivered(view);
    let sure = delivered && view.lost_packets() == 0 && view.possible_losses().is_empty();
    let reader = (view.reader.count > 0).then(|| lead("receiver", &view.reader));
    let lag = (!delivered && view.lost_packets() == 0).then(|| {
        let text = "the application read less in the window than was offered: a queue grew, or its end cut a burst";
        line(text, counted_by(view))
    });
    Some(
        Claim::new(
            Stage::Nothing,
            Confidence::strong_if(sure),
            &[Part::Ledger, Part::Window, Part::Places],
            said(view)?,
        )
        .because(traffic(view))
        .because(lag)
        .because(reader)
        .remedy(if view.raw.watched && view.gaps_in(&[Part::Places]).next().is_some() {
            "look at the places that could not be read, named above: what is lost there is not seen here".into()
        } else {
            Remedy::MORE_LOAD
        }),
    )
}
