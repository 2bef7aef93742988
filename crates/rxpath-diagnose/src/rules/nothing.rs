//! The asked rate was reached and nothing noteworthy was lost.

use rxpath_record::verdict::{Confidence, Stage};

use crate::claim::{Claim, Part};
use crate::lines::{counted_by, lead, line, lossless, rates};
use crate::thresholds::RATE_REACHED_RATIO;
use crate::view::View;
use crate::wording::{datagrams, rate, span};

/// Whether the sender offered what it was asked for.
pub fn reached(view: &View) -> bool {
    view.asked_pps().is_some_and(|asked| view.offered_pps() >= RATE_REACHED_RATIO * asked)
}

fn said(view: &View) -> Option<String> {
    let rate = rate(view.asked_pps()?);
    let what = if view.raw.watched && !delivered(view) {
        let (came, span) = (datagrams(view.offered_packets()), span(view.raw.window_s));
        return Some(format!(
            "nothing limits: {came} arrived in {span}, and too few were lost to be a limit"
        ));
    } else if view.raw.watched {
        format!("{rate} arrived and were delivered")
    } else {
        format!("the asked {rate} were offered and delivered")
    };
    Some(format!("nothing limits at this rate: {what} without noteworthy loss"))
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
    let sure = delivered && view.lost_packets() == 0;
    let reader = (view.reader.count > 0).then(|| lead("receiver", &view.reader));
    let lag = (!delivered && view.lost_packets() == 0).then(|| {
        let text = "the application read less in the window than was offered: a queue grew, or its end cut a burst";
        line(text, counted_by(view))
    });
    Some(
        Claim::new(
            Stage::Nothing,
            if sure { Confidence::Strong } else { Confidence::Fair },
            &[Part::Ledger, Part::Window, Part::Places],
            said(view)?,
        )
        .because([lossless(view), rates(view)])
        .because(lag)
        .because(reader)
        .cure(if view.raw.watched {
            "nothing for this traffic; watch again while there is more, or longer (`--duration`)"
        } else {
            "to find the limit ask for more (`load udp --rate`), or leave the rate out"
        }),
    )
}
