//! The host as changes would make it: rules are asked about a plan before anything is written.
//!
//! Counters stay as they are, and so does what only the driver knows. Interrupts of a device whose channels change are not
//! known: the driver makes new ones.

use rxpath_core::{CpuList, Fact};
use rxpath_host::read::netlink::ethtool::Channels;
use rxpath_host::read::procfs::sysctl;
use rxpath_host::read::sysfs::device::{RxQueue, parse_mask};
use rxpath_host::{Group, Target};
use serde_json::{Value as Json, json};

use super::{Device, HostFacts};
use crate::knob::Set;

/// Why interrupts are not known behind a change of the channels.
const NEW_LINES: &str =
    "the driver creates new interrupts with the channels: check again after the change";

impl HostFacts {
    /// The same host once these changes are made.
    #[must_use]
    pub fn planned<'a>(&self, changes: impl IntoIterator<Item = &'a Set>) -> Self {
        let mut host = self.clone();
        changes.into_iter().for_each(|set| host.make(set));
        host
    }

    fn make(&mut self, set: &Set) {
        let target = &set.knob.target;
        match (target, target.path()) {
            (Target::Sysctl { key }, _) => self.hold(&sysctl::path(key), set.value.clone()),
            (_, Some(path)) => self.write(&path.to_string_lossy(), set.value.clone()),
            (Target::Group { dev, group }, None) => {
                if let Some(device) = self.devices.iter_mut().find(|one| one.name == *dev) {
                    device.answer(*group, set.knob.part.as_deref().unwrap_or_default(), &set.value);
                }
            }
            (_, None) => {}
        }
    }

    /// The file holds this from now on.
    fn hold(&self, path: &str, text: String) {
        self.files.borrow_mut().insert(path.to_owned(), Fact::ok(text));
    }

    fn write(&mut self, path: &str, text: String) {
        if let Some(irq) = path.strip_prefix("/proc/irq/").and_then(|rest| rest.split('/').next()) {
            let (number, cpus) = (irq.parse().ok(), text.parse().unwrap_or_default());
            self.devices.iter_mut().for_each(|device| device.move_irq(number, &cpus));
        }
        for device in &mut self.devices {
            if let Some(name) = path.strip_prefix(&device.path("")) {
                device.attribute(name, &text);
            }
        }
        if path.ends_with("/smt/control") {
            self.hold(&path.replace("control", "active"), "0".into());
        }
        let before = self.text(path).into_value();
        self.hold(path, chosen(before.as_deref(), text));
    }
}

/// `always [madvise] never`: files of words show the chosen one among the others.
fn chosen(before: Option<&str>, value: String) -> String {
    let Some(before) = before.filter(|text| text.contains('[')) else { return value };
    let words = before.split_whitespace().map(|word| word.trim_matches(['[', ']']));
    let shown = words.map(|word| if word == value { format!("[{word}]") } else { word.into() });
    shown.collect::<Vec<_>>().join(" ")
}

/// Puts the fields of `patch` into `target`, those of objects one by one.
fn merge(target: &mut Json, patch: Json) {
    match (target, patch) {
        (Json::Object(fields), Json::Object(patch)) => {
            for (name, value) in patch {
                merge(fields.entry(name).or_insert(Json::Null), value);
            }
        }
        (target, patch) => *target = patch,
    }
}

impl Device {
    /// A setting of a group as it is, in the words of the setting, and its largest value; `None` where that is not known.
    pub(crate) fn setting(&self, group: Group, part: &str) -> Option<(String, Option<u64>)> {
        let (answer, field, inner) = place(group, part)?;
        let answers = json!(self.nic);
        let whole = &answers[answer]["value"][field];
        let text = match inner.map_or(whole, |inner| &whole[inner]) {
            Json::Bool(on) => if *on { "on" } else { "off" }.to_owned(),
            Json::Number(number) => number.to_string(),
            _ => return None,
        };
        Some((text, whole["max"].as_u64()))
    }

    fn move_irq(&mut self, number: Option<u32>, cpus: &CpuList) {
        let goes = || Fact::ok(cpus.clone());
        if let Fact::Ok { value } = &mut self.irqs {
            for irq in value.iter_mut().filter(|irq| Some(irq.number) == number) {
                irq.masks.allowed_cpus = goes();
                irq.masks.effective_cpus = goes();
            }
        }
        for row in &mut self.queues.rows {
            if let Fact::Ok { value } = &mut row.irq
                && Some(value.irq) == number
            {
                value.allowed_cpus = goes();
                value.effective_cpus = goes();
            }
        }
    }

    /// A file below `/sys/class/net/DEV`.
    fn attribute(&mut self, name: &str, text: &str) {
        let sysfs = &mut self.sysfs;
        let queue = |prefix: &str| {
            let (number, file) = name.strip_prefix(prefix)?.split_once('/')?;
            Some((number.parse::<u32>().ok()?, file))
        };
        if let Some((number, file)) = queue("queues/rx-") {
            for rx in sysfs.steering.rx_queues.iter_mut().filter(|rx| rx.index == number) {
                match file {
                    "rps_cpus" => rx.rps_cpus = Fact::ok(parse_mask(text).unwrap_or_default()),
                    "rps_flow_cnt" => rx.rps_flow_count = Fact::ok(text.parse().unwrap_or(0)),
                    _ => {}
                }
            }
        } else if let Some((number, "xps_cpus")) = queue("queues/tx-") {
            for tx in sysfs.steering.tx_queues.iter_mut().filter(|tx| tx.index == number) {
                tx.xps_cpus = Fact::ok(parse_mask(text).unwrap_or_default());
            }
        }
        let number = || text.parse().unwrap_or(0);
        match name {
            "threaded" => sysfs.steering.threaded = Fact::ok(number()),
            "napi_defer_hard_irqs" => sysfs.napi_defer_hard_irqs = Fact::ok(number()),
            "tx_queue_len" => sysfs.tx_queue_len_packets = Fact::ok(number()),
            "gro_flush_timeout" => sysfs.gro_flush_timeout_ns = Fact::ok(number().into()),
            _ => {}
        }
    }

