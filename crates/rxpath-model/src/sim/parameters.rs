//! The parameters of a simulation as the simulator uses them, checked against each other.

use super::keys;
use super::values::{ParameterError, Value, Values};
use crate::kinds::socket_capacity::{capacity, estimated_truesize};

/// The most packets that one simulation may offer: about 20 minutes of computing.
const MOST_PACKETS: f64 = 1e10;
/// The most samples of a simulation: its time series have to fit a report.
const MOST_SAMPLES: u64 = 20_000;

/// The law of the arrivals.
#[derive(Clone, Debug, PartialEq)]
pub enum Law {
    /// Independent exponential times.
    Poisson,
    /// One packet every so often.
    Cbr {
        /// Part of an interval before the first.
        phase: f64,
    },
    /// Poisson at the rate while on, nothing while off; both exponential, in ns.
    OnOff {
        /// Mean time on.
        on: u64,
        /// Mean time off.
        off: u64,
    },
    /// Poisson with a rate that changes in turn: packets/s and mean time in ns.
    Mmpp(Vec<(f64, u64)>),
    /// What a file says.
    Trace {
        /// Its path, for the caller that opens it.
        file: String,
    },
    /// One stream that a window limits.
    Tcp {
        /// Packets that may be unacknowledged or unread.
        window: u64,
        /// From a delivery to its acknowledgement, in ns.
        rtt: u64,
    },
}

/// When descriptors or socket memory are free again, and how polls take packets: see the keys of the same names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// By quarters of the buffer, or when the reader's queue is empty (`udp_rmem_release`).
    Lazy,
    /// When the reader takes the packet.
    Read,
    /// When the reader is done with it: the textbook's queue, whose places include the one in service.
    Done,
}

/// Who gets a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchedulerKind {
    /// Earliest eligible virtual deadline first, since 6.6.
    Eevdf,
    /// Active and expired arrays, 2.6.8 to 2.6.22.
    O1,
}

/// Everything that a simulation needs; times in ns, rates in packets/s, sizes in bytes.
#[derive(Clone, Debug, PartialEq)]
#[allow(
    missing_docs,
    reason = "each field is documented by its key of the same name in `keys::KEYS`"
)]
pub struct Parameters {
    pub name: String,
    pub question: String,
    pub expected: String,
    pub duration: u64,
    pub warmup: u64,
    pub drain: u64,
    pub sample: u64,
    pub seed: u64,
    pub law: Law,
    pub rate: f64,
    pub size: u64,
    pub flows: u32,
    pub zipf: f64,
    pub queues: usize,
    pub ring: u64,
    pub indirection: u64,
    pub nic_cpus: Vec<u32>,
    pub rx_usecs: u64,
    pub rx_frames: u64,
    pub irq_ns: u64,
    pub refill_by_poll: bool,
    pub poll_ns: u64,
    pub packet_ns: u64,
    pub exhaustive: bool,
    pub weight: u64,
    pub budget: u64,
    pub budget_ns: u64,
    pub jiffy: u64,
    pub tick_ns: u64,
    pub restarts: u64,
    pub holds_back: bool,
    pub threaded: bool,
    pub rps_cpus: Vec<u32>,
    pub backlog: u64,
    pub ipi_ns: u64,
    pub ipi_spread: f64,
    pub backlog_poll_ns: u64,
    pub backlog_packet_ns: u64,
    pub sockets: usize,
    pub rcvbuf: u64,
    pub truesize: Option<u64>,
    pub old_admission: bool,
    pub release: Release,
    pub readers: usize,
    pub reader_cpus: Vec<u32>,
    pub reader_packet_ns: u64,
    pub exponential_service: bool,
    pub call_ns: u64,
    pub batch: u64,
    pub wakeup_ns: u64,
    pub sleep_ns: u64,
    pub share: f64,
    pub stall: u64,
    pub period: u64,
    pub nice: i64,
    pub realtime: bool,
    pub background: usize,
    pub background_nice: i64,
    pub background_cpus: Vec<u32>,
    pub scheduler: SchedulerKind,
    pub slice: u64,
    pub interactive: bool,
    /// What was given and the defaults, as results echo them.
    pub values: Values,
}

