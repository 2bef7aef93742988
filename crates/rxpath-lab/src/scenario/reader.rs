//! From the merged settings of a variant to the sections and workloads of the resolved form.

use rxpath_core::{CpuList, Warning};
use rxpath_host::lab::upper::UpperKind;
use rxpath_load::http;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::cpus::CpuExpr;
use super::error::{At, FileError};
use super::host_shape::HostShape;
use super::key::{Key, Kind};
use super::keys::keys;
use super::merge::Overlay;
use super::offers::NO_FLOW_RULES;
use super::place::{Misplaced, Places};
use super::sections::{LOAD_KEYS, Program, SERVE_KEYS, Section};
use super::spec::{
    Background, Datagrams, External, Lab, LoadOptions, Observe, Options, Own, Protocol,
    ServeOptions, Trials, Tune, Workload, WorkloadEngine,
};
use super::value::Setting;

/// Port of the published experiments.
pub const PORT: u16 = 4321;
/// Payload of the published experiments, bytes.
const SIZE: u32 = 32;
/// How both sides of HTTP do their I/O unless the scenario says otherwise.
const ENGINE: http::Engine = http::Engine::Epoll;

/// Reads one variant's merged settings.
pub(super) struct Reader<'a> {
    /// Roles are CPU numbers of this host once they are placed.
    pub settings: Overlay,
    places: &'a Places<'a>,
    /// Why the variant cannot run on this host, once that is known.
    pub not_available: Option<String>,
    pub warnings: Vec<Warning>,
}

impl<'a> Reader<'a> {
    pub fn new(settings: Overlay, places: &'a Places<'a>) -> Self {
        Self { settings, places, not_available: None, warnings: Vec::new() }
    }

    /// Places the CPUs of all lists. A placement that the host lacks marks the variant.
    pub fn placed(settings: Overlay, places: &'a Places<'a>) -> Result<Self, FileError> {
        let mut reader = Self::new(settings, places);
        for key in keys().filter(|key| matches!(key.kind, Kind::Cpus | Kind::OneCpu)) {
            reader.place(key)?;
        }
        Ok(reader)
    }

    fn place(&mut self, key: &Key) -> Result<(), FileError> {
        let is_on_senders =
            key.name == "background.cpus" && self.text("background.on") == Some("senders");
        let of_key = if is_on_senders { "load.cpu" } else { key.name };
        let Some(setting) = self.settings.get_mut(key.name) else { return Ok(()) };
        let refused = |(wrong, right): (String, String)| {
            FileError::new(&setting.at, format!("`{}`: {wrong}", key.name), right)
        };
        let list = CpuExpr::parse(setting.value.as_str().unwrap_or_default()).map_err(refused)?;
        match self.places.of(of_key).place(&list, &mut self.warnings) {
            Ok(cpus) if matches!(key.kind, Kind::OneCpu) => {
                setting.value = cpus.first().copied().into();
            }
            Ok(cpus) => setting.value = CpuList(cpus).to_string().into(),
            Err(Misplaced::NotAvailable(why)) => {
                setting.value = Value::Null;
                self.not_available.get_or_insert(why);
            }
            Err(Misplaced::Refused(wrong, right)) => return Err(refused((wrong, right))),
        }
        Ok(())
    }

    pub fn get(&self, key: &str) -> Option<&Setting> {
        self.settings.get(key)
    }

    pub fn number(&self, key: &str) -> Option<u64> {
        self.get(key)?.value.as_u64()
    }

    pub fn text(&self, key: &str) -> Option<&str> {
        self.get(key)?.value.as_str()
    }

    /// One section as its struct.
    pub fn section<T: Section>(&self) -> Result<T, FileError> {
        self.read(T::KEYS)
    }

    fn read<T: DeserializeOwned>(&self, keys: &[Key]) -> Result<T, FileError> {
        self.read_named(keys.iter().map(|key| key.name))
    }

