//! The receive queues over a window.

use std::collections::BTreeMap;
use std::time::Instant;

use rxpath_core::{CpuList, Fact};
use rxpath_host::nic::{self, Nic};
use rxpath_host::queue_map::{self, DeviceQueues, QueueRate, Row, Shared};
use rxpath_host::{Root, sysfs};
use rxpath_record::watch::QueueRow;

use super::Window;

/// The devices are listed again after so many windows: asking a driver everything may cost milliseconds.
const AGAIN: u32 = 30;

/// The queues at the beginning of a window.
#[derive(Debug)]
pub struct Queues {
    reader: Result<nic::Reader, String>,
    nics: BTreeMap<String, Nic>,
    before: Vec<DeviceQueues>,
    topology: Shared,
    at: Instant,
    windows: u32,
}

impl Queues {
    pub fn start(root: &Root) -> Self {
        let mut queues = Self {
            reader: nic::Reader::open().map_err(|error| error.to_string()),
            nics: BTreeMap::new(),
            before: Vec::new(),
            topology: Shared::read(root),
            at: Instant::now(),
            windows: 0,
        };
        queues.list(root);
        queues.before = queues.map(root).0;
        queues
    }

    fn list(&mut self, root: &Root) {
        let Ok(reader) = &mut self.reader else { return };
        let names = sysfs::device::names(root).unwrap_or_default();
        self.nics.retain(|name, _| names.contains(name));
        for name in names.into_iter().filter(|name| name != "lo") {
            self.nics.insert(name.clone(), reader.device(&name));
        }
    }

    fn map(&mut self, root: &Root) -> (Vec<DeviceQueues>, BTreeMap<String, String>) {
        self.topology.refresh(root);
        let (mut maps, mut gaps) = (Vec::new(), BTreeMap::new());
        for (name, nic) in &self.nics {
            match queue_map::read(root, name, nic, &self.topology) {
                Ok(map) => maps.push(map),
                Err(error) => drop(gaps.insert(format!("queues of {name}"), error.to_string())),
            }
        }
        (maps, gaps)
    }

    /// The rows of the window that ends now, and what could not be read.
    pub fn until_now(
        &mut self,
        root: &Root,
        window: &Window<'_>,
    ) -> (Vec<QueueRow>, BTreeMap<String, String>) {
        self.windows += 1;
        if self.windows.is_multiple_of(AGAIN) {
            self.list(root);
        } else if let Ok(reader) = &mut self.reader {
            for (name, nic) in &mut self.nics {
                reader.counters(name, nic);
            }
        }
        let (now, mut gaps) = self.map(root);
        let span_s = self.at.elapsed().as_secs_f64();
        self.at = Instant::now();
        let rates = queue_map::rates(&self.before, &now, span_s);
        let rows = now.iter().flat_map(|device| device.rows.iter().map(move |row| (device, row)));
        let rows =
            rows.zip(&rates).map(|((device, row), rate)| one(device, row, rate, window)).collect();
        self.before = now;
        if let Err(why) = &self.reader {
            gaps.insert("queues".into(), why.clone());
        }
        (rows, gaps)
    }
}

fn one(device: &DeviceQueues, row: &Row, rate: &QueueRate, window: &Window<'_>) -> QueueRow {
    let cpus = match row.irq.clone() {
        Fact::Ok { value } => value.effective_cpus.map(|CpuList(cpus)| CpuList(cpus).to_string()),
        Fact::Absent { why } => Fact::absent(why),
        Fact::Denied { needs } => Fact::denied(needs),
    };
    QueueRow {
        device: device.device.clone(),
        queue: row.queue,
        napi_id: row.napi_id.clone(),
        irq: row.irq.clone().map(|irq| irq.irq),
        cpus,
        packets_pps: rate.packets_pps.clone(),
        drops_pps: rate.drops_pps.clone(),
        interrupts_per_s: rate.interrupts_per_s.clone(),
        packets_per_poll: per_poll(row, window),
    }
}

fn per_poll(row: &Row, window: &Window<'_>) -> Fact<f64> {
    let seen = match window.seen {
        Ok(seen) => seen,
        Err(why) => return Fact::absent(why),
    };
    let Some(id) = row.napi_id.value() else {
        return Fact::absent("its NAPI instance is not known");
    };
    let polls = seen.napis.iter().filter(|napi| napi.napi_id == *id);
    let (polls, packets) = polls
        .fold((0, 0), |(polls, packets), napi| (polls + napi.polls_count, packets + napi.packets));
    if polls == 0 {
        Fact::absent("not polled in the window")
    } else {
        Fact::ok(packets as f64 / polls as f64)
    }
}
