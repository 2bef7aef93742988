//! Tables of `rxpath check --queues` and the text of `rxpath check --flow`.

use rxpath_core::number::grouped;
use rxpath_core::{CpuList, Fact};
use rxpath_host::read::queue_map::{DeviceQueues, IrqSource, QueueIrq, QueueRate, Row};
use rxpath_host::read::steering::{Landing, SteeringSuggestion};

use super::table::Grid;

/// One table per device; with rates instead of totals if there are any.
pub fn tables(devices: &[DeviceQueues], rates: Option<&[QueueRate]>) -> String {
    devices.iter().map(|device| one(device, rates)).collect()
}

fn one(device: &DeviceQueues, rates: Option<&[QueueRate]>) -> String {
    let driver = shown(&device.driver);
    let node = match device.node.value() {
        Some(-1) | None => "NUMA node not reported".to_owned(),
        Some(node) => format!("NUMA node {node}"),
    };
    let counters = match &device.counters {
        Fact::Ok { value } => format!("counters: {value}"),
        gap => format!("no counters: {}", why(gap)),
    };
    let units = if rates.is_some() { ["packets/s", "drops/s"] } else { ["packets", "drops"] };
    let head = ["queue", "NAPI", "IRQ", "name", "CPU", "node", "RSS", "RPS", "XPS"];
    let mut table = Grid::new(1, head.into_iter().chain(units)).text(&[3, 4, 5, 7, 8]);
    for row in &device.rows {
        table.row(cells(device, row, rates));
    }
    let mut text = format!("{} ({driver}), {node}, {counters}\n{}", device.device, table.shown());
    text += &gaps(device);
    text + "\n"
}

fn cells(device: &DeviceQueues, row: &Row, rates: Option<&[QueueRate]>) -> Vec<String> {
    let irq = row.irq.value();
    let of = |pick: fn(&QueueIrq) -> String| irq.map_or_else(|| "-".to_owned(), pick);
    let total = |fact: &Fact<u64>| cell(fact, |n| grouped(*n));
    let rate = |fact: &Fact<f64>| cell(fact, |n| grouped(n.round().max(0.0) as u64));
    let moved = rates.and_then(|rates| {
        rates.iter().find(|rate| rate.device == device.device && rate.queue == row.queue)
    });
    let (packets, drops) = match moved {
        Some(moved) => (rate(&moved.packets_pps), rate(&moved.drops_pps)),
        None => (total(&row.packets_total), total(&row.drops_total)),
    };
    vec![
        row.queue.to_string(),
        shown(&row.napi_id),
        of(|irq| irq.irq.to_string()),
        of(|irq| irq.name.clone()),
        of(|irq| cpus(&irq.effective_cpus)),
        of(|irq| {
            cell(&irq.nodes, |nodes| nodes.iter().map(u32::to_string).collect::<Vec<_>>().join(","))
        }),
        cell(&row.rss_share_ratio, |r| format!("{:.1} %", r * 100.0)),
        cpus(&row.rps_cpus),
        cpus(&row.xps_cpus),
        packets,
        drops,
    ]
}

/// CPUs of a mask: `off` for none, `-` for a gap.
fn cpus(fact: &Fact<CpuList>) -> String {
    cell(fact, |cpus| if cpus.is_empty() { "off".into() } else { cpus.to_string() })
}

fn shown<T: ToString>(fact: &Fact<T>) -> String {
    cell(fact, T::to_string)
}

/// The value in words, `-` for a gap.
fn cell<T>(fact: &Fact<T>, words: impl FnOnce(&T) -> String) -> String {
    fact.value().map_or_else(|| "-".to_owned(), words)
}

