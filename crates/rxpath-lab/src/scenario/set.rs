//! `--set KEY=VALUE`: a scenario's settings from the command line, checked as in the file.

use serde_json::Value;

use super::error::{At, FileError};
use super::file::ScenarioFile;
use super::keys::full_name;
use super::merge::{SECTIONS, read_key};
use super::source::set_value;

/// Lays one `--set` over the scenario. `KEY` is `serve.batch`, `trials.blocks` or `variant.NAME.serve.batch`.
pub(super) fn apply(file: &mut ScenarioFile, text: &str) -> Result<(), FileError> {
    let at = At::Set(text.replace('\n', " "));
    let Some((path, value)) = text.split_once('=') else {
        let right = "write KEY=VALUE such as serve.batch=64";
        return Err(FileError::new(&at, "there is no `=`", right));
    };
    let path = path.trim();
    let (variant, path) = match path.strip_prefix("variant.") {
        Some(rest) => {
            let (name, path) = rest.split_once('.').unwrap_or((rest, ""));
            let wrong = format!("{} has no variant `{name}`", file.name);
            let index = file.variant(name).map_err(|right| FileError::new(&at, wrong, right))?;
            (Some(index), path)
        }
        None => (None, path),
    };
    let (section, key) = path.split_once('.').unwrap_or(("", path));
    if section == "trials" && variant.is_some() {
        let wrong = format!("`{path}` is the whole run's, not one variant's");
        return Err(FileError::new(&at, wrong, format!("write --set {path}=VALUE")));
    }
    if !SECTIONS.contains(&section) && section != "trials" {
        return Err(FileError::new(&at, format!("there is no setting `{path}`"), full_name(path)));
    }
    let overlay = match variant {
        Some(index) => &mut file.variants[index].own,
        None => &mut file.base,
    };
    let value = set_value(value);
    // `tune.receiver."{dev}/threaded"`: the name of a setting, with or without quotes.
    if let (true, Some((key, name))) = (section == "tune", key.split_once('.')) {
        let name = name.trim_matches(['"', '\'']);
        let value = Value::Object([(name.to_owned(), value)].into_iter().collect());
        return read_key(section, key, &value, &at, overlay);
    }
    read_key(section, key, &value, &at, overlay)
}
