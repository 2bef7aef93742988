//! The sender offered less than asked or than it could, with time left: it was kept from its CPU, or it paused.

use super::blocked::is_blocked;
use super::nothing::reached;
use crate::rules::prelude::*;

pub fn judge(view: &View) -> Option<Claim> {
    let sender = &view.sender;
    let busy = sender.count == 0 || sender.lead.is_full();
    if view.loses() || busy || reached(view) || is_blocked(view) || view.offered_pps() <= 0.0 {
        return None;
    }
    let lead_thread = &sender.lead;
    let of = lead_thread.cpu.map_or_else(|| "a CPU".to_string(), |cpu| format!("CPU {cpu}"));
    let (why, remedy) = if lead_thread.is_kept_waiting() {
        (
            format!(
                "it waited for {of} {} of the window while others ran",
                percent(lead_thread.waiting)
            ),
            "give each sending thread a CPU of its own (`load udp --cpu LIST`), apart from the receiver's and from other programs",
        )
    } else {
        (
            format!(
                "its busiest thread ran only {} of the window and paused by itself",
                percent(lead_thread.demand())
            ),
            "look at what the sender waits for: its schedule (`lateness_us`), its own rate limit, sleeps between sends; without --rate it sends as fast as it can",
        )
    };
    let asked = view
        .target_pps()
        .map_or_else(String::new, |pps| format!(" of the target rate of {}", rate(pps)));
    let sentence = format!(
        "the {} is the limit: it offered {}{asked}; {why}",
        view.sender_name(),
        rate(view.offered_pps())
    );
    Some(
        Claim::new(Stage::Sender, Confidence::Fair, Part::SENDING, sentence)
            .on(lead_thread.cpu_here())
            .because([lossless(view), lead("sender", sender)])
            .because(cpu_and_others(view, lead_thread.at()))
            .because([rates(view)])
            .remedy(remedy),
    )
}
