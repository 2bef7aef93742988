//! A stage of the path: the verdict with its remedies, then the stage's function and its losses.

use rxpath_core::number::si;
use rxpath_record::verdict::DiagnosisVerdict;
use rxpath_record::watch::{PathStage, StageRow, WatchFrame};

use crate::tui::sheet::stage_name;

pub(super) fn words(stage: Option<&StageRow>, frame: &WatchFrame) -> Vec<String> {
    let mut words = Vec::new();
    let verdict = frame.verdict.as_ref();
    if let Some(verdict) = verdict {
        words.push(verdict.headline());
        words.extend(verdict.remedies.iter().map(|remedy| format!("to change: {remedy}")));
    }
    words.extend(stage.map(told));
    words.extend(verdict.map(grounds).unwrap_or_default());
    words
}

fn grounds(verdict: &DiagnosisVerdict) -> Vec<String> {
    let lines = verdict.evidence.iter();
    let mut words: Vec<String> =
        lines.map(|line| format!("- {} [{}]", line.text, line.source)).collect();
    words.extend(verdict.next.iter().map(|next| format!("next limit: {next}")));
    if !verdict.check_rules.is_empty() {
        words.push(format!("rules of check: {}", verdict.check_rules.join(", ")));
    }
    words
}

fn told(stage: &StageRow) -> String {
    let mut words = format!("{}: {}", stage_name(stage.stage), what(stage.stage));
    if let Some(lost) = stage.drops_pps.value().filter(|lost| **lost > 0.0) {
        words += &format!(
            " It lost {} packets/s ({}); tab 6 names each loss.",
            si(*lost),
            stage.drops_source
        );
    }
    if !stage.note.is_empty() {
        words += &format!(" Now: {}.", stage.note);
    }
    words
}

/// What each stage does.
fn what(stage: PathStage) -> &'static str {
    match stage {
        PathStage::Nic => {
            "the device writes packets into the ring; without a free descriptor it drops (missed, fifo)."
        }
        PathStage::Irq => {
            "the interrupt starts a softirq that polls the ring, 64 packets at most each time (napi_poll, net_rx_action)."
        }
        PathStage::Gro => {
            "segments of a flow are merged before the protocols see them (dev_gro_receive)."
        }
        PathStage::Backlog => {
            "packets that RPS sends to another CPU wait here, net.core.netdev_max_backlog at most (enqueue_to_backlog)."
        }
        PathStage::Ip => {
            "netfilter and IP: header checks, routing, reverse path (ip_rcv, ip_local_deliver)."
        }
        PathStage::Socket => {
            "the packet is charged to the socket's receive buffer, or dropped when that is full \
             (__udp_enqueue_schedule_skb); a request for a connection waits in the listener's queue (tcp_conn_request)."
        }
        PathStage::Application => {
            "the reading program: what it does not read in time fills the socket's queue."
        }
    }
}
