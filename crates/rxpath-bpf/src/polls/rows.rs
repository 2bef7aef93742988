//! The rows of polls in the maps of an object: of the probe of polls, or of the account of a live view, whose programs count
//! both (`bpf/polling.h`).

use rxpath_core::SortFew;
use rxpath_core::measured::IrqLine;
use rxpath_host::{HostError, Root};

use super::row::{cpu_row, irq, napi};
use super::{Plugged, PollsReading};
use crate::object::{Loaded, MapSpec, map};
use crate::room::Room;

/// A row for each CPU.
pub(crate) const POLLED: MapSpec = map("polled", 4, 2176);
/// NAPIs that found no place in the row of their CPU.
pub(crate) const NAPIS: MapSpec = map("napis", 16, 176);
/// Interrupt lines.
pub(crate) const LINES: MapSpec = map("irqs", 8, 304);

/// Run on each CPU when a turn begins and ends.
pub(crate) const BEGIN: &str = "begin_polls";
pub(crate) const END: &str = "end_polls";

/// NAPIs and interrupt lines, each on each CPU.
const ROOM: Room = Room { each_cpu: 1024, most: 8192 };

/// Sizes of the maps where polls are counted.
pub(crate) fn sizes() -> Result<[(&'static str, u32); 2], HostError> {
    let rows = ROOM.here()?;
    Ok([(NAPIS.name, rows), (LINES.name, rows)])
}

/// Sizes of the maps in an account without polls.
pub(crate) const WITHOUT: [(&str, u32); 3] = [(POLLED.name, 1), (NAPIS.name, 1), (LINES.name, 1)];

/// Reads them. Each method is for the object that has the maps.
#[derive(Debug)]
pub struct PollRows {
    /// Selected CPUs; empty for all.
    wanted: Vec<u32>,
    /// Those that were online at the start.
    online: Vec<u32>,
}

impl PollRows {
    /// Of all CPUs, those of [`Account::live`](crate::account::Account::live).
    ///
    /// **Errors** when the kernel does not say which CPUs are online.
    pub fn all() -> Result<Self, HostError> {
        Self::of(Vec::new())
    }

    /// Of these CPUs; of all if there are none.
    pub(super) fn of(wanted: Vec<u32>) -> Result<Self, HostError> {
        Ok(Self { wanted, online: online()? })
    }

    /// A duty cycle of an account begins: a softirq in progress counts from here on.
    ///
    /// **Errors** when counting cannot be switched on.
    pub fn begin_turn(&self, account: &Loaded) -> Result<(), HostError> {
        self.on_each_cpu(account, BEGIN);
        account.begin()
    }

    /// The duty cycle ends, also for a softirq in progress.
    ///
    /// **Errors** when counting cannot be switched off.
    pub fn end_turn(&self, account: &Loaded) -> Result<(), HostError> {
        account.pause()?;
        self.on_each_cpu(account, END);
        Ok(())
    }

    fn on_each_cpu(&self, account: &Loaded, program: &str) {
        // Those that came online as well.
        for cpu in online().unwrap_or_else(|_| self.online.clone()) {
            // On a CPU that goes offline nothing is in progress.
            let _ = account.run_on(program, cpu);
        }
    }

    /// Reads everything since the start.
    ///
    /// **Errors** when a map cannot be read.
    pub fn read(&self, loaded: &Loaded) -> Result<PollsReading, HostError> {
        let (mut cpus, mut napis) = (Vec::new(), Vec::new());
        for cpu in self.counted() {
            let (row, placed) = cpu_row(cpu, &loaded.value(POLLED.name, cpu)?);
            cpus.push(row);
            napis.extend(placed);
        }
        let others = loaded.entries(NAPIS.name)?;
        napis.extend(others.iter().map(|(key, value)| napi(key, value)));
        napis.retain(|napi| self.is_wanted(napi.cpu));
        napis.sort_few_by_key(|napi| (std::cmp::Reverse(napi.packets), napi.cpu, napi.napi_id));
        let irqs = loaded.entries(LINES.name)?;
        let mut irqs: Vec<IrqLine> = irqs.iter().map(|(key, value)| irq(key, value)).collect();
        irqs.retain(|irq| self.is_wanted(irq.cpu));
        irqs.sort_few_by_key(|irq| (std::cmp::Reverse(irq.interrupts_count), irq.cpu, irq.irq));
        Ok(PollsReading { cpus, napis, irqs })
    }

    /// What found no room since the start.
    ///
    /// **Errors** as [`Probe::lost`](crate::probe::Probe::lost).
    pub fn lost(&self, loaded: &Loaded) -> Result<u64, HostError> {
        let of = |cpu: &u32| Ok(cpu_row(*cpu, &loaded.value(POLLED.name, *cpu)?).0.lost_count);
        self.counted().iter().map(of).sum()
    }

    fn is_wanted(&self, cpu: u32) -> bool {
        self.wanted.is_empty() || self.wanted.contains(&cpu)
    }

    /// CPUs that were counted for a part of the time at least.
    fn counted(&self) -> Vec<u32> {
        let mut all = [self.online.clone(), self.plugged().came].concat();
        all.sort_unstable();
        all.retain(|cpu| self.is_wanted(*cpu));
        all
    }

    /// Which CPUs went offline or came online, as known now.
    pub(super) fn plugged(&self) -> Plugged {
        let now = online().unwrap_or_else(|_| self.online.clone());
        let without = |of: &[u32], others: &[u32]| {
            of.iter().copied().filter(|cpu| !others.contains(cpu)).collect()
        };
        Plugged { gone: without(&self.online, &now), came: without(&now, &self.online) }
    }
}

fn online() -> Result<Vec<u32>, HostError> {
    Ok(Root::host().cpus("/sys/devices/system/cpu/online")?.0)
}