impl Parameters {
    /// Puts values together and refuses what is missing or contradicts itself.
    #[expect(clippy::too_many_lines, reason = "one line per field")]
    pub fn new(values: &Values) -> Result<Self, ParameterError> {
        let v = Read(values);
        let duration = v.number("duration");
        let jiffy = 1_000_000_000 / v.number("softirq.hz").max(1);
        let size = v.number("arrivals.size");
        let truesize = v.optional("socket.truesize");
        let law = law(&v, truesize.unwrap_or_else(|| estimated_truesize(size)))?;
        let rate = match (&law, v.optional("arrivals.rate")) {
            (Law::Trace { .. } | Law::Mmpp(_), _) => 0.0,
            (_, Some(rate)) => rate as f64,
            (_, None) => return Err(missing("arrivals.rate")),
        };
        let stall = v.number("reader.stall");
        let period = match v.optional("reader.period") {
            Some(period) => period,
            None if stall == 0 => 0,
            None => return Err(missing("reader.period")),
        };
        let all = Self {
            name: v.text("name"),
            question: v.text("question"),
            expected: v.text("expected"),
            duration,
            warmup: v.number("warmup"),
            drain: v.number("drain"),
            sample: v.optional("sample").unwrap_or((duration / 1000).max(1000)),
            seed: v.number("seed"),
            rate,
            size,
            flows: v.number("arrivals.flows") as u32,
            zipf: v.ratio("arrivals.zipf"),
            queues: v.number("nic.queues") as usize,
            ring: v.number("nic.ring"),
            indirection: v.number("nic.indirection"),
            nic_cpus: v.cpus("nic.cpus"),
            rx_usecs: v.number("nic.rx_usecs"),
            rx_frames: v.number("nic.rx_frames"),
            irq_ns: v.number("nic.irq_ns"),
            refill_by_poll: v.text("nic.refill") == "poll",
            poll_ns: v.number("softirq.poll_ns"),
            packet_ns: v.number("softirq.packet_ns"),
            exhaustive: v.text("softirq.poll") == "exhaustive",
            weight: v.number("softirq.weight"),
            budget: v.number("softirq.budget"),
            budget_ns: v.optional("softirq.budget_usecs").map_or(2 * jiffy, |us| us * 1000),
            jiffy,
            tick_ns: v.number("softirq.tick_ns"),
            restarts: v.number("softirq.restarts"),
            holds_back: v.text("softirq.ksoftirqd") == "instead",
            threaded: v.flag("softirq.threaded"),
            rps_cpus: v.cpus("rps.cpus"),
            backlog: v.number("rps.backlog"),
            ipi_ns: v.number("rps.ipi_ns"),
            ipi_spread: v.ratio("rps.ipi_spread"),
            backlog_poll_ns: v.number("rps.poll_ns"),
            backlog_packet_ns: v.number("rps.packet_ns"),
            sockets: v.number("socket.count") as usize,
            rcvbuf: v.number("socket.rcvbuf"),
            truesize,
            old_admission: v.text("socket.admission") == "old",
            release: match v.text("socket.release").as_str() {
                "done" => Release::Done,
                // TCP gives memory back with each packet that is read (`sock_rfree`).
                "lazy" if !matches!(law, Law::Tcp { .. }) => Release::Lazy,
                _ => Release::Read,
            },
            readers: v.number("reader.threads") as usize,
            reader_cpus: v.cpus("reader.cpus"),
            reader_packet_ns: v
                .optional("reader.packet_ns")
                .ok_or_else(|| missing("reader.packet_ns"))?,
            exponential_service: v.text("reader.service") == "exponential",
            call_ns: v.number("reader.call_ns"),
            batch: v.number("reader.batch"),
            wakeup_ns: v.number("reader.wakeup_ns"),
            sleep_ns: v.number("reader.sleep_ns"),
            share: v.ratio("reader.share"),
            stall,
            period,
            nice: v.nice("reader.nice"),
            realtime: v.flag("reader.realtime"),
            background: v.number("background.threads") as usize,
            background_nice: v.nice("background.nice"),
            background_cpus: v.cpus("background.cpus"),
            scheduler: match v.text("scheduler.kind").as_str() {
                "o1" => SchedulerKind::O1,
                _ => SchedulerKind::Eevdf,
            },
            slice: v.number("scheduler.slice"),
            interactive: v.flag("scheduler.interactive"),
            law,
            values: values.clone(),
        };
        all.check()?;
        Ok(all)
    }

    /// Reads a parameter file's text.
    pub fn from_toml(text: &str) -> Result<Self, ParameterError> {
        Self::new(&Values::from_toml(text)?)
    }

    fn check(&self) -> Result<(), ParameterError> {
        let bad = |key: &str, why: String| Err(ParameterError::Value { key: key.into(), why });
        if self.stall >= self.period && self.stall > 0 {
            return bad(
                "reader.period",
                "must be longer than `reader.stall`: a reader that never runs reads nothing (time)"
                    .into(),
            );
        }
        if self.warmup >= self.duration {
            return bad("warmup", "must be shorter than `duration` (time)".into());
        }
        if self.duration / self.sample > MOST_SAMPLES {
            return bad(
                "sample",
                format!(
                    "gives more than {MOST_SAMPLES} samples in `duration`; make it longer (time)"
                ),
            );
        }
        if self.nic_cpus.is_empty() || self.reader_cpus.is_empty() {
            let key = if self.nic_cpus.is_empty() { "nic.cpus" } else { "reader.cpus" };
            return bad(key, "must name at least one CPU".into());
        }
        if self.readers < self.sockets {
            return bad(
                "reader.threads",
                format!(
                    "must be at least `socket.count` ({}): a socket that nobody reads only drops",
                    self.sockets
                ),
            );
        }
        if self.rx_frames > 0 && self.rx_usecs == 0 && self.rx_frames > self.ring {
            return bad(
                "nic.rx_frames",
                format!(
                    "must be at most `nic.ring` ({}) when no time limits it: no interrupt would ever be raised (packets)",
                    self.ring
                ),
            );
        }
        if self.truesize.is_some_and(|truesize| truesize < self.size.max(1)) {
            return bad(
                "socket.truesize",
                "must be at least `arrivals.size`: it contains the payload (bytes)".into(),
            );
        }
        self.check_rates()
    }

