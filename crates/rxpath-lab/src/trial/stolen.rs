//! Stolen time of a trial: the account of every task around the measured window, with the victim in it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rxpath_bpf::Probe;
use rxpath_bpf::account::calibrate::IrqCalibration;
use rxpath_bpf::account::{Account, Reading};
use rxpath_bpf::cost::{PartMeter, own_cpu};
use rxpath_bpf::steal::{self, Steal, StealInputs};
use rxpath_core::measured::{CpuBreakdown, TaskKind, TaskTime};
use rxpath_core::{IntoMap, Nanos, ReportedTime, Warning};
use rxpath_host::lab::owner::Owner;
use rxpath_host::read::procfs::softnet;
use rxpath_host::{HostError, Root};
use rxpath_record::stolen::{CpuPaid, StolenCpuTime, VictimRecord};

use super::victim::{Running, Victim};
use crate::error::LabError;
use crate::output::Metrics;

/// Tasks with less time than this share of the window are one row.
const LITTLE: f64 = 0.001;

/// The account, and what the window needs.
pub struct StolenTime {
    account: Account,
    calibration: IrqCalibration,
    victim: Option<Victim>,
    open: Option<Open>,
}

/// The window while it lasts.
struct Open {
    before: Reading,
    handled: BTreeMap<u32, u32>,
    reader_cpu: Duration,
    begun: Instant,
    meter: PartMeter,
    victim: Option<Running>,
}

impl StolenTime {
    /// Loads, attaches, and begins to count.
    pub fn start(calibration: IrqCalibration, victim: Option<Victim>) -> Result<Self, HostError> {
        Ok(Self { account: Account::start()?, calibration, victim, open: None })
    }

    /// Begins the window; the victim runs all of it.
    pub fn open(&mut self, measure: Nanos, owner: Option<&Owner>) -> Result<(), LabError> {
        let cpu_before = own_cpu();
        let meter = PartMeter::start(&[self.account.loaded()], measure.as_duration());
        let (handled, before) = (handled(), self.account.read()?);
        let victim = self.victim.as_ref().map(|it| it.start(measure, owner)).transpose()?;
        self.open = Some(Open {
            before,
            handled,
            reader_cpu: own_cpu().saturating_sub(cpu_before),
            begun: Instant::now(),
            meter,
            victim,
        });
        Ok(())
    }

    /// The cost is measured in the first part of the window only.
    pub fn note(&mut self) {
        if let Some(open) = &mut self.open {
            open.meter.note();
        }
    }

    /// The victim's process, where it has one of its own.
    pub fn victim_pid(&self) -> Option<i32> {
        self.open.as_ref()?.victim.as_ref()?.pid()
    }

    /// Ends the window, once the victim is done, and says who paid.
    pub fn close(self, warnings: &mut Vec<Warning>) -> Result<StolenCpuTime, LabError> {
        let Some(mut open) = self.open else { return Ok(StolenCpuTime::default()) };
        let ended = open.victim.map(Running::finish).transpose()?;
        let cpu_before = own_cpu();
        let (after, handled) = (self.account.read()?, handled());
        let reader_cpu = open.reader_cpu + own_cpu().saturating_sub(cpu_before);
        let map_bytes = self.account.map_bytes();
        let cost = open.meter.stop().over(open.begun.elapsed(), map_bytes, reader_cpu);
        let (steal, found) = steal::answer(StealInputs {
            before: &open.before,
            after: &after,
            calibration: self.calibration,
            cost,
            probes: self.account.programs(),
            flows_looked: Duration::ZERO,
        });
        warnings.extend(found);
        let mut stolen = record(&steal);
        for cpu in &mut stolen.cpus {
            let of = |lines: &BTreeMap<u32, u32>| lines.get(&cpu.row.cpu).copied();
            let both = of(&handled).zip(of(&open.handled));
            cpu.landed_packets = both.map(|(now, then)| u64::from(now.wrapping_sub(then)));
        }
        stolen.victim = ended.zip(self.victim).map(|(ended, Victim { cpu, .. })| {
            let deferred = steal.cpus.iter().find(|row| row.cpu == cpu);
            let deferred_s = deferred.map_or(0.0, |row| row.deferred_s);
            VictimRecord { deferred_s, ..ended.record(cpu, &steal.tasks, warnings) }
        });
        Ok(stolen)
    }
}

/// Packets that each CPU's softirqs have handled; empty where it can't be read.
fn handled() -> BTreeMap<u32, u32> {
    let lines = softnet::read(&Root::host()).unwrap_or_default();
    lines.into_iter().map(|(cpu, line)| (cpu, line.processed)).into_map()
}

fn record(steal: &Steal) -> StolenCpuTime {
    let cpu = |row: &CpuBreakdown| CpuPaid { row: row.clone(), landed_packets: None };
    StolenCpuTime {
        window_s: steal.window_s,
        victim: None,
        cpus: steal.cpus.iter().map(cpu).collect(),
        tasks: tasks(steal),
        interrupt: steal.calibration.clone(),
        probe: steal.probe_cost.clone(),
    }
}

