//! `rxpath check --queues`: which CPU serves which queue, and how many packets arrive.

use std::collections::BTreeMap;
use std::time::Instant;

use rxpath_core::IntoMap;
use rxpath_core::envelope::schema_id;
use rxpath_host::Root;
use rxpath_host::read::nic::{self, Nic};
use rxpath_host::read::queue_map::{self, DeviceQueues, HostTables};
use rxpath_host::read::sysfs;
use serde::Deserialize;

use crate::cmd::prelude::*;
use crate::cmd::values::Wait;
use crate::output::queues as print;

/// The devices to show and the interval.
#[derive(Debug)]
pub struct QueueCheckOptions<'a> {
    /// The host.
    pub root: &'a Root,
    /// Only these devices; if empty, all except loopback.
    pub devices: &'a [String],
    /// Between two readings.
    pub interval: Option<Duration>,
    /// JSON instead of a table.
    pub json: bool,
}

/// The result of `check --queues`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct QueueCheckResult {
    /// Devices with their queues.
    pub devices: Vec<DeviceQueues>,
    /// Devices that were not named and have no receive queues of their own: bridges, bonds, ifb.
    pub passed_over: Vec<String>,
}

/// Virtual devices with receive queues in which packets wait, by driver.
///
/// **Source** drivers/net/veth.c `veth_poll`, drivers/net/tun.c `tun_napi_poll`. Other drivers hand packets on where
/// they arrive (rx_handler), or only send.
const WITH_QUEUES: [&str; 2] = ["veth", "tun"];

/// Separates devices with receive queues of their own from others; used when no device was named.
fn split(root: &Root, nics: &mut BTreeMap<String, Nic>) -> Vec<String> {
    let has_queues = |name: &String, nic: &Nic| {
        root.exists(&format!("/sys/class/net/{name}/device"))
            || nic.driver.value().is_some_and(|told| WITH_QUEUES.contains(&told.driver.as_str()))
            || nic.queues.value().is_some_and(|all| all.iter().any(|one| one.napi_id.is_some()))
    };
    let over: Vec<String> = nics
        .iter()
        .filter(|(name, nic)| !has_queues(name, nic))
        .map(|(name, _)| name.clone())
        .collect();
    nics.retain(|name, _| !over.contains(name));
    over
}

/// The devices shown, and those skipped.
fn chosen(
    ask: &QueueCheckOptions<'_>,
    names: &[String],
) -> Result<(BTreeMap<String, Nic>, Vec<String>), Failure> {
    let mut nics = nics(ask.root, names)?;
    let over = if ask.devices.is_empty() { split(ask.root, &mut nics) } else { Vec::new() };
    if nics.is_empty() {
        return Err(Failure::cannot("no network device here has receive queues of its own")
            .hint(format!("--dev shows {}", over.join(", "))));
    }
    Ok((nics, over))
}

/// Prints the map once or repeatedly.
pub fn run(ask: &QueueCheckOptions<'_>) -> Outcome {
    let names = names(ask)?;
    match ask.interval {
        None => once(ask, &names),
        Some(_) if !ask.root.is_live() => {
            Err(Failure::usage("--interval: a captured tree does not change")
                .hint("leave --interval out to show the counters of the capture"))
        }
        Some(interval) => again(ask, &names, interval),
    }
}

/// The devices shown.
pub fn names(ask: &QueueCheckOptions<'_>) -> Result<Vec<String>, Failure> {
    let all = sysfs::device::names(ask.root)?;
    if let Some(missing) = ask.devices.iter().find(|name| !all.contains(name)) {
        return Err(Failure::usage(format!("--dev {missing}: no such network device here"))
            .hint(format!("devices here: {}", all.join(", "))));
    }
    let wanted = |name: &String| {
        if ask.devices.is_empty() { name != "lo" } else { ask.devices.contains(name) }
    };
    let names: Vec<String> = all.into_iter().filter(wanted).collect();
    if names.is_empty() {
        return Err(Failure::cannot("no network device but loopback")
            .hint("--dev lo shows the loopback device"));
    }
    Ok(names)
}