    fn check_rates(&self) -> Result<(), ParameterError> {
        let bad = |key: &str, why: String| Err(ParameterError::Value { key: key.into(), why });
        let seconds = self.duration as f64 / 1e9;
        let fastest = match &self.law {
            Law::Mmpp(states) => states.iter().map(|(rate, _)| *rate).fold(0.0, f64::max),
            _ => self.rate,
        };
        if fastest * seconds > MOST_PACKETS {
            return bad(
                "duration",
                format!(
                    "times the rate of {fastest} packets/s is more than {MOST_PACKETS:e} packets; shorten one"
                ),
            );
        }
        if let Law::Tcp { window, .. } = self.law {
            let places = self.places();
            if window > places {
                return bad(
                    "arrivals.window",
                    format!(
                        "holds {window} packets, and `socket.rcvbuf` only {places}: TCP never sends more than fits"
                    ),
                );
            }
            if self.flows != 1 || self.sockets != 1 {
                return bad(
                    "arrivals.kind",
                    "`tcp` is one stream: `arrivals.flows` and `socket.count` must be 1".into(),
                );
            }
        }
        // A machine whose steps all take no time would never let its clock run.
        let no_time = self.reader_packet_ns == 0 && self.call_ns == 0;
        if no_time && self.exponential_service {
            return bad(
                "reader.packet_ns",
                "must be above 0 for an exponential service (time)".into(),
            );
        }
        Ok(())
    }

    /// Datagrams of `arrivals.size` that an unread socket holds.
    pub fn places(&self) -> u64 {
        let places = capacity(self.rcvbuf, self.truesize_of(self.size));
        places + u64::from(self.old_admission)
    }

    /// Kernel memory of a packet with this payload.
    pub fn truesize_of(&self, payload: u64) -> u64 {
        self.truesize.unwrap_or_else(|| estimated_truesize(payload))
    }

    /// CPUs of the machine: up to the highest that is named.
    pub fn cpus(&self) -> usize {
        let all = self.nic_cpus.iter().chain(&self.rps_cpus).chain(&self.reader_cpus);
        let all = all.chain(&self.background_cpus);
        all.max().map_or(1, |cpu| *cpu as usize + 1)
    }
}

fn law(v: &Read<'_>, truesize: u64) -> Result<Law, ParameterError> {
    let needs = |key: &'static str| v.optional(key).ok_or_else(|| missing(key));
    Ok(match v.text("arrivals.kind").as_str() {
        "cbr" => Law::Cbr { phase: v.ratio("arrivals.phase") },
        "onoff" => Law::OnOff { on: needs("arrivals.on")?, off: needs("arrivals.off")? },
        "mmpp" => match v.0.get("arrivals.states") {
            Some(Value::States(states)) => Law::Mmpp(states),
            _ => return Err(missing("arrivals.states")),
        },
        "trace" => match v.0.get("arrivals.file") {
            Some(Value::Text(file)) => Law::Trace { file },
            _ => return Err(missing("arrivals.file")),
        },
        "tcp" => {
            let holds = capacity(v.number("socket.rcvbuf"), truesize);
            let size = v.number("arrivals.size").max(1);
            let window = v.optional("arrivals.window").map_or(holds, |bytes| (bytes / size).max(1));
            Law::Tcp { window, rtt: v.number("arrivals.rtt") }
        }
        _ => Law::Poisson,
    })
}

fn missing(name: &'static str) -> ParameterError {
    let key = keys::find(name);
    ParameterError::Missing {
        key: name,
        what: key.map_or("", |key| key.what),
        unit: key.map_or_else(String::new, keys::Key::unit),
    }
}

/// Values by key and sort; every key asked for here has a default or is asked for as optional.
struct Read<'a>(&'a Values);

impl Read<'_> {
    fn optional(&self, key: &str) -> Option<u64> {
        match self.0.get(key) {
            Some(Value::Number(number)) => Some(number),
            _ => None,
        }
    }

    fn number(&self, key: &str) -> u64 {
        self.optional(key).unwrap_or_default()
    }

    fn ratio(&self, key: &str) -> f64 {
        if let Some(Value::Ratio(ratio)) = self.0.get(key) { ratio } else { 0.0 }
    }

    fn nice(&self, key: &str) -> i64 {
        if let Some(Value::Nice(nice)) = self.0.get(key) { nice } else { 0 }
    }

    fn flag(&self, key: &str) -> bool {
        matches!(self.0.get(key), Some(Value::Flag(true)))
    }

    fn text(&self, key: &str) -> String {
        if let Some(Value::Text(text)) = self.0.get(key) { text } else { String::new() }
    }

    fn cpus(&self, key: &str) -> Vec<u32> {
        if let Some(Value::Cpus(cpus)) = self.0.get(key) { cpus } else { Vec::new() }
    }
}

#[cfg(test)]
mod tests;