/// The reasons for each `-` of the first queue; the other queues have the same reasons.
fn gaps(device: &DeviceQueues) -> String {
    let Some(row) = device.rows.first() else {
        return "no receive queue is visible\n".into();
    };
    let mut text = String::new();
    let mut note = |what: &str, gap: Option<String>| {
        if let Some(gap) = gap {
            text += &format!("  {what}: {gap}\n");
        }
    };
    note("NAPI", row.napi_id.gap());
    note("IRQ", row.irq.gap());
    note("CPU", row.irq.value().and_then(|irq| irq.effective_cpus.gap()));
    note("RSS", row.rss_share_ratio.gap());
    note("packets", row.packets_total.gap().filter(|_| device.counters.value().is_some()));
    note("drops", row.drops_total.gap().filter(|_| device.counters.value().is_some()));
    let named = device.rows.iter().filter_map(|row| row.irq.value());
    if named.clone().any(|irq| irq.source == IrqSource::Name) {
        note("IRQ", Some("found by the names of the device's interrupts".into()));
    }
    text
}

/// The devices that are not shown.
pub fn passed_over(names: &[String]) -> String {
    if names.is_empty() {
        return String::new();
    }
    format!(
        "not shown, without receive queues of their own: {} (--dev IF shows one)\n",
        names.join(", ")
    )
}

/// Where a flow lands, and flows that would land on other queues.
pub fn landing(landing: &Landing, spread: &Fact<SteeringSuggestion>) -> String {
    let mut text = format!("{} on {}\n", landing.flow, landing.device);
    let fields = match &landing.hashed_fields {
        Fact::Ok { value } if value.0 == 0 => "none".into(),
        Fact::Ok { value } if value.to_string().is_empty() => {
            format!("none of the known ones (bits {:#x} of the driver's answer)", value.0)
        }
        Fact::Ok { value } => value.to_string(),
        gap => why(gap),
    };
    for (what, value) in [
        ("hashed fields", fields),
        ("hash", plain(&landing.hash)),
        ("queue", plain(&landing.queue)),
        ("CPU of its IRQ", plain(&landing.irq_cpus)),
        ("CPU by RPS", plain(&landing.rps_cpu)),
        ("SO_REUSEPORT", socket(landing)),
    ] {
        text += &format!("  {what:<15} {value}\n");
    }
    text.extend(landing.notes.iter().map(|note| format!("  note: {note}\n")));
    match spread {
        Fact::Ok { value } => text += &spread_lines(value),
        gap => text += &format!("  flows for other queues: {}\n", why(gap)),
    }
    text
}

/// The socket of the group, and the group.
fn socket(landing: &Landing) -> String {
    let socket = &landing.reuseport_socket;
    let Some(group) = landing.reuseport_group.value() else { return plain(socket) };
    let index = match socket.value() {
        Some(index) => {
            let inode = group.inodes.get(*index as usize).copied().unwrap_or(0);
            format!("socket {index} (inode {inode})")
        }
        None => why(socket),
    };
    let (sockets, local) = (group.sockets_count, &group.local);
    format!("{index}; {sockets} socket(s) on {local}, chosen by {}", group.selector)
}

fn spread_lines(spread: &SteeringSuggestion) -> String {
    let mut text = String::new();
    if !spread.source_addresses.is_empty() {
        text += "  ports are not hashed: only other addresses reach other queues\n";
    }
    for (queue, ports) in &spread.source_ports {
        let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
        text += &format!("  queue {queue}: source ports {}\n", ports.join(" "));
    }
    for (queue, addresses) in &spread.source_addresses {
        let all: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        text += &format!("  queue {queue}: source addresses {}\n", all.join(" "));
    }
    if !spread.unreachable_queues.is_empty() {
        let all: Vec<String> = spread.unreachable_queues.iter().map(u32::to_string).collect();
        text += &format!("  no entry of the table leads to queue {}\n", all.join(", "));
    }
    text
}

fn plain<T: ToString>(fact: &Fact<T>) -> String {
    fact.value().map_or_else(|| why(fact), T::to_string)
}

/// The reason of a gap, without its kind.
fn why<T>(fact: &Fact<T>) -> String {
    match fact {
        Fact::Ok { .. } => String::new(),
        Fact::Absent { why } => why.clone(),
        Fact::Denied { needs } => format!("not readable by this process: needs {needs}"),
    }
}