/// One reading of all devices; a device that went away is a warning.
pub fn read(
    ask: &QueueCheckOptions<'_>,
    nics: &BTreeMap<String, Nic>,
    shared: &HostTables,
) -> (Vec<DeviceQueues>, Vec<Warning>) {
    let mut warnings = Vec::new();
    let mut devices = Vec::new();
    for (name, nic) in nics {
        match queue_map::read(ask.root, name, nic, shared) {
            Ok(found) => devices.push(found),
            Err(error) => warnings.push(Warning::new("device-lost", format!("{name}: {error}"))),
        }
    }
    (devices, warnings)
}

/// The answers of these devices' drivers.
pub fn nics(root: &Root, names: &[String]) -> Result<BTreeMap<String, Nic>, Failure> {
    let mut reader = if root.is_live() { Some(nic::Reader::open()?) } else { None };
    let answers = names.iter().map(|name| {
        let nic = match reader.as_mut() {
            Some(reader) => reader.device(name),
            None => nic::load(root, name).unwrap_or_else(|e| Nic::all_gaps(&e.to_string())),
        };
        (name.clone(), nic)
    });
    Ok(answers.into_map())
}

fn once(ask: &QueueCheckOptions<'_>, names: &[String]) -> Outcome {
    let (nics, passed_over) = chosen(ask, names)?;
    let (devices, warnings) = read(ask, &nics, &HostTables::read(ask.root));
    let settings = json!({ "devices": nics.keys().collect::<Vec<_>>() });
    let result = QueueCheckResult { devices, passed_over };
    let answer = Envelope::new("check-queues", settings, result, warnings);
    output::answer(ask.json, &answer, |it| {
        print::tables(&it.devices, None) + &print::passed_over(&it.passed_over)
    })?;
    Ok(Exit::Done)
}

/// A reading with its time.
struct Reading {
    at: Instant,
    devices: Vec<DeviceQueues>,
}

fn again(ask: &QueueCheckOptions<'_>, names: &[String], interval: Duration) -> Outcome {
    let interrupt = Interrupt::catch()?;
    let mut reader = nic::Reader::open()?;
    let (mut nics, passed_over) = chosen(ask, names)?;
    let take = |nics: &BTreeMap<String, Nic>| {
        let (devices, warnings) = read(ask, nics, &HostTables::read(ask.root));
        (Reading { at: Instant::now(), devices }, warnings)
    };
    let (mut before, warnings) = take(&nics);
    if ask.json {
        let interval_s = interval.as_secs_f64();
        let schema = schema_id("check-queues");
        let names: Vec<&String> = nics.keys().collect();
        output::json_line(&json!({
            "type": "settings", "schema": schema, "devices": names, "passed_over": passed_over,
            "interval_s": interval_s,
        }))?;
    } else {
        output::text(&print::passed_over(&passed_over))?;
    }
    warnings.iter().for_each(output::warning);
    let (mut due, mut wait) = (before.at + interval, Wait::new(&interrupt));
    loop {
        wait.until_time(due)?;
        if let Some(signal) = wait.signal() {
            return Ok(Exit::Signal(signal));
        }
        due += interval;
        for (name, nic) in &mut nics {
            reader.counters(name, nic);
        }
        let (now, warnings) = take(&nics);
        let span_s = (now.at - before.at).as_secs_f64();
        let rates = queue_map::rates(&before.devices, &now.devices, span_s);
        if ask.json {
            output::json_line(&json!({"type": "interval", "span_s": span_s, "queues": rates}))?;
        } else {
            output::text(&print::tables(&now.devices, Some(&rates)))?;
        }
        warnings.iter().for_each(output::warning);
        before = now;
    }
}