    /// Keys of one section as its struct.
    fn read_named<'k, T: DeserializeOwned>(
        &self,
        names: impl Iterator<Item = &'k str>,
    ) -> Result<T, FileError> {
        let (mut own, mut at) = (serde_json::Map::new(), None);
        for name in names {
            let (Some(setting), Some((_, name))) = (self.get(name), name.split_once('.')) else {
                continue;
            };
            at.get_or_insert(&setting.at);
            if !setting.value.is_null() {
                own.insert(name.to_owned(), setting.value.clone());
            }
        }
        serde_json::from_value(Value::Object(own)).map_err(|error| {
            FileError::new(at.unwrap_or(&At::Line(1)), error.to_string(), "check this section")
        })
    }

    /// Settings of the sides, and of single hosts, whose keys are those of this variant.
    pub fn tune(&self) -> Result<Tune, FileError> {
        let keys = self.settings.keys().map(String::as_str);
        self.read_named(keys.filter(|key| key.starts_with("tune.")))
    }

    /// The lab. What the host lacks, or has switched otherwise, marks the variant.
    pub fn lab(&mut self) -> Result<Lab, FileError> {
        let lab: Lab = self.section()?;
        let HostShape { power, offers, .. } = self.places.host;
        let lacks = |wanted: bool, what: &Option<String>| what.clone().filter(|_| wanted);
        let missing = [
            lab.turbo.and_then(|on| power.turbo.lacks(on)),
            lab.smt.and_then(|on| power.smt.lacks(on)),
            lab.flow_rule.then(|| NO_FLOW_RULES.to_owned()),
            lacks(lab.upper == Some(UpperKind::Bridge), &offers.bridge),
            lacks(lab.upper == Some(UpperKind::Macvlan), &offers.macvlan),
            lacks(lab.upper == Some(UpperKind::Ipvlan), &offers.ipvlan),
            lacks(lab.nft_rx.is_some() || lab.nft_tx.is_some(), &offers.nft),
            lacks(self.get("lab.iptables_rx").is_some(), &offers.iptables),
        ];
        self.not_available = missing.into_iter().flatten().next().or(self.not_available.take());
        Ok(lab)
    }

    /// What runs alongside the workload. A command alone means one copy of it.
    pub fn background(&self) -> Result<Background, FileError> {
        let mut background: Background = self.section()?;
        if self.get("background.hogs").is_none() && !background.command.is_empty() {
            background.hogs = 1;
        }
        Ok(background)
    }

    /// What is observed; a victim is there to be observed.
    pub fn observe(&self, background: &Background) -> Result<Observe, FileError> {
        let own: Observe = self.section()?;
        Ok(Observe { steal: own.steal || background.victim.is_some(), ..own })
    }

    /// What both sides speak: what either side's `protocol` says.
    pub fn protocol(&self) -> Protocol {
        let setting = self.get("serve.protocol").or_else(|| self.get("load.protocol"));
        setting.and_then(|it| serde_json::from_value(it.value.clone()).ok()).unwrap_or_default()
    }

    /// Both sides. The sender's port follows the receiver's.
    pub fn workloads(&self) -> Result<(Workload<ServeOptions>, Workload<LoadOptions>), FileError> {
        let protocol = self.protocol();
        let (mut serve, mut load): (ServeOptions, LoadOptions) = (self.section()?, self.section()?);
        if protocol == Protocol::Http {
            // The commands choose by the host; a scenario means the same on every host.
            serve.engine.get_or_insert(WorkloadEngine::Http(ENGINE));
            load.engine.get_or_insert(WorkloadEngine::Http(ENGINE));
        }
        let (server, mut sender): (Program, Program) =
            (self.read(SERVE_KEYS)?, self.read(LOAD_KEYS)?);
        sender.port = sender.port.or(server.port);
        let datagrams = (!protocol.over_tcp()).then(|| Datagrams {
            size_bytes: *load.size.get_or_insert(SIZE),
            segments: load.gso.unwrap_or(1),
            gro: serve.gro,
        });
        Ok((
            workload(protocol, server, serve, datagrams),
            workload(protocol, sender, load, datagrams),
        ))
    }

    /// How trials are made; the values that are not set are those of the method.
    pub fn trials(&self) -> Result<Trials, FileError> {
        let mut trials: Trials = self.section()?;
        if self.get("trials.max_blocks").is_none() {
            trials.max_blocks = trials.max_blocks.max(trials.blocks);
        }
        Ok(trials)
    }
}

fn workload<O: Options>(
    protocol: Protocol,
    program: Program,
    options: O,
    datagrams: Option<Datagrams>,
) -> Workload<O> {
    let port = program.port.unwrap_or(PORT);
    if program.command.is_empty() {
        let Program { absent, capacity_ratio, capacity_slo, .. } = program;
        return Workload::Own(Own {
            protocol,
            options,
            port,
            absent,
            datagrams,
            capacity_ratio,
            capacity_slo,
        });
    }
    let Program { command, parser, files, ready, .. } = program;
    let cpus = options.cpus().clone();
    Workload::External(External { protocol, command, files, cpus, parser, ready, port })
}
