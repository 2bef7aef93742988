//! Findings that a site has decided to live with: each with a reason, and each until a day.
//!
//! ```toml
//! [[suppress]]
//! id = "irqbalance-running"
//! reason = "the site's policy, reviewed by the network team"
//! until = "2027-03-01"
//!
//! [[suppress]]
//! id = "offload-lro"
//! device = "eth3"
//! reason = "no traffic is forwarded here"
//! until = "2027-01-01"
//! ```

use jiff::civil::Date;
use rxpath_core::Warning;
use serde::Deserialize;
use thiserror::Error;

use crate::check::Report;
use crate::finding::Suppressed;
use crate::rules;

/// A file of suppressions that is not what it should be: what is wrong, where, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct SuppressError(String);

/// One suppression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suppression {
    /// The rule.
    pub id: String,
    /// The device; `None` for every one.
    pub device: Option<String>,
    /// Why.
    pub reason: String,
    /// The last day on which it holds.
    pub until: Date,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    suppress: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    id: String,
    device: Option<String>,
    reason: String,
    until: String,
}

/// Reads a file of suppressions.
///
/// **Errors** as [`SuppressError`].
pub fn parse(text: &str) -> Result<Vec<Suppression>, SuppressError> {
    let file: File = toml::from_str(text).map_err(|error| {
        // From 1; 0 when it is not known.
        let line = error
            .span()
            .map_or(0, |span| text[..span.start.min(text.len())].lines().count().max(1));
        let why = error.message().lines().next().unwrap_or_default();
        SuppressError(format!("line {line}: {why}"))
    })?;
    file.suppress.into_iter().map(one).collect()
}

fn one(entry: Entry) -> Result<Suppression, SuppressError> {
    let bad = |why: &str| SuppressError(format!("suppress {}: {why}", entry.id));
    if rules::find(&entry.id).is_none() {
        return Err(bad("no such rule; `rxpath explain` lists them"));
    }
    if entry.reason.trim().is_empty() {
        return Err(bad("the reason is empty; say why this host is an exception"));
    }
    let until = entry.until.parse().map_err(|_| {
        bad(&format!("until is `{}`, which is no day such as 2027-03-01", entry.until))
    })?;
    Ok(Suppression { id: entry.id, device: entry.device, reason: entry.reason, until })
}

/// Removes suppressed findings from the report, and reports suppressions that match nothing.
pub fn apply(report: &mut Report, all: &[Suppression], today: Date) -> Vec<Warning> {
    let mut used = vec![false; all.len()];
    let mut warnings = Vec::new();
    let findings = std::mem::take(&mut report.findings);
    for finding in findings {
        let at = all.iter().position(|one| {
            one.id == finding.id && (one.device.is_none() || one.device == finding.device)
        });
        let Some(at) = at else {
            report.findings.push(finding);
            continue;
        };
        used[at] = true;
        let one = &all[at];
        if one.until < today {
            let text = format!("the suppression of {} ended on {}", one.id, one.until);
            warnings.push(Warning::new("suppression-ended", text).because(one.reason.clone()));
            report.findings.push(finding);
        } else {
            let (reason, until) = (one.reason.clone(), one.until.to_string());
            report.suppressed.push(Suppressed { finding, reason, until });
        }
    }
    for (one, _) in all.iter().zip(used).filter(|(_, used)| !used) {
        let text = format!("the suppression of {} matches nothing here", one.id);
        warnings.push(Warning::new("suppression-unused", text));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Finding;
    use crate::rule::Area;
    use crate::weight::{Magnitude, Severity};
    use jiff::civil::date;
    use proptest::prelude::*;

    fn finding(id: &str, device: Option<&str>) -> Finding {
        Finding {
            id: id.into(),
            device: device.map(str::to_owned),
            area: Area::Offloads,
            severity: Severity::Warn,
            observed: String::new(),
            expected: String::new(),
            why: String::new(),
            effect_size: Magnitude::Tens,
            effect: String::new(),
            changes: Vec::new(),
            advice: None,
            counted: None,
            more: String::new(),
        }
    }

    const FILE: &str = "[[suppress]]\nid = \"offload-lro\"\ndevice = \"eth3\"\nreason = \"r\"\nuntil = \"2027-03-01\"\n";

    #[test]
    fn a_suppression_holds_for_its_device_until_its_day() {
        let all = parse(FILE).unwrap();
        let report = || Report {
            findings: vec![
                finding("offload-lro", Some("eth3")),
                finding("offload-lro", Some("eth4")),
            ],
            ..Report::default()
        };
        let mut on_the_day = report();
        assert!(apply(&mut on_the_day, &all, date(2027, 3, 1)).is_empty());
        assert_eq!((on_the_day.findings.len(), on_the_day.suppressed.len()), (1, 1));
        assert_eq!(on_the_day.suppressed[0].until, "2027-03-01");
        let mut after = report();
        let warnings = apply(&mut after, &all, date(2027, 3, 2));
        assert_eq!((after.findings.len(), warnings[0].code.as_str()), (2, "suppression-ended"));
        let unused = apply(&mut Report::default(), &all, date(2027, 1, 1));
        assert_eq!(unused[0].code, "suppression-unused");
    }

    #[test]
    fn bad_files_are_refused_with_their_place() {
        let error = |text: &str| parse(text).unwrap_err().to_string();
        assert!(error(&FILE.replace("offload-lro", "offload-lor")).contains("no such rule"));
        assert!(error(&FILE.replace("2027-03-01", "soon")).contains("no day such as"));
        assert!(error(&FILE.replace("\"r\"", "\" \"")).contains("reason is empty"));
        assert!(error(&FILE.replace("reason", "because")).starts_with("line "));
        assert!(error("[[suppress]]\nid = \"offload-lro\"\n").contains("missing field"));
        assert!(error("x = [").starts_with("line 1"));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,200}") {
            let _ = parse(&text);
        }
    }
}
