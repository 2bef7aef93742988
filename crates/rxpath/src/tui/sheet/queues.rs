//! The receive queues as rows.

use rxpath_record::watch::{QueueRow, WatchFrame};

use super::{Cell, Columns, Sheet, Told, number, per_s, percent, told, word};

const COLUMNS: Columns<QueueRow, 9> = [
    (word("device", 12), |it| Cell::text(it.device.clone())),
    (number("queue", 5), |it| Cell::number(it.queue.into(), it.queue.to_string())),
    (number("NAPI", 6), |it| Cell::fact(&it.napi_id, |id| Cell::number(id.into(), id.to_string()))),
    (number("IRQ", 5), |it| Cell::fact(&it.irq, |irq| Cell::number(irq.into(), irq.to_string()))),
    (word("CPU", 8), |it| Cell::text(it.cpus.value().map_or("-", String::as_str))),
    (number("packets/s", 9), |it| Cell::fact(&it.packets_pps, Cell::rate)),
    (number("drops/s", 8), |it| Cell::fact(&it.drops_pps, Cell::loss)),
    (number("irqs/s", 8), |it| Cell::fact(&it.interrupts_per_s, Cell::rate)),
    (number("per poll", 8), |it| Cell::fact(&it.packets_per_poll, Cell::rate)),
];

pub(super) fn sheet(frame: &WatchFrame) -> Sheet {
    Sheet::of(&frame.queues, COLUMNS, row, "no device but loopback has a queue here")
}

fn row(queue: &QueueRow) -> Told {
    let detail = vec![
        ("NAPI instance", told(&queue.napi_id, u32::to_string)),
        ("interrupt", told(&queue.irq, u32::to_string)),
        ("CPUs of the interrupt", told(&queue.cpus, String::clone)),
        ("packets", told(&queue.packets_pps, |it| per_s(*it, "packets"))),
        ("drops", told(&queue.drops_pps, |it| per_s(*it, "packets"))),
        ("interrupts", told(&queue.interrupts_per_s, |it| per_s(*it, "interrupts"))),
        ("packets a poll", told(&queue.packets_per_poll, |it| format!("{it:.1}"))),
        ("polls that used up the budget", told(&queue.exhausted_ratio, |it| percent(*it, 2))),
    ];
    (format!("{} queue {}", queue.device, queue.queue), detail)
}
