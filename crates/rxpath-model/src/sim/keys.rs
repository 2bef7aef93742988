//! Every parameter of a simulation, once: its name, unit, range, default and meaning.
//!
//! The reader of parameter files, `--set`, the messages about bad values and the table in `docs/reference/simulator.md` all come
//! from this list.

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// A time: plain ns or a text with a unit. The range is in ns.
    Time,
    /// Packets per second.
    Rate,
    /// A number of these things.
    Count(&'static str),
    /// A size.
    Bytes,
    /// A number between the ends of the range, in thousandths.
    Ratio,
    /// A whole number that may be negative; the range is that of the value plus 20.
    Nice,
    /// One of these words.
    Word(&'static [&'static str]),
    /// true or false.
    Flag,
    /// CPU numbers.
    Cpus,
    /// Any text.
    Text,
    /// The states of a modulated Poisson process: `[{ rate = "10k", mean = "5ms" }, …]`.
    States,
}

/// One parameter.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// `section.name`, or a name at the top of the file.
    pub name: &'static str,
    /// What its value is.
    pub sort: Sort,
    /// The smallest value.
    pub least: u64,
    /// The largest.
    pub most: u64,
    /// As a file would give it; nothing when it has none.
    pub default: Option<&'static str>,
    /// What it means.
    pub what: &'static str,
}

impl Key {
    /// The unit, as messages and the table name it.
    pub fn unit(&self) -> String {
        match self.sort {
            Sort::Time => "time (plain numbers are ns)".into(),
            Sort::Rate => "packets/s".into(),
            Sort::Count(of) => of.into(),
            Sort::Bytes => "bytes".into(),
            Sort::Ratio => "ratio".into(),
            Sort::Nice => "nice value".into(),
            Sort::Word(words) => format!("one of {}", words.join(", ")),
            Sort::Flag => "true or false".into(),
            Sort::Cpus => "list of CPUs".into(),
            Sort::Text => "text".into(),
            Sort::States => "list of { rate, mean }".into(),
        }
    }

    /// The range in the unit's own words; nothing for words, flags and texts.
    pub fn range(&self) -> Option<String> {
        let (least, most) = (self.least, self.most);
        match self.sort {
            Sort::Time => {
                Some(format!("{} to {}", rxpath_core::Nanos(least), rxpath_core::Nanos(most)))
            }
            Sort::Rate | Sort::Count(_) | Sort::Bytes | Sort::Cpus => {
                Some(format!("{least} to {most}"))
            }
            Sort::Ratio => Some(format!("{} to {}", least as f64 / 1e3, most as f64 / 1e3)),
            Sort::Nice => Some(format!("{} to {}", least as i64 - 20, most as i64 - 20)),
            Sort::States => Some("1 to 64 states".into()),
            Sort::Word(_) | Sort::Flag | Sort::Text => None,
        }
    }
}

const fn key(
    name: &'static str,
    sort: Sort,
    range: (u64, u64),
    default: Option<&'static str>,
    what: &'static str,
) -> Key {
    Key { name, sort, least: range.0, most: range.1, default, what }
}

/// A second.
const S: u64 = 1_000_000_000;
/// Costs of single steps.
const COST: (u64, u64) = (0, 10 * S);
/// CPUs that a simulated machine can have.
pub const CPUS: u64 = 64;
const CPU: (u64, u64) = (0, CPUS - 1);
const NONE: (u64, u64) = (0, 0);
const PACKETS: Sort = Sort::Count("packets");

