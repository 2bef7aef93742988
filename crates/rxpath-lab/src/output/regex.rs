//! Any program that prints text: a metric per named group of the first match.

use regex_lite::Regex;

use super::{Metrics, bad, form};

pub(super) fn read(text: &str, pattern: &str) -> Result<Metrics, String> {
    let regex = Regex::new(pattern).map_err(|error| form("regex", error, text))?;
    let found = regex
        .captures(text)
        .ok_or_else(|| form("regex", format!("`{pattern}` does not match"), text))?;
    let mut metrics = Metrics::new();
    for name in regex.capture_names().flatten() {
        // A group of an alternative that was not taken is no metric of this output.
        let Some(group) = found.name(name) else { continue };
        let number = group.as_str().replace([',', '_'], "").parse::<f64>();
        let number = number.ok().filter(|number| number.is_finite());
        let none = || bad(name, format!("`{}` is not a number", group.as_str()));
        metrics.insert(name.into(), number.ok_or_else(none)?);
    }
    Ok(metrics)
}

/// Names of the groups; none when the pattern does not compile.
pub(super) fn names(pattern: &str) -> Vec<String> {
    Regex::new(pattern)
        .map(|regex| regex.capture_names().flatten().map(str::to_owned).collect())
        .unwrap_or_default()
}