/// Those with time of their own; the others together.
fn tasks(steal: &Steal) -> Vec<TaskTime> {
    let least = steal.window_s * LITTLE;
    let much = |task: &&TaskTime| task.time.on_cpu_s >= least || task.kind == TaskKind::Idle;
    let all = || steal.tasks.iter().map(|task| &task.row);
    let mut rows: Vec<TaskTime> = all().filter(much).cloned().collect();
    let mut rest =
        TaskTime { comm: "all others".into(), kind: TaskKind::Rest, ..TaskTime::default() };
    for little in all().filter(|task| !much(task)) {
        rest.time += little.time;
        rest.cpus.extend(&little.cpus);
    }
    rest.cpus.sort_unstable();
    rest.cpus.dedup();
    if rest.time.on_cpu_s > 0.0 {
        rows.push(rest);
    }
    rows
}

/// The metrics that follow: what the victim got, and what the traffic cost. `receivers` are the threads of the receiver, to
/// whom so many bits of payload were delivered per second, 0 where nobody counts bits, and so many datagrams or segments.
pub fn metrics(
    stolen: &StolenCpuTime,
    receivers: &[i32],
    [bits, packets]: [f64; 2],
    all: &mut Metrics,
) {
    let mut put = |name: &str, value: f64| {
        if value.is_finite() {
            all.insert(name.into(), value);
        }
    };
    let network_s: f64 = stolen.cpus.iter().map(|cpu| cpu.row.time.network_s()).sum();
    let is_theirs = |task: &&TaskTime| receivers.contains(&(task.pid as i32));
    let own_s: f64 = stolen.tasks.iter().filter(is_theirs).map(|task| task.time.own_s).sum();
    let millions = packets / 1e6 * stolen.window_s;
    if millions > 0.0 {
        put("receive_cpu_s_per_mpacket", (network_s + own_s) / millions);
    }
    let taken_s = stolen.victim.as_ref().map(VictimRecord::taken_s);
    for (per, rate) in [("gbit", bits / 1e9), ("mpacket", packets / 1e6)] {
        let amount = rate * stolen.window_s;
        if amount > 0.0 {
            put(&format!("network_cpu_s_per_{per}"), network_s / amount);
            if let Some(taken_s) = taken_s {
                put(&format!("victim_taken_s_per_{per}"), taken_s / amount);
            }
        }
    }
    let Some(victim) = &stolen.victim else { return };
    if victim.row.asked_s > 0.0 {
        put("victim_got_ratio", victim.got_s() / victim.row.asked_s);
        put("victim_taken_ratio", victim.taken_s() / victim.row.asked_s);
    }
    let claimed = |of: fn(&ReportedTime) -> f64| victim.row.claims.iter().map(of).sum::<f64>();
    put("victim_claimed_ratio", claimed(|claim| claim.got_s) / claimed(|claim| claim.asked_s));
    let landed = |cpu: &CpuPaid| cpu.landed_packets.map(|packets| packets as f64);
    let everywhere: f64 = stolen.cpus.iter().filter_map(landed).sum();
    let here = stolen.cpus.iter().find(|cpu| cpu.row.cpu == victim.cpu).and_then(landed);
    if let Some(here) = here.filter(|_| everywhere > 0.0) {
        put("landed_on_victim_ratio", here / everywhere);
    }
}

#[cfg(test)]
mod tests {
    use rxpath_core::Division;
    use rxpath_core::measured::VictimTime;

    use super::*;

    #[test]
    fn costs_are_of_what_was_delivered_in_the_window() {
        let cpu = |cpu, net_rx_s, landed| {
            let time = Division { on_cpu_s: 2.0, net_rx_s, ..Division::default() };
            let row = CpuBreakdown { cpu, time, ..CpuBreakdown::default() };
            CpuPaid { row, landed_packets: Some(landed) }
        };
        let task = |pid, own_s| TaskTime {
            pid,
            time: Division { own_s, ..Division::default() },
            ..TaskTime::default()
        };
        let stolen = StolenCpuTime {
            window_s: 2.0,
            victim: Some(VictimRecord {
                cpu: 1,
                row: VictimTime {
                    asked_s: 2.0,
                    got_by_work_s: Some(1.5),
                    time: Division { net_rx_s: 0.3, ..Division::default() },
                    ..VictimTime::default()
                },
                deferred_s: 0.1,
                ..VictimRecord::default()
            }),
            cpus: vec![cpu(0, 0.2, 25), cpu(1, 0.4, 75)],
            tasks: vec![task(7, 0.5), task(8, 0.9)],
            ..StolenCpuTime::default()
        };
        let mut all = BTreeMap::new();
        metrics(&stolen, &[7], [1e9, 50_000.0], &mut all);
        for (name, value) in [
            ("network_cpu_s_per_gbit", 0.3),
            ("network_cpu_s_per_mpacket", 6.0),
            ("receive_cpu_s_per_mpacket", 11.0),
            ("victim_taken_s_per_gbit", 0.2),
            ("victim_taken_s_per_mpacket", 4.0),
            ("victim_got_ratio", 0.75),
            ("victim_taken_ratio", 0.2),
            ("landed_on_victim_ratio", 0.75),
        ] {
            assert!((all[name] - value).abs() < 1e-9, "{name}: {all:?}");
        }
        let mut none = BTreeMap::new();
        metrics(&StolenCpuTime { victim: None, ..stolen }, &[7], [0.0; 2], &mut none);
        assert!(none.is_empty(), "no rate is no cost: {none:?}");
    }
}
