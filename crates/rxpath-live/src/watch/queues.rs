//! The receive queues over a window.

use std::collections::BTreeMap;
use std::time::Instant;

use rxpath_core::Fact;
use rxpath_host::read::nic::{self, Nic};
use rxpath_host::read::queue_map::{self, DeviceQueues, HostTables, QueueRate, Row};
use rxpath_host::read::sysfs;
use rxpath_host::{HostError, Root};
use rxpath_record::watch::QueueRow;

use super::Window;
use super::links::LinkRates;

/// The devices are listed again after so many windows: asking a driver everything may cost milliseconds.
const AGAIN: u32 = 30;

/// Reads the receive queues once per window; the last reading is where the next window begins.
#[derive(Debug)]
pub struct QueueSampler {
    reader: Result<nic::Reader, String>,
    nics: BTreeMap<String, Nic>,
    before: Vec<DeviceQueues>,
    topology: HostTables,
    at: Instant,
    windows: u32,
}

impl QueueSampler {
    pub fn start(root: &Root) -> Self {
        let mut queues = Self {
            reader: nic::Reader::open().map_err(|error| error.to_string()),
            nics: BTreeMap::new(),
            before: Vec::new(),
            topology: HostTables::read(root),
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
                // It went since the devices were listed.
                Err(HostError::Missing { .. }) => {}
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
        let rows = unpolled(rows, &now, window.links);
        self.before = now;
        if let Err(why) = &self.reader {
            gaps.insert("queues".into(), why.clone());
        }
        (rows, gaps)
    }
}

fn one(device: &DeviceQueues, row: &Row, rate: &QueueRate, window: &Window<'_>) -> QueueRow {
    let cpus = row.irq.clone().and_then(|irq| irq.effective_cpus.map(|cpus| cpus.to_string()));
    let [packets_per_poll, exhausted_ratio] = polled(row, window);
    QueueRow {
        device: device.device.clone(),
        queue: row.queue,
        napi_id: row.napi_id.clone(),
        irq: row.irq.clone().map(|irq| irq.irq),
        cpus,
        packets_pps: rate.packets_pps.clone(),
        drops_pps: rate.drops_pps.clone(),
        interrupts_per_s: rate.interrupts_per_s.clone(),
        packets_per_poll,
        exhausted_ratio,
    }
}

/// The rows, with a gap where a counter does not count the packets: veth counts in its queues only what a NAPI polls
/// (drivers/net/veth.c `veth_xdp_rcv`), and without XDP or GRO it has none: packets go straight to the backlog.
fn unpolled(mut rows: Vec<QueueRow>, devices: &[DeviceQueues], links: &LinkRates) -> Vec<QueueRow> {
    for device in devices.iter().filter(|device| links.veths.contains(&device.device)) {
        let mut own: Vec<&mut QueueRow> =
            rows.iter_mut().filter(|row| row.device == device.device).collect();
        let rest = own.iter().all(|row| row.packets_pps.value() == Some(&0.0));
        let has_napi = own.iter().any(|row| row.napi_id.value().is_some());
        let polled: u64 = device.rows.iter().filter_map(|row| row.packets_total.value()).sum();
        let received = links.total_by_device.get(&device.device).copied().unwrap_or(0);
        let moving = links.by_device.get(&device.device).is_some_and(|pps| *pps > 0.0);
        if rest && !has_napi && (moving || (polled == 0 && received > 0)) {
            let why = "no NAPI polls it: its packets go through the backlog uncounted";
            for row in &mut own {
                row.packets_pps = Fact::absent(why);
            }
        }
    }
    rows
}

/// Of its polls: packets a poll, and the share that used up their budget.
fn polled(row: &Row, window: &Window<'_>) -> [Fact<f64>; 2] {
    let gap = |why: &str| [Fact::absent(why), Fact::absent(why)];
    let seen = match window.seen {
        Ok(seen) => seen,
        Err(why) => return gap(why),
    };
    let Some(id) = row.napi_id.value() else {
        return gap("its NAPI instance is not known");
    };
    let (mut polls, mut packets, mut exhausted) = (0, 0, 0);
    for napi in seen.napis.iter().filter(|napi| napi.napi_id == *id) {
        polls += napi.polls_count;
        packets += napi.packets;
        exhausted += napi.exhausted_count;
    }
    if polls == 0 {
        return gap("not polled in the window");
    }
    [packets, exhausted].map(|count| Fact::ok(count as f64 / polls as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(device: &str, napi_id: Fact<u32>) -> DeviceQueues {
        let absent = || "not asked".to_owned();
        let row = Row {
            queue: 0,
            napi_id,
            irq: Fact::absent(absent()),
            rss_share_ratio: Fact::absent(absent()),
            rps_cpus: Fact::absent(absent()),
            rps_flow_count: Fact::absent(absent()),
            xps_cpus: Fact::absent(absent()),
            packets_total: Fact::ok(0),
            drops_total: Fact::ok(0),
        };
        DeviceQueues {
            device: device.into(),
            driver: Fact::absent(absent()),
            node: Fact::absent(absent()),
            counters: Fact::ok("driver's statistics".into()),
            rows: vec![row],
        }
    }

    #[test]
    fn a_queue_that_no_napi_polls_has_a_gap_and_no_zero() {
        let links = |pps: f64, total: u64| LinkRates {
            veths: ["veth".to_owned()].into(),
            by_device: [("veth".into(), pps)].into(),
            total_by_device: [("veth".into(), total)].into(),
            ..LinkRates::default()
        };
        let shown = |device: &str, napi: Option<u32>, rates: [f64; 2], links: &LinkRates| {
            let napi = || Fact::of(napi, "none");
            let row = |rate: f64| QueueRow {
                device: device.into(),
                napi_id: napi(),
                packets_pps: Fact::ok(rate),
                ..QueueRow::default()
            };
            unpolled(rates.map(row).into(), &[named(device, napi())], links)
        };
        for idle_or_not in [links(60_000.0, 60_000), links(0.0, 60_000)] {
            let rows = shown("veth", None, [0.0; 2], &idle_or_not);
            let gap = |row: &QueueRow| row.packets_pps.gap().unwrap_or_default();
            assert!(rows.iter().all(|row| gap(row).contains("no NAPI polls it")), "{rows:?}");
        }
        for (device, napi, rates, links) in [
            ("veth", Some(7), [0.0; 2], links(60_000.0, 60_000)),
            ("eth0", None, [0.0; 2], links(60_000.0, 60_000)),
            // The other queue has all of it.
            ("veth", None, [0.0, 5.0], links(5.0, 60_000)),
            ("veth", None, [0.0; 2], links(0.0, 0)),
        ] {
            let rows = shown(device, napi, rates, &links);
            assert_eq!(rows[0].packets_pps, Fact::ok(0.0), "{device}");
        }
    }
}
