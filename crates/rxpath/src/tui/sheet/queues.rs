//! The receive queues as rows.

use rxpath_record::watch::{Frame, QueueRow};

use super::{Cell, Row, Sheet, number, per_s, percent, told, word};

pub(super) fn sheet(frame: &Frame) -> Sheet {
    Sheet {
        columns: vec![
            word("device", 12),
            number("queue", 5),
            number("NAPI", 6),
            number("IRQ", 5),
            word("CPU", 8),
            number("packets/s", 9),
            number("drops/s", 8),
            number("irqs/s", 8),
            number("per poll", 8),
        ],
        rows: frame.queues.iter().map(row).collect(),
        empty: "no device but loopback has a queue here".into(),
    }
}

fn row(queue: &QueueRow) -> Row {
    Row {
        id: format!("{} queue {}", queue.device, queue.queue),
        item: 0,
        cells: vec![
            Cell::text(queue.device.clone()),
            Cell::number(queue.queue.into(), queue.queue.to_string()),
            Cell::fact(&queue.napi_id, |id| Cell::number(id.into(), id.to_string())),
            Cell::fact(&queue.irq, |irq| Cell::number(irq.into(), irq.to_string())),
            Cell::text(queue.cpus.value().map_or("-", String::as_str)),
            Cell::fact(&queue.packets_pps, Cell::rate),
            Cell::fact(&queue.drops_pps, Cell::loss),
            Cell::fact(&queue.interrupts_per_s, Cell::rate),
            Cell::fact(&queue.packets_per_poll, Cell::rate),
        ],
        detail: vec![
            ("NAPI instance".into(), told(&queue.napi_id, u32::to_string)),
            ("interrupt".into(), told(&queue.irq, u32::to_string)),
            ("CPUs of the interrupt".into(), told(&queue.cpus, String::clone)),
            ("packets".into(), told(&queue.packets_pps, |it| per_s(*it, "packets"))),
            ("drops".into(), told(&queue.drops_pps, |it| per_s(*it, "packets"))),
            ("interrupts".into(), told(&queue.interrupts_per_s, |it| per_s(*it, "interrupts"))),
            ("packets a poll".into(), told(&queue.packets_per_poll, |it| format!("{it:.1}"))),
            (
                "polls that used up the budget".into(),
                told(&queue.exhausted_ratio, |it| percent(*it)),
            ),
        ],
    }
}
