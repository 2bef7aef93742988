//! `--set KEY=VALUE`: a scenario's settings from the command line, checked as in the file.

use super::error::{At, Flaw, nearest, suggestion};
use super::file::ScenarioFile;
use super::keys::KEYS;
use super::merge::SECTIONS;
use super::raw::{Entry, parse_set};

/// Lays one `--set` over the scenario. `KEY` is `serve.batch`, `trials.blocks` or `variant.NAME.serve.batch`.
pub(super) fn apply(file: &mut ScenarioFile, text: &str) -> Result<(), Flaw> {
    let at = At::Set(text.replace('\n', " "));
    let Some((path, value)) = text.split_once('=') else {
        return Err(Flaw::new(&at, "there is no `=`", "write KEY=VALUE such as serve.batch=64"));
    };
    let path = path.trim();
    let (variant, path) = match path.strip_prefix("variant.") {
        Some(rest) => {
            let (name, path) = rest.split_once('.').unwrap_or((rest, ""));
            (Some(variant_index(file, name, &at)?), path)
        }
        None => (None, path),
    };
    let (section, key) = path.split_once('.').unwrap_or(("", path));
    if section == "trials" && variant.is_some() {
        let wrong = format!("`{path}` is the whole run's, not one variant's");
        return Err(Flaw::new(&at, wrong, format!("write --set {path}=VALUE")));
    }
    if !SECTIONS.contains(&section) && section != "trials" {
        return Err(Flaw::new(&at, format!("there is no setting `{path}`"), instead(path)));
    }
    let entry = Entry { key: key.into(), at: at.clone(), node: parse_set(value, &at) };
    file.put(variant, section, &entry)
}

fn variant_index(file: &ScenarioFile, name: &str, at: &At) -> Result<usize, Flaw> {
    file.variants.iter().position(|variant| variant.name == name).ok_or_else(|| {
        let known: Vec<&str> = file.variants.iter().map(|variant| variant.name.as_str()).collect();
        let wrong = format!("{} has no variant `{name}`", file.name);
        Flaw::new(at, wrong, suggestion(name, "variants", &known))
    })
}

/// The full key for one that lacks its section or has a wrong one.
fn instead(path: &str) -> String {
    let own = path.rsplit('.').next().unwrap_or(path).replace('-', "_");
    let full: Vec<&str> = KEYS
        .iter()
        .filter(|key| key.name.split_once('.').is_some_and(|(_, name)| name == own))
        .map(|key| key.name)
        .collect();
    if !full.is_empty() {
        return format!("did you mean `{}`?", full.join("` or `"));
    }
    match nearest(path, KEYS.iter().map(|key| key.name)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => {
            "keys begin with topology., lab., background., observe., serve., load., trials. or \
                 variant.NAME."
                .into()
        }
    }
}