    /// What the driver would answer.
    fn answer(&mut self, group: Group, part: &str, value: &str) {
        let before = self.nic.channels.value().and_then(Channels::receiving);
        let Some(patch) = answered(group, part, value) else { return };
        let Ok(mut nic) = serde_json::to_value(&self.nic) else { return };
        merge(&mut nic, patch);
        if let Ok(nic) = serde_json::from_value(nic) {
            self.nic = nic;
        }
        match (group, part) {
            (Group::Link, "mtu") => {
                self.sysfs.mtu_bytes = Fact::ok(value.parse().unwrap_or(u32::MAX));
            }
            (Group::Rss, "indir") => self.spread_table(value),
            (Group::Channels, _) => self.rebuild_queues(before),
            _ => {}
        }
    }

    /// `equal:N` and `default`, as the kernel spreads them.
    fn spread_table(&mut self, text: &str) {
        let queues = self.nic.channels.value().and_then(Channels::receiving);
        let equal = text.strip_prefix("equal:").and_then(|number| number.parse().ok()).or(queues);
        if let (Fact::Ok { value }, Some(queues)) = (&mut self.nic.rss, equal.filter(|n| *n > 0)) {
            let entries = value.table.len() as u32;
            value.table = (0..entries).map(|entry| entry % queues).collect();
        }
    }

    /// The driver recreates its queues: with new interrupts, and a table over all of them unless one had been set
    /// (`netif_is_rxfh_configured`, net/ethtool/channels.c).
    fn rebuild_queues(&mut self, before: Option<u32>) {
        let Some(now) = self.nic.channels.value().and_then(Channels::receiving) else {
            return;
        };
        let was_even = self.nic.rss.value().is_some_and(|rss| {
            let shares = rss.shares(before.unwrap_or(1));
            let (least, most) = (shares.iter().min(), shares.iter().max());
            least.zip(most).is_some_and(|(least, most)| most - least <= 1)
        });
        if was_even {
            self.spread_table("default");
        }
        let sysfs = &mut self.sysfs.steering.rx_queues;
        for index in sysfs.len() as u32..now {
            let (rps_cpus, rps_flow_count) = (Fact::ok(CpuList::default()), Fact::ok(0));
            sysfs.push(RxQueue { index, rps_cpus, rps_flow_count });
        }
        let row = self.queues.rows.first().cloned();
        self.queues.rows.resize_with(now as usize, || row.clone().unwrap_or_else(no_row));
        for (index, row) in self.queues.rows.iter_mut().enumerate() {
            row.queue = index as u32;
            row.irq = Fact::absent(NEW_LINES);
        }
        self.irqs = Fact::absent(NEW_LINES);
    }
}

fn no_row() -> rxpath_host::read::queue_map::Row {
    rxpath_host::read::queue_map::Row {
        queue: 0,
        napi_id: Fact::absent(NEW_LINES),
        irq: Fact::absent(NEW_LINES),
        rss_share_ratio: Fact::absent(NEW_LINES),
        rps_cpus: Fact::ok(CpuList::default()),
        rps_flow_count: Fact::ok(0),
        xps_cpus: Fact::absent(NEW_LINES),
        packets_total: Fact::absent(NEW_LINES),
        drops_total: Fact::absent(NEW_LINES),
    }
}

/// The fields of a device's answers that a setting shows in, with its value there.
fn answered(group: Group, part: &str, value: &str) -> Option<Json> {
    let value = match value {
        "on" | "off" => json!(value == "on"),
        text => text.parse::<u64>().map_or_else(|_| json!(text), |number| json!(number)),
    };
    Some(match group {
        Group::Features => {
            json!({"features": {"value": {part: {"active": value, "wanted": value}}}})
        }
        Group::Eee => json!({"eee": {"value": {"enabled": value, "active": value}}}),
        Group::FlowHash => json!({"flow_hash": {part: {"state": "ok", "value": value}}}),
        Group::Rss => json!({}),
        _ => {
            let (answer, field, inner) = place(group, part)?;
            let value = inner.map_or_else(|| value.clone(), |inner| json!({inner: value}));
            json!({answer: {"value": {field: value}}})
        }
    })
}

/// Where a setting shows in [`rxpath_host::read::nic::Nic`]: the answer, the field of its value, and the field in that.
fn place(group: Group, part: &str) -> Option<(&'static str, String, Option<&'static str>)> {
    let (answer, inner) = group.properties().shown?;
    let field = part.replace('-', "_");
    let field = match group {
        Group::Features | Group::PrivFlags => part.to_owned(),
        Group::Coalesce => field.replace("_frames", "_max_frames"),
        Group::LinkModes if part == "speed" => "speed_mbps".into(),
        Group::Link if part == "mtu" => "mtu_bytes".into(),
        Group::Link => field.replace("_size", "_bytes"),
        _ => field,
    };
    Some((answer, field, inner))
}