/// All of them, section by section.
pub const KEYS: &[Key] = &[
    key("name", Sort::Text, NONE, Some("\"simulation\""), "Name of the set"),
    key("question", Sort::Text, NONE, Some("\"\""), "The question that the simulation answers"),
    key("expected", Sort::Text, NONE, Some("\"\""), "What is known about the answer"),
    key("duration", Sort::Time, (1, 100_000 * S), Some("\"1s\""), "How long packets arrive"),
    key(
        "warmup",
        Sort::Time,
        (0, 100_000 * S),
        Some("0"),
        "Start of the measured window; the ledger covers the whole run",
    ),
    key(
        "drain",
        Sort::Time,
        (0, 10_000 * S),
        Some("\"10s\""),
        "Longest wait for the queues to drain after the last arrival",
    ),
    key(
        "sample",
        Sort::Time,
        (1000, 10_000 * S),
        None,
        "Sampling interval [1/1000 of the duration]",
    ),
    key("seed", Sort::Count("number"), (0, u64::MAX), Some("1"), "Seed of all random numbers"),
    key(
        "arrivals.kind",
        Sort::Word(&["poisson", "cbr", "onoff", "mmpp", "trace", "tcp"]),
        NONE,
        Some("\"poisson\""),
        "Arrival process; `tcp` is one window-limited stream",
    ),
    key(
        "arrivals.rate",
        Sort::Rate,
        (1, 1_000_000_000),
        None,
        "Mean rate; `onoff`: rate while on; `tcp`: line rate",
    ),
    key("arrivals.size", Sort::Bytes, (0, 65_507), Some("32"), "Payload of a packet"),
    key(
        "arrivals.phase",
        Sort::Ratio,
        (0, 1000),
        Some("1.0"),
        "`cbr`: the first packet arrives after this part of an interval",
    ),
    key("arrivals.on", Sort::Time, (1, 10_000 * S), None, "`onoff`: mean time on (exponential)"),
    key("arrivals.off", Sort::Time, (1, 10_000 * S), None, "`onoff`: mean time off (exponential)"),
    key(
        "arrivals.states",
        Sort::States,
        (1, 64),
        None,
        "`mmpp`: the states, visited in order for exponential times",
    ),
    key(
        "arrivals.file",
        Sort::Text,
        NONE,
        None,
        "`trace`: lines of `ns,bytes,flow`, or a pcap file",
    ),
    key(
        "arrivals.window",
        Sort::Bytes,
        (1, 1 << 40),
        None,
        "`tcp`: the receive window [what the socket holds]",
    ),
    key(
        "arrivals.rtt",
        Sort::Time,
        (1, 100 * S),
        Some("\"200us\""),
        "`tcp`: time from delivery to the acknowledgement at the sender",
    ),
    key("arrivals.flows", Sort::Count("flows"), (1, 65_536), Some("1"), "Number of flows"),
    key(
        "arrivals.zipf",
        Sort::Ratio,
        (0, 10_000),
        Some("0.0"),
        "Zipf exponent of flow popularity; 0 = all flows equal",
    ),
    key(
        "nic.queues",
        Sort::Count("queues"),
        (1, CPUS),
        Some("1"),
        "Receive queues; a flow's queue follows from its Toeplitz hash",
    ),
    key(
        "nic.ring",
        Sort::Count("descriptors"),
        (1, 1 << 20),
        Some("256"),
        "Descriptors of each queue",
    ),
    key(
        "nic.indirection",
        Sort::Count("entries"),
        (1, 65_536),
        Some("128"),
        "Entries of the indirection table; entry i is queue i mod queues",
    ),
    key("nic.cpus", Sort::Cpus, CPU, Some("[0]"), "CPU of each queue's interrupt, in queue order"),
    key(
        "nic.rx_usecs",
        Sort::Count("us"),
        (0, 1_000_000),
        Some("0"),
        "Interrupt coalescing by time, from the first packet",
    ),
    key(
        "nic.rx_frames",
        PACKETS,
        (0, 1 << 20),
        Some("0"),
        "Interrupt coalescing by packets; 0 = by time only",
    ),
    key("nic.irq_ns", Sort::Time, COST, Some("0"), "Total CPU time of an interrupt"),
    key(
        "nic.refill",
        Sort::Word(&["packet", "poll"]),
        NONE,
        Some("\"packet\""),
        "When descriptors are free again: after each packet, or at the end of the poll",
    ),
    key("softirq.poll_ns", Sort::Time, COST, Some("0"), "CPU time per poll"),
    key(
        "softirq.packet_ns",
        Sort::Time,
        COST,
        Some("0"),
        "CPU time per packet in the poll, protocol included",
    ),
    key(
        "softirq.poll",
        Sort::Word(&["exhaustive", "gated"]),
        NONE,
        Some("\"exhaustive\""),
        "Whether a poll also takes packets that arrive during the poll",
    ),
    key("softirq.weight", PACKETS, (1, 65_536), Some("64"), "NAPI weight"),
    key("softirq.budget", PACKETS, (1, 1 << 30), Some("300"), "net.core.netdev_budget"),
    key(
        "softirq.budget_usecs",
        Sort::Count("us"),
        (0, 10_000_000),
        None,
        "net.core.netdev_budget_usecs [two jiffies]",
    ),
    key("softirq.hz", Sort::Count("ticks/s"), (24, 10_000), Some("250"), "CONFIG_HZ"),
    key("softirq.tick_ns", Sort::Time, COST, Some("0"), "CPU time of a tick"),
    key(
        "softirq.restarts",
        Sort::Count("passes"),
        (1, 1 << 20),
        Some("10"),
        "MAX_SOFTIRQ_RESTART: passes before ksoftirqd",
    ),
    key(
        "softirq.ksoftirqd",
        Sort::Word(&["beside", "instead"]),
        NONE,
        Some("\"beside\""),
        "While ksoftirqd is awake, interrupts still run softirqs (`beside`, since 6.5) or not (`instead`, 4.9 to 6.4)",
    ),
    key(
        "softirq.threaded",
        Sort::Flag,
        NONE,
        Some("false"),
        "NAPI threads instead of softirqs, on the queues' CPUs",
    ),
    key("rps.cpus", Sort::Cpus, CPU, Some("[]"), "CPUs that RPS steers to; none = no RPS"),
    key("rps.backlog", PACKETS, (1, 1 << 24), Some("1000"), "net.core.netdev_max_backlog"),
    key("rps.ipi_ns", Sort::Time, COST, Some("0"), "CPU time of the inter-processor interrupt"),
    key(
        "rps.ipi_spread",
        Sort::Ratio,
        (0, 1000),
        Some("0.0"),
        "`rps.ipi_ns` varies uniformly by up to this part, up or down",
    ),
    key("rps.poll_ns", Sort::Time, COST, Some("0"), "CPU time per poll of a backlog"),
    key(
        "rps.packet_ns",
        Sort::Time,
        COST,
        Some("0"),
        "CPU time per packet from the backlog onwards",
    ),
    key(
        "socket.count",
        Sort::Count("sockets"),
        (1, 256),
        Some("1"),
        "Sockets of the REUSEPORT group; a flow's socket is (hash * count) >> 32",
    ),
    key("socket.rcvbuf", Sort::Bytes, (1, 1 << 40), Some("212992"), "sk_rcvbuf of each socket"),
    key(
        "socket.truesize",
        Sort::Bytes,
        (1, 1 << 30),
        None,
        "Kernel memory of a queued packet [estimated from the size]",
    ),
    key(
        "socket.admission",
        Sort::Word(&["new", "old"]),
        NONE,
        Some("\"new\""),
        "Admission rule: of Linux 6.18 (`new`), or the older one (`old`: one packet more)",
    ),
    key(
        "socket.release",
        Sort::Word(&["lazy", "read", "done"]),
        NONE,
        Some("\"lazy\""),
        "When memory is freed: in quarters as the kernel does, when read, or when the reader has finished with the packet",
    ),
    key(
        "reader.threads",
        Sort::Count("threads"),
        (1, 256),
        Some("1"),
        "Reading threads; thread i reads socket i mod count",
    ),
    key("reader.cpus", Sort::Cpus, CPU, Some("[1]"), "CPU of each thread, in thread order"),
    key(
        "reader.packet_ns",
        Sort::Time,
        COST,
        None,
        "CPU time per packet: copy and application work",
    ),
    key(
        "reader.service",
        Sort::Word(&["fixed", "exponential"]),
        NONE,
        Some("\"fixed\""),
        "Distribution of `reader.packet_ns`",
    ),
    key("reader.call_ns", Sort::Time, COST, Some("0"), "CPU time per call"),
    key("reader.batch", PACKETS, (1, 65_536), Some("1"), "Packets per call, at most (recvmmsg)"),
    key(
        "reader.wakeup_ns",
        Sort::Time,
        COST,
        Some("0"),
        "Time from the packet until the woken thread is runnable",
    ),
    key("reader.sleep_ns", Sort::Time, COST, Some("0"), "CPU time to go to sleep and wake up"),
    key(
        "reader.share",
        Sort::Ratio,
        (1, 1000),
        Some("1.0"),
        "Share of the CPU that the reader gets; it slows the reader down",
    ),
    key(
        "reader.stall",
        Sort::Time,
        (0, 10_000 * S),
        Some("0"),
        "How long the reader stops at the start of each period",
    ),
    key(
        "reader.period",
        Sort::Time,
        (1, 10_000 * S),
        None,
        "Time from the start of one stop to the next",
    ),
    key("reader.nice", Sort::Nice, (0, 39), Some("0"), "Nice value of the reader"),
    key(
        "reader.realtime",
        Sort::Flag,
        NONE,
        Some("false"),
        "Real-time priority: runs before all fair threads",
    ),
    key(
        "background.threads",
        Sort::Count("threads"),
        (0, 1000),
        Some("0"),
        "Always-runnable threads on each of `background.cpus`",
    ),
    key(
        "background.cpus",
        Sort::Cpus,
        CPU,
        Some("[]"),
        "CPUs of the background threads; none = the readers' CPUs",
    ),
    key("background.nice", Sort::Nice, (0, 39), Some("0"), "Nice value of the background threads"),
    key(
        "scheduler.kind",
        Sort::Word(&["eevdf", "o1"]),
        NONE,
        Some("\"eevdf\""),
        "Simplified EEVDF, or the O(1) scheduler of Linux 2.6.8 to 2.6.22",
    ),
    key(
        "scheduler.slice",
        Sort::Time,
        (1000, 10 * S),
        Some("\"4ms\""),
        "EEVDF time slice: the base slice, at least one tick",
    ),
    key(
        "scheduler.interactive",
        Sort::Flag,
        NONE,
        Some("true"),
        "`o1`: threads that sleep a lot are not expired",
    ),
];

/// The parameter of that name.
pub fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

/// The table of the documentation.
pub fn table() -> String {
    let mut text =
        String::from("| key | unit | range | default | meaning |\n|---|---|---|---|---|\n");
    for key in KEYS {
        let range = key.range().unwrap_or_else(|| "-".into());
        let default = key.default.map_or_else(|| "-".into(), |text| format!("`{text}`"));
        text += &format!(
            "| `{}` | {} | {range} | {default} | {} |\n",
            key.name,
            key.unit().replace('|', "\\|"),
            key.what.replace('|', "\\|")
        );
    }
    text
}
