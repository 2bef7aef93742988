//! Fields derived from several keys, and values that contradict each other.

use super::{Law, Parameters, Release};
use crate::kinds::socket_capacity::{capacity, estimated_truesize};
use crate::sim::given::Values;
use crate::sim::values::{ParameterError, bad};

/// The most packets that one simulation may offer: about 20 minutes of computing.
const MOST_PACKETS: f64 = 1e10;
/// The most samples of a simulation: its time series have to fit a report.
const MOST_SAMPLES: u64 = 20_000;

impl Parameters {
    /// Puts values together and refuses what is missing or contradicts itself.
    pub fn new(values: &Values) -> Result<Self, ParameterError> {
        let law = law(values)?;
        let rate = match law {
            Law::Trace { .. } | Law::Mmpp(_) => 0.0,
            _ => values.needed("arrivals.rate")?,
        };
        let period = match values.value("reader.period") {
            Some(period) => period,
            None if values.is("reader.stall", 0) => 0,
            None => values.needed("reader.period")?,
        };
        values.needed::<u64>("reader.packet_ns")?;
        let mut all: Self = values.typed()?;
        all.jiffy = 1_000_000_000 / values.needed::<u64>("softirq.hz")?;
        let budget_us = values.value::<u64>("softirq.budget_usecs");
        all.budget_ns = budget_us.map_or(2 * all.jiffy, |us| us * 1000);
        all.sample = values.value("sample").unwrap_or((all.duration / 1000).max(1000));
        all.refill_by_poll = values.is("nic.refill", "poll");
        all.exhaustive = values.is("softirq.poll", "exhaustive");
        all.holds_back = values.is("softirq.ksoftirqd", "instead");
        all.old_admission = values.is("socket.admission", "old");
        all.exponential_service = values.is("reader.service", "exponential");
        let is_tcp = matches!(law, Law::Tcp { .. });
        all.release = match values.is("socket.release", "done") {
            true => Release::Done,
            // TCP gives memory back with each packet that is read (`sock_rfree`).
            false if values.is("socket.release", "lazy") && !is_tcp => Release::Lazy,
            false => Release::Read,
        };
        (all.law, all.rate, all.period, all.values) = (law, rate, period, values.clone());
        all.check()?;
        Ok(all)
    }

    /// Reads a parameter file's text.
    pub fn from_toml(text: &str) -> Result<Self, ParameterError> {
        Self::new(&Values::from_toml(text)?)
    }

    fn check(&self) -> Result<(), ParameterError> {
        if self.stall >= self.period && self.stall > 0 {
            return Err(bad(
                "reader.period",
                "must be longer than `reader.stall`: a reader that never runs reads nothing (time)",
            ));
        }
        if self.warmup >= self.duration {
            return Err(bad("warmup", "must be shorter than `duration` (time)"));
        }
        if self.duration / self.sample > MOST_SAMPLES {
            return Err(bad(
                "sample",
                format!(
                    "gives more than {MOST_SAMPLES} samples in `duration`; make it longer (time)"
                ),
            ));
        }
        if self.nic_cpus.is_empty() || self.reader_cpus.is_empty() {
            let key = if self.nic_cpus.is_empty() { "nic.cpus" } else { "reader.cpus" };
            return Err(bad(key, "must name at least one CPU"));
        }
        if self.readers < self.sockets {
            return Err(bad(
                "reader.threads",
                format!(
                    "must be at least `socket.count` ({}): a socket that nobody reads only drops",
                    self.sockets
                ),
            ));
        }
        if self.rx_frames > 0 && self.rx_usecs == 0 && self.rx_frames > self.ring {
            return Err(bad(
                "nic.rx_frames",
                format!(
                    "must be at most `nic.ring` ({}) when no time limits it: no interrupt would ever be raised (packets)",
                    self.ring
                ),
            ));
        }
        if self.truesize.is_some_and(|truesize| truesize < self.size.max(1)) {
            let why = "must be at least `arrivals.size`: it contains the payload (bytes)";
            return Err(bad("socket.truesize", why));
        }
        self.check_rates()
    }

    fn check_rates(&self) -> Result<(), ParameterError> {
        let seconds = self.duration as f64 / 1e9;
        let fastest = match &self.law {
            Law::Mmpp(states) => states.iter().map(|state| state.rate_pps).fold(0.0, f64::max),
            _ => self.rate,
        };
        if fastest * seconds > MOST_PACKETS {
            return Err(bad(
                "duration",
                format!(
                    "times the rate of {fastest} packets/s is more than {MOST_PACKETS:e} packets; shorten one"
                ),
            ));
        }
        if let Law::Tcp { window, .. } = self.law {
            let places = self.places();
            if window > places {
                return Err(bad(
                    "arrivals.window",
                    format!(
                        "holds {window} packets, and `socket.rcvbuf` only {places}: TCP never sends more than fits"
                    ),
                ));
            }
            if self.flows != 1 || self.sockets != 1 {
                let why = "`tcp` is one stream: `arrivals.flows` and `socket.count` must be 1";
                return Err(bad("arrivals.kind", why));
            }
        }
        // A machine whose steps all take no time would never let its clock run.
        if self.reader_packet_ns == 0 && self.call_ns == 0 && self.exponential_service {
            let why = "must be above 0 for an exponential service (time)";
            return Err(bad("reader.packet_ns", why));
        }
        Ok(())
    }

    /// Datagrams of `arrivals.size` that an unread socket holds.
    pub fn places(&self) -> u64 {
        capacity(self.rcvbuf, self.truesize_of(self.size)) + u64::from(self.old_admission)
    }

    /// Kernel memory of a packet with this payload.
    pub fn truesize_of(&self, payload: u64) -> u64 {
        self.truesize.unwrap_or_else(|| estimated_truesize(payload))
    }

    /// CPUs of the machine: up to the highest that is named.
    pub fn cpus(&self) -> usize {
        let all = self.nic_cpus.iter().chain(&self.rps_cpus).chain(&self.reader_cpus);
        all.chain(&self.background_cpus).max().map_or(1, |cpu| *cpu as usize + 1)
    }
}

fn law(values: &Values) -> Result<Law, ParameterError> {
    let kind: String = values.needed("arrivals.kind")?;
    Ok(match kind.as_str() {
        "cbr" => Law::Cbr { phase: values.needed("arrivals.phase")? },
        "onoff" => {
            Law::OnOff { on: values.needed("arrivals.on")?, off: values.needed("arrivals.off")? }
        }
        "mmpp" => Law::Mmpp(values.needed("arrivals.states")?),
        "trace" => Law::Trace { file: values.needed("arrivals.file")? },
        "tcp" => {
            let size: u64 = values.needed("arrivals.size")?;
            let truesize = values.value("socket.truesize").unwrap_or(estimated_truesize(size));
            let holds = capacity(values.needed("socket.rcvbuf")?, truesize);
            let window = values.value::<u64>("arrivals.window");
            let window = window.map_or(holds, |bytes| (bytes / size.max(1)).max(1));
            Law::Tcp { window, rtt: values.needed("arrivals.rtt")? }
        }
        _ => Law::Poisson,
    })
}
