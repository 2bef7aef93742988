//! From merged settings to the typed lab and workloads of the resolved form.

use std::collections::BTreeMap;

use rxpath_core::{CpuList, Nanos, Warning};

use super::error::Flaw;
use super::keys::KEYS;
use super::merge::Overlay;
use super::offers::NO_FLOW_RULES;
use super::place::{Misplaced, Places};
use super::spec::{
    Background, Datagrams, External, Lab, Observe, Own, Parser, Policy, Protocol, Topology, Trials,
    Upper, Workload,
};
use super::value::{Setting, Value};

/// Port of the published experiments.
const PORT: u16 = 4321;
/// Payload of the published experiments, bytes.
const SIZE: u64 = 32;

/// A thousand samples a second.
const SAMPLE_INTERVAL: Nanos = Nanos::from_millis(1);

/// Keys of `[serve]` and `[load]` that are no command-line options.
pub(super) const NOT_OPTIONS: [&str; 9] = [
    "protocol",
    "absent",
    "command",
    "parser",
    "files",
    "ready",
    "port",
    "capacity_ratio",
    "start_multiple",
];

/// A duration in the largest unit that loses nothing.
fn exact(ns: u64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1000, "us")];
    match units.into_iter().find(|(size, _)| ns > 0 && ns.is_multiple_of(*size)) {
        Some((size, unit)) => format!("{}{unit}", ns / size),
        None => format!("{ns}ns"),
    }
}

/// Reads one variant's merged settings.
pub(super) struct Reader<'a> {
    pub merged: &'a Overlay,
    pub places: &'a Places<'a>,
    /// Why the variant cannot run on this host, once that is known.
    pub not_available: Option<String>,
    pub warnings: Vec<Warning>,
}

