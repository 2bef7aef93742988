//! What the selected row means and what to do about it, in plain words.

use rxpath_record::verdict::Verdict;
use rxpath_record::watch::Frame;

use super::sheet::{Row, Tab};

/// The explanation: paragraphs.
pub fn explain(tab: Tab, row: Option<&Row>, frame: &Frame) -> Vec<String> {
    let mut words = vec![about(tab).to_owned()];
    if tab == Tab::Path {
        words.extend(frame.verdict.as_ref().map(verdict).unwrap_or_default());
        let stage = row.and_then(|row| STAGES.iter().find(|(name, _)| *name == row.id));
        words.extend(stage.map(|(name, what)| format!("{name}: {what}")));
        return words;
    }
    if tab == Tab::Drops
        && let Some(row) = row
    {
        let reason = REASONS.iter().find(|(reason, _)| row.id.contains(reason));
        words.extend(reason.map(|(reason, what)| format!("{reason}: {what}")));
    }
    words
}

fn verdict(verdict: &Verdict) -> Vec<String> {
    let sure = format!("{:?}", verdict.confidence).to_lowercase();
    let mut words = vec![format!("{} ({sure} evidence)", verdict.sentence)];
    words.extend(verdict.evidence.iter().map(|line| format!("- {} [{}]", line.text, line.source)));
    words.extend(verdict.remedies.iter().map(|remedy| format!("to change: {remedy}")));
    words.extend(verdict.next.iter().map(|next| format!("next limit: {next}")));
    if !verdict.check_rules.is_empty() {
        words.push(format!("rules of check: {}", verdict.check_rules.join(", ")));
    }
    words
}

fn about(tab: Tab) -> &'static str {
    match tab {
        Tab::Path => {
            "The way of received packets, from left to right. Each stage has its own counter, so the numbers need not be \
             equal: GRO merges, loopback skips the NIC, TCP is read as a stream."
        }
        Tab::Cpus => {
            "Busy is exact, its split by ticks can err by half; `net rx` is measured. A CPU whose softirqs come near 100 % \
             limits whatever its queues bring: spread the queues (RSS), or the protocol work (RPS). \
             `rxpath explain irq-one-cpu` and `rxpath check --queues` say who serves what."
        }
        Tab::Queues => {
            "One queue that takes all packets while others rest: the flows are few, or the hash does not see what tells them \
             apart. `rxpath check --flow` computes where a flow lands."
        }
        Tab::Sockets => {
            "A queue that is full although its program waits for a CPU, or rests between reads, needs a larger buffer \
             (SO_RCVBUF, net.core.rmem_max); a program that is busy all the time needs more threads or larger batches."
        }
        Tab::Tasks => {
            "Taken: interrupts and softirqs of others that ran on top of the task, and the hypervisor's share. It is charged \
             to the task by every tool that reads ticks. `rxpath steal` measures it with a calibrated victim."
        }
        Tab::Drops => {
            "Where the kernel freed packets that nobody received, by its own reason; without BPF by the counters that own \
             each place."
        }
    }
}

/// What each stage does.
const STAGES: [(&str, &str); 7] = [
    (
        "NIC/ring",
        "the device writes packets into the ring; without a free descriptor it drops (missed, fifo).",
    ),
    (
        "irq/NAPI",
        "the interrupt starts a softirq that polls the ring, 64 packets at most each time (napi_poll, net_rx_action).",
    ),
    ("GRO", "segments of a flow are merged before the protocols see them (dev_gro_receive)."),
    (
        "backlog",
        "packets that RPS sends to another CPU wait here, net.core.netdev_max_backlog at most (enqueue_to_backlog).",
    ),
    (
        "filter/IP",
        "netfilter and IP: header checks, routing, reverse path (ip_rcv, ip_local_deliver).",
    ),
    (
        "socket",
        "the packet is charged to the socket's receive buffer, or dropped when that is full (__udp_enqueue_schedule_skb).",
    ),
    ("program", "the reading program: what it does not read in time fills the socket's queue."),
];

/// Frequent reasons, and the way out.
const REASONS: [(&str, &str); 9] = [
    (
        "SOCKET_RCVBUFF",
        "the socket's receive buffer was full: a larger SO_RCVBUF against bursts, a faster reader against overload.",
    ),
    ("PROTO_MEM", "the protocol's memory was used up: net.ipv4.udp_mem or tcp_mem."),
    (
        "NO_SOCKET",
        "nobody listens on the port: look at the address, the port, and the program's state.",
    ),
    ("UDP_CSUM", "the checksum was wrong: cable, memory, or an offload that computes it wrongly."),
    ("NETFILTER_DROP", "a packet filter's rule dropped it on purpose."),
    (
        "CPU_BACKLOG",
        "the backlog of the CPU was full: net.core.netdev_max_backlog, or more CPUs in rps_cpus.",
    ),
    ("IP_RPFILTER", "the reverse path filter: the way back would leave through another device."),
    ("QDISC_DROP", "a queueing discipline refused it."),
    ("FULL_RING", "the ring of a virtual device was full: its reader is too slow."),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::sheet::Order;
    use crate::tui::view::tests::busy_frame;

    #[test]
    fn the_limit_is_explained_with_its_evidence_and_remedy() {
        let words = explain(Tab::Path, None, &busy_frame(2)).join("\n");
        assert!(words.contains("to change:") && words.contains("evidence"), "{words}");
    }

    #[test]
    fn every_stage_has_its_words() {
        let sheet = Tab::Path.sheet(&busy_frame(2)).arranged("", Order::default());
        for row in &sheet.rows {
            let words = explain(Tab::Path, Some(row), &Frame::default());
            assert!(words.last().unwrap().starts_with(&row.id), "{}", row.id);
        }
    }
}
