//! `rxpath check --queues`: which CPU serves which queue, and how many packets arrive.

use std::collections::BTreeMap;
use std::time::Instant;

use rxpath_core::envelope::schema_id;
use rxpath_host::Root;
use rxpath_host::read::nic::{self, Nic};
use rxpath_host::read::queue_map::{self, DeviceQueues, HostTables, pass_over, read_all};
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

/// The devices shown, and those skipped.
fn chosen(
    ask: &QueueCheckOptions<'_>,
    names: &[String],
) -> Result<(BTreeMap<String, Nic>, Vec<String>), Failure> {
    let mut nics = nic::named(ask.root, names)?;
    let over = if ask.devices.is_empty() { pass_over(ask.root, &mut nics) } else { Vec::new() };
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

fn once(ask: &QueueCheckOptions<'_>, names: &[String]) -> Outcome {
    let (nics, passed_over) = chosen(ask, names)?;
    let (devices, warnings) = read_all(ask.root, &nics, &HostTables::read(ask.root));
    let settings = json!({ "devices": nics.keys().collect::<Vec<_>>() });
    let result = QueueCheckResult { devices, passed_over };
    let answer = Envelope::new("check-queues", settings, result, warnings);
    output::answer(ask.json, &answer, |it| {
        print::tables(&it.devices, None) + &print::passed_over(&it.passed_over)
    })?;
    Ok(Exit::Done)
}

fn again(ask: &QueueCheckOptions<'_>, names: &[String], interval: Duration) -> Outcome {
    let interrupt = Interrupt::catch()?;
    let mut reader = nic::Reader::open()?;
    let (mut nics, passed_over) = chosen(ask, names)?;
    let take = |nics: &BTreeMap<String, Nic>| {
        let (devices, warnings) = read_all(ask.root, nics, &HostTables::read(ask.root));
        (Instant::now(), devices, warnings)
    };
    let (mut at, mut devices, warnings) = take(&nics);
    if ask.json {
        let names: Vec<&String> = nics.keys().collect();
        output::json_line(&json!({
            "type": "settings", "schema": schema_id("check-queues"), "devices": names,
            "passed_over": passed_over, "interval_s": interval.as_secs_f64(),
        }))?;
    } else {
        output::text(&print::passed_over(&passed_over))?;
    }
    warnings.iter().for_each(output::warning);
    let (mut due, mut wait) = (at + interval, Wait::new(&interrupt));
    loop {
        wait.until_time(due)?;
        if let Some(signal) = wait.signal() {
            return Ok(Exit::Signal(signal));
        }
        due += interval;
        for (name, nic) in &mut nics {
            reader.counters(name, nic);
        }
        let (now, later, warnings) = take(&nics);
        let span_s = (now - at).as_secs_f64();
        let rates = queue_map::rates(&devices, &later, span_s);
        if ask.json {
            output::json_line(&json!({"type": "interval", "span_s": span_s, "queues": rates}))?;
        } else {
            output::text(&print::tables(&later, Some(&rates)))?;
        }
        warnings.iter().for_each(output::warning);
        (at, devices) = (now, later);
    }
}
