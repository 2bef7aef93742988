//! The asked rate was reached and nothing noteworthy was lost.

use rxpath_record::verdict::{Confidence, Stage};

use crate::claim::{Claim, Part};
use crate::lines::{lead, line, lossless, rates};
use crate::thresholds::RATE_REACHED_RATIO;
use crate::view::View;
use crate::wording::rate;

/// Whether the sender offered what it was asked for.
pub fn reached(view: &View) -> bool {
    view.asked_pps().is_some_and(|asked| view.offered_pps() >= RATE_REACHED_RATIO * asked)
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
        line(text, "sender's and receiver's own counts in the window")
    });
    Some(
        Claim::new(
            Stage::Nothing,
            if sure { Confidence::Strong } else { Confidence::Fair },
            &[Part::Ledger, Part::Window],
            format!(
                "nothing limits at this rate: the asked {} were offered and delivered without noteworthy loss",
                rate(view.asked_pps()?)
            ),
        )
        .because([lossless(view), rates(view)])
        .because(lag)
        .because(reader)
        .cure("to find the limit ask for more (`load udp --rate`), or leave the rate out"),
    )
}
