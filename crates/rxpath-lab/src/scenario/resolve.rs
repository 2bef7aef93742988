//! From the file, the `--set`s and the host's shape to what the runner is handed.

use std::collections::{BTreeMap, BTreeSet};

use rxpath_core::{IntoMap, Nanos, Warning};
use serde_json::Value as Json;

use super::between::{self, BetweenHosts};
use super::check;
use super::error::{FileError, ScenarioError};
use super::expand::{Made, expand};
use super::file::ScenarioFile;
use super::host_shape::HostShape;
use super::merge::{Overlay, lay, value_of};
use super::place::Places;
use super::reader::Reader;
use super::sections::{Lab, Place};
use super::set;
use super::spec::{Compare, Resolved, Topology, Variant};

/// Makes a scenario ready to run on a host.
pub fn resolve(
    file: &ScenarioFile,
    sets: &[String],
    host: &HostShape,
) -> Result<Resolved, ScenarioError> {
    resolve_at(file, sets, &Places::new(host))
}

/// Makes a scenario ready to run between hosts: the sender's shape first. If the hosts may be changed, keys of the lab's link
/// in which available variants differ become settings of their devices. Hosts that the scenario names must be among `aliases`;
/// without them the hosts are not known yet.
pub fn resolve_between(
    file: &ScenarioFile,
    sets: &[String],
    [sender, receiver]: [&HostShape; 2],
    may_change: bool,
    aliases: Option<&[&str]>,
) -> Result<Resolved, ScenarioError> {
    resolve_at(file, sets, &Places::between(sender, receiver, may_change, aliases))
}

fn resolve_at(
    file: &ScenarioFile,
    sets: &[String],
    places: &Places<'_>,
) -> Result<Resolved, ScenarioError> {
    let mut file = file.clone();
    for text in sets {
        set::apply(&mut file, text).map_err(|error| error.of(&file.origin))?;
    }
    resolve_file(&file, places).map_err(|error| error.of(&file.origin))
}

fn resolve_file(file: &ScenarioFile, places: &Places<'_>) -> Result<Resolved, FileError> {
    let base = lay(&Overlay::new(), &file.base);
    let made = expand(file);
    let mut warnings = Vec::new();
    warn_overridden(file, &made, &mut warnings);
    check::one_capacity(made.iter().map(|made| lay(&base, &made.over)))?;
    let between = || BetweenHosts::of(places, &base, made.iter().map(|made| &made.over));
    let hosts = places.sender.is_some().then(between).transpose()?;
    let variant = |made| resolve_variant(made, &base, (places, hosts.as_ref()), &mut warnings);
    let variants = made.into_iter().map(variant).collect::<Result<Vec<_>, _>>()?;
    let reader = Reader::new(base.clone(), places);
    let trials = reader.trials()?;
    check::trials(&reader, &trials)?;
    Ok(Resolved {
        name: file.name.clone(),
        question: file.question.clone(),
        expected: file.expected.clone(),
        compare: compare(file, &variants),
        search: file.search.clone(),
        variants,
        trials,
        warnings,
    })
}

fn resolve_variant(
    made: Made,
    base: &Overlay,
    (places, hosts): (&Places<'_>, Option<&BetweenHosts>),
    warnings: &mut Vec<Warning>,
) -> Result<Variant, FileError> {
    let merged = lay(base, &made.over);
    let mut reader = Reader::placed(merged.clone(), places)?;
    // With the keys of the lab's link, which are taken out between hosts.
    let with_link = reader.settings.clone();
    let mut topology = reader.section::<Place>()?.kind;
    let mut tune = reader.tune()?;
    let mut link_keys = BTreeSet::new();
    if let Some(hosts) = hosts {
        topology = Topology::Hosts;
        link_keys = between::set_on_devices(hosts, &reader.section::<Lab>()?, &mut tune);
        between::check(&mut reader);
        between::take_link(&mut reader, hosts, base, &merged);
    }
    let lab = reader.lab()?;
    let background = reader.background()?;
    check::hosts(&reader, places.aliases, &tune, &background)?;
    check::tune(&reader, topology, &tune)?;
    let observe = reader.observe(&background)?;
    let start_multiple = Nanos(reader.number("load.start_multiple").unwrap_or(0));
    let (serve, load) = reader.workloads()?;
    check::variant(&mut reader, topology, &lab)?;
    let settings = differences(base, &merged, &with_link, &made.over);
    let written = |key: &'static str| Some((key, merged.get(key)?.value.as_str()?.to_owned()));
    let written_cpus = ["load.cpu", "serve.cpu", "background.cpus"];
    let written_cpus = written_cpus.into_iter().filter_map(written).into_map();
    let (not_available, more) = (reader.not_available, reader.warnings);
    for warning in more {
        if not_available.is_none() && !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
    Ok(Variant {
        name: made.name,
        what: made.what,
        settings,
        not_available,
        topology,
        lab,
        tune,
        link_keys,
        background,
        start_multiple,
        observe,
        serve,
        load,
        written_cpus,
    })
}

/// The keys in which a variant differs from the base, with its values as they were written, or as CPU numbers.
fn differences(
    base: &Overlay,
    merged: &Overlay,
    placed: &Overlay,
    over: &Overlay,
) -> BTreeMap<String, Json> {
    let shown = |key: &str| {
        let (Some(written), Some(here)) = (merged.get(key), placed.get(key)) else {
            return Json::from("default");
        };
        if here.value.is_null() || here.value == written.value {
            written.shown.clone()
        } else {
            here.value.clone()
        }
    };
    let differs = over.keys().filter(|key| value_of(base, key) != value_of(merged, key));
    differs.map(|key| (key.clone(), shown(key))).into_map()
}

/// The comparisons whose two variants can run here; without any in the file, each against the first.
fn compare(file: &ScenarioFile, variants: &[Variant]) -> Vec<Compare> {
    let here: Vec<&Variant> = variants.iter().filter(|it| it.not_available.is_none()).collect();
    let main = here.first().map_or("delivered_pps", |first| first.main_metric());
    if file.compare.is_empty() {
        let Some((base, others)) = here.split_first() else { return Vec::new() };
        return others.iter().map(|other| Compare::of(main, &base.name, &other.name)).collect();
    }
    let is_here = |name: &str| here.iter().any(|variant| variant.name == name);
    file.compare
        .iter()
        .filter(|pair| is_here(&pair.base) && is_here(&pair.variant))
        .cloned()
        .map(|pair| match pair.metric.as_str() {
            "" => Compare { metric: main.into(), ..pair },
            _ => pair,
        })
        .collect()
}

/// A `--set` on the base that every variant sets again changes nothing; say so.
fn warn_overridden(file: &ScenarioFile, made: &[Made], warnings: &mut Vec<Warning>) {
    for (key, setting) in &file.base {
        let super::error::At::Set(text) = &setting.at else { continue };
        let sets_again = |made: &Made| made.over.get(key).is_some_and(|own| !own.value.is_null());
        let count = made.iter().filter(|made| sets_again(made)).count();
        if count > 0 && !key.starts_with("trials.") {
            let text =
                format!("--set {text}: {count} of {} variants have their own {key}", made.len());
            let warning = Warning::new("set-overridden", text).because("--set changes the base");
            warnings
                .push(warning.cure(format!("use --set variant.NAME.{key}=VALUE for one variant")));
        }
    }
}
