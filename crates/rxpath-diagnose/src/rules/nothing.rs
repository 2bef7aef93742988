//! The asked rate was reached and nothing noteworthy was lost.

use rxpath_record::verdict::{Confidence, Stage};

use crate::claim::{Claim, Part};
use crate::lines::{counted_by, lead, line, lossless, rates};
use crate::thresholds::RATE_REACHED_RATIO;
use crate::view::View;
use crate::wording::rate;

/// Whether the sender offered what it was asked for.
pub fn reached(view: &View) -> bool {
    view.asked_pps().is_some_and(|asked| view.offered_pps() >= RATE_REACHED_RATIO * asked)
}

fn said(view: &View) -> Option<String> {
    let rate = rate(view.asked_pps()?);
    let what = if view.raw.watched {
        format!("{rate} arrived and were delivered")
    } else {
        format!("the asked {rate} were offered and delivered")
    };
    Some(format!("nothing limits at this rate: {what} without noteworthy loss"))
}

pub fn judge(view: &View) -> Option<Claim> {
    if view.loses() || !reached(view) {
        return None;
    }
    // The ledger says that nothing was lost; a delivered rate far below would contradict it.
    let delivered = view.delivered_pps() >= RATE_REACHED_RATIO * view.offered_pps();
    let sure = delivered && view.lost_packets() == 0;
    let reader = (view.reader.count > 0).then(|| lead("receiver", &view.reader));
    let lag = (!delivered).then(|| {
        let text = "the application read less in the window than was offered: a queue grew, or its end cut a burst";
        line(text, counted_by(view))
    });
    Some(
        Claim::new(
            Stage::Nothing,
            if sure { Confidence::Strong } else { Confidence::Fair },
            &[Part::Ledger, Part::Window],
            said(view)?,
        )
        .because([lossless(view), rates(view)])
        .because(lag)
        .because(reader)
        .cure("to find the limit ask for more (`load udp --rate`), or leave the rate out"),
    )
}