impl Reader<'_> {
    pub fn get(&self, key: &str) -> Option<&Setting> {
        self.merged.get(key)
    }

    pub fn truth(&self, key: &str, default: bool) -> bool {
        match self.get(key).map(|setting| &setting.value) {
            Some(Value::Bool(value)) => *value,
            _ => default,
        }
    }

    pub fn number(&self, key: &str) -> Option<u64> {
        match self.get(key).map(|setting| &setting.value) {
            Some(Value::Number(value)) => Some(*value),
            _ => None,
        }
    }

    pub fn text(&self, key: &str) -> Option<&str> {
        match self.get(key).map(|setting| &setting.value) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    fn names(&self, key: &str) -> BTreeMap<String, String> {
        match self.get(key).map(|setting| &setting.value) {
            Some(Value::Names(names)) => names.clone(),
            _ => BTreeMap::new(),
        }
    }

    fn lines(&self, key: &str) -> Vec<String> {
        match self.get(key).map(|setting| &setting.value) {
            Some(Value::Lines(lines)) => lines.clone(),
            _ => Vec::new(),
        }
    }

    /// CPUs of a list on this host. A placement that the host lacks marks the variant.
    pub fn cpus(&mut self, key: &str) -> Result<CpuList, Flaw> {
        let Some(Setting { value: Value::Cpus(list), at, .. }) = self.merged.get(key) else {
            return Ok(CpuList::default());
        };
        match self.places.place(list, &mut self.warnings) {
            Ok(cpus) => Ok(CpuList(cpus)),
            Err(Misplaced::NotAvailable(why)) => {
                self.not_available.get_or_insert(why);
                Ok(CpuList::default())
            }
            Err(Misplaced::Refused(wrong, right)) => {
                Err(Flaw::new(at, format!("`{key}`: {wrong}"), right))
            }
        }
    }

    /// A host that is switched otherwise than the variant needs marks it.
    fn power(&mut self) {
        let wanted = |key: &str| match self.get(key).map(|setting| &setting.value) {
            Some(Value::Bool(on)) => Some(*on),
            _ => None,
        };
        let power = self.places.power();
        let turbo = wanted("lab.turbo").and_then(|on| power.turbo.lacks(on));
        let smt = wanted("lab.smt").and_then(|on| power.smt.lacks(on));
        if let Some(why) = turbo.or(smt) {
            self.not_available.get_or_insert(why);
        }
    }

    /// What the kernel or the machine lacks marks the variant, by name.
    fn offers(&mut self) {
        let offers = self.places.offers();
        let lacks = |wanted: bool, what: &Option<String>| what.clone().filter(|_| wanted);
        let upper = self.text("lab.upper");
        let nft = ["lab.nft_rx", "lab.nft_tx"].iter().any(|key| self.get(key).is_some());
        let missing = [
            self.truth("lab.flow_rule", false).then(|| NO_FLOW_RULES.to_owned()),
            lacks(upper == Some("bridge"), &offers.bridge),
            lacks(upper == Some("macvlan"), &offers.macvlan),
            lacks(nft, &offers.nft),
            lacks(self.get("lab.iptables_rx").is_some(), &offers.iptables),
        ];
        if let Some(why) = missing.into_iter().flatten().next() {
            self.not_available.get_or_insert(why);
        }
    }

    pub fn lab(&mut self) -> Result<Lab, Flaw> {
        self.power();
        self.offers();
        Ok(Lab {
            topology: match self.text("topology.kind") {
                Some("local") => Topology::Local,
                _ => Topology::Netns,
            },
            queues: self.number("lab.queues").unwrap_or(1) as u32,
            mtu_bytes: self.number("lab.mtu_bytes").unwrap_or(1500) as u32,
            ipv6: self.truth("lab.ipv6", false),
            addresses: self.number("lab.addresses").unwrap_or(1) as u32,
            rps_cpus: self.cpus("lab.rps_cpus")?,
            gro: self.truth("lab.gro", false),
            udp_gro_forwarding: self.truth("lab.udp_gro_forwarding", false),
            tso: self.truth("lab.tso", true),
            tso_rx: self.truth("lab.tso_rx", true),
            napi_defer_hard_irqs: self.number("lab.napi_defer_hard_irqs").map(|polls| polls as u32),
            gro_flush_timeout: self.number("lab.gro_flush_timeout").map(Nanos),
            udp_segmentation: self.truth("lab.udp_segmentation", true),
            upper: match self.text("lab.upper") {
                Some("bridge") => Some(Upper::Bridge),
                Some("macvlan") => Some(Upper::Macvlan),
                _ => None,
            },
            threaded: self.truth("lab.threaded", false),
            napi_cpu: self.cpus("lab.napi_cpu")?.as_slice().first().copied(),
            napi_idle: self.truth("lab.napi_idle", false),
            awake: self.truth("lab.awake", false),
            sysctl_rx: self.names("lab.sysctl_rx"),
            sysctl_tx: self.names("lab.sysctl_tx"),
            nft_rx: self.text("lab.nft_rx").map(str::to_owned),
            nft_tx: self.text("lab.nft_tx").map(str::to_owned),
            iptables_rx: self.lines("lab.iptables_rx"),
            conntrack_room: self.number("lab.conntrack_room"),
            qdisc_tx: match self.get("lab.qdisc_tx").map(|setting| &setting.value) {
                Some(Value::Qdisc(qdisc)) => Some(qdisc.clone()),
                _ => None,
            },
        })
    }

    /// What runs beside the workload. A command alone means one copy of it.
    pub fn background(&mut self) -> Result<Background, Flaw> {
        let command = self.lines("background.command");
        let hogs = self.number("background.hogs").unwrap_or(u64::from(!command.is_empty()));
        Ok(Background {
            hogs: hogs as u32,
            command,
            cpus: self.cpus("background.cpus")?,
            nice: self.signed("background.nice"),
            policy: match self.text("background.policy") {
                Some("batch") => Policy::Batch,
                Some("idle") => Policy::Idle,
                _ => Policy::Other,
            },
            victim: self.cpus("background.victim")?.as_slice().first().copied(),
        })
    }

    /// What is watched; a victim is there to be watched.
    pub fn observe(&self, background: &Background) -> Observe {
        Observe {
            drops: self.truth("observe.drops", false),
            steal: self.truth("observe.steal", false) || background.victim.is_some(),
            trace: self.truth("observe.trace", false),
        }
    }

    /// Time between two samples of the queues.
    pub fn sample_interval(&self) -> Nanos {
        self.number("observe.sample_interval").map_or(SAMPLE_INTERVAL, Nanos)
    }

    /// What the start of the load is a whole multiple of.
    pub fn start_multiple(&self) -> Nanos {
        self.number("load.start_multiple").map_or(Nanos(0), Nanos)
    }

    fn signed(&self, key: &str) -> i32 {
        self.text(key).and_then(|text| text.parse().ok()).unwrap_or(0)
    }

    /// The receiving side.
    pub fn serve(&mut self) -> Result<Workload, Flaw> {
        self.workload("serve", self.number("serve.port"))
    }

    /// The sending side; its port follows the receiver's.
    pub fn load(&mut self) -> Result<Workload, Flaw> {
        self.workload("load", self.number("load.port").or_else(|| self.number("serve.port")))
    }

    /// What both sides speak: what either side's `protocol` says.
    pub fn protocol(&self) -> Protocol {
        let word = self.text("serve.protocol").or_else(|| self.text("load.protocol"));
        word.and_then(Protocol::of).unwrap_or_default()
    }

    fn workload(&mut self, side: &str, port: Option<u64>) -> Result<Workload, Flaw> {
        let protocol = self.protocol();
        let cpus = self.cpus(&format!("{side}.cpu"))?;
        let port = port.map_or(PORT, |port| port as u16);
        let command = self.lines(&format!("{side}.command"));
        if !command.is_empty() {
            let parser = match self.get(&format!("{side}.parser")).map(|setting| &setting.value) {
                Some(Value::Parser(parser)) => parser.clone(),
                _ => Parser::None,
            };
            let ready = self.text(&format!("{side}.ready")).map(str::to_owned);
            let files = self.names(&format!("{side}.files"));
            let external = External { protocol, command, files, cpus, parser, ready, port };
            return Ok(Workload::External(external));
        }
        let mut options = self.options(side, protocol, &cpus);
        let datagrams = (protocol == Protocol::Udp).then(|| Datagrams {
            size_bytes: self.number("load.size").unwrap_or(SIZE) as u32,
            segments: self.number("load.gso").unwrap_or(1) as u32,
            gro: self.truth("serve.gro", false),
        });
        if let Some(datagrams) = datagrams
            && (side == "serve" || self.number("load.size").is_none())
        {
            options.extend(["--size".into(), datagrams.size_bytes.to_string()]);
        }
        let absent = side == "serve" && self.truth("serve.absent", false);
        let capacity_ratio = match self.get("load.capacity_ratio").map(|setting| &setting.value) {
            Some(Value::Ratio(share)) if side == "load" => Some(*share),
            _ => None,
        };
        Ok(Workload::Own(Own { protocol, options, cpus, port, absent, datagrams, capacity_ratio }))
    }

    /// The options of one side in the order of the key table.
    fn options(&self, side: &str, protocol: Protocol, cpus: &CpuList) -> Vec<String> {
        let mut words = Vec::new();
        for key in KEYS {
            let Some((section, name)) = key.name.split_once('.') else { continue };
            if section != side || NOT_OPTIONS.contains(&name) || !key.fits(protocol) {
                continue;
            }
            let Some(setting) = self.get(key.name) else { continue };
            let option = format!("--{}", name.replace('_', "-"));
            if let Value::Lines(lines) = &setting.value {
                words.extend(lines.iter().flat_map(|line| [option.clone(), line.clone()]));
                continue;
            }
            let value = match &setting.value {
                Value::Bool(true) => None,
                Value::Number(number) => Some(match key.kind {
                    // The one duration that the command line takes as a bare number, of microseconds.
                    _ if key.name == "serve.busy_poll" => (number / 1000).to_string(),
                    super::keys::Kind::Nanos(..) => exact(*number),
                    _ => number.to_string(),
                }),
                Value::Text(text) => Some(text.clone()),
                Value::Cpus(_) if cpus.is_empty() => continue,
                Value::Cpus(_) => Some(cpus.to_string()),
                _ => continue,
            };
            words.push(option);
            words.extend(value);
        }
        words
    }

    /// How trials are made; the values that are not set are those of the method.
    pub fn trials(&self) -> Trials {
        let nanos = |key: &str, default: Nanos| self.number(key).map_or(default, Nanos);
        let ratio = |key: &str| match self.get(key).map(|setting| &setting.value) {
            Some(Value::Ratio(value)) => Some(*value),
            _ => None,
        };
        // Five pairs are the fewest that give an interval.
        let blocks = self.number("trials.blocks").unwrap_or(5) as u32;
        let max_blocks = self.number("trials.max_blocks").map(|most| most as u32);
        Trials {
            blocks,
            max_blocks: max_blocks.unwrap_or(blocks.max(20)),
            ramp: nanos("trials.ramp", Nanos::from_secs(1)),
            settle: nanos("trials.settle", Nanos::from_secs(10)),
            measure: nanos("trials.measure", Nanos::from_secs(3)),
            precision_ratio: ratio("trials.precision_ratio"),
            threshold_ratio: ratio("trials.threshold_ratio").unwrap_or(0.03),
            time_limit: nanos("trials.time_limit", Nanos::from_secs(15 * 60)),
            aa: self.truth("trials.aa", true),
            seed: self.number("trials.seed").unwrap_or(1),
        }
    }
}
