//! One host's report, as far as a summary needs it.
//!
//! Texts of findings are skipped while reading, and ids are shared: of 120 kB some 5 kB stay.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde::Deserialize;
use serde::de::IgnoredAny;
use thiserror::Error;

use crate::weight::{Magnitude, Severity};

/// The schema that is read here, and its major version.
const SCHEMA: &str = "rxpath/check/";
const MAJOR: u64 = 1;

/// Why a file is no report.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct Bad(String);

/// One finding, without its texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Brief {
    /// The rule.
    pub id: Arc<str>,
    /// The device's place in [`HostReport::devices`]; `None` for the host and for devices without hardware.
    pub device: Option<usize>,
    /// Whether it is about a device at all.
    pub is_of_device: bool,
    /// How bad.
    pub severity: Severity,
    /// How large the effect of the remedy would be.
    pub effect_size: Magnitude,
}

/// A NIC of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedNic {
    /// Its driver.
    pub driver: String,
    /// Its firmware.
    pub firmware: String,
}

/// One host's report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostReport {
    /// What it was judged for.
    pub goal: Option<String>,
    /// Its kernel; empty when the report does not tell.
    pub kernel: String,
    /// Its NICs.
    pub devices: Vec<ReportedNic>,
    /// What was found.
    pub findings: Vec<Brief>,
}

/// Ids that were seen before: one allocation for each rule, not for each finding.
#[derive(Debug, Default)]
pub struct Ids(HashSet<Arc<str>>);

impl Ids {
    fn shared(&mut self, id: &str) -> Arc<str> {
        if let Some(known) = self.0.get(id) {
            return Arc::clone(known);
        }
        let id: Arc<str> = Arc::from(id);
        self.0.insert(Arc::clone(&id));
        id
    }
}

#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

#[derive(Deserialize)]
struct Whole<'a> {
    #[serde(borrow)]
    schema: Cow<'a, str>,
    #[serde(borrow)]
    settings: Settings<'a>,
    #[serde(borrow)]
    result: Answers<'a>,
}

#[derive(Deserialize)]
struct Settings<'a> {
    #[serde(borrow, default)]
    goal: Option<Text<'a>>,
    #[serde(borrow, default)]
    kernel: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Answers<'a> {
    #[serde(borrow, default)]
    nics: Vec<NicLine<'a>>,
    #[serde(borrow)]
    findings: Vec<FindingLine<'a>>,
}

#[derive(Deserialize)]
struct NicLine<'a> {
    #[serde(borrow)]
    device: Text<'a>,
    #[serde(borrow, default)]
    driver: Option<Text<'a>>,
    #[serde(borrow, default)]
    firmware: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct FindingLine<'a> {
    #[serde(borrow)]
    id: Text<'a>,
    #[serde(borrow, default)]
    device: Option<Text<'a>>,
    severity: Severity,
    effect_size: Magnitude,
}

/// What any answer of this program begins with.
#[derive(Deserialize)]
struct Head {
    schema: Option<String>,
}

/// Reads a report; its ids are shared with those of reports before it.
pub fn parse(content: &[u8], ids: &mut Ids) -> Result<HostReport, Bad> {
    if content.iter().all(u8::is_ascii_whitespace) {
        return Err(Bad("empty".into()));
    }
    let whole: Whole<'_> = serde_json::from_slice(content).map_err(|error| why(content, &error))?;
    is_readable(&whole.schema)?;
    Ok(brief(whole, ids))
}

fn brief(whole: Whole<'_>, ids: &mut Ids) -> HostReport {
    let text = |text: Option<Text<'_>>| text.map_or_else(String::new, |text| text.0.into_owned());
    let nics = whole.result.nics.iter().enumerate();
    let places: HashMap<&str, usize> = nics.map(|(at, nic)| (nic.device.0.as_ref(), at)).collect();
    let findings = whole.result.findings.iter().map(|finding| Brief {
        id: ids.shared(&finding.id.0),
        device: finding.device.as_ref().and_then(|name| places.get(name.0.as_ref()).copied()),
        is_of_device: finding.device.is_some(),
        severity: finding.severity,
        effect_size: finding.effect_size,
    });
    let findings = findings.collect();
    HostReport {
        findings,
        goal: whole.settings.goal.map(|goal| goal.0.into_owned()),
        kernel: text(whole.settings.kernel),
        devices: whole
            .result
            .nics
            .into_iter()
            .map(|nic| ReportedNic { driver: text(nic.driver), firmware: text(nic.firmware) })
            .collect(),
    }
}

/// The schema's name and major version; a later minor version only adds.
fn is_readable(schema: &str) -> Result<(), Bad> {
    let unknown = || other(&format!("schema `{}`", short(schema)));
    let version = schema.strip_prefix(SCHEMA).ok_or_else(unknown)?;
    let major = version.split('.').next().and_then(|major| major.parse::<u64>().ok());
    match major {
        Some(MAJOR) => Ok(()),
        Some(major) if major > MAJOR => {
            let version = short(version);
            Err(Bad(format!("of the newer version {version}: this rxpath reads {MAJOR}.x")))
        }
        _ => Err(unknown()),
    }
}

/// Why `content` is no report, after reading it as one failed.
fn why(content: &[u8], error: &serde_json::Error) -> Bad {
    if !error.is_data() {
        return broken(error);
    }
    // JSON, and not of our form: the schema's name tells more than the first field that does not fit.
    match serde_json::from_slice::<Head>(content) {
        Ok(Head { schema: Some(schema) }) => match is_readable(&schema) {
            Ok(()) => Bad(format!("not of the form of its schema: {error}")),
            Err(bad) => bad,
        },
        Ok(Head { schema: None }) => other("JSON without a schema"),
        // The field that did not fit may stand before the place where the text breaks.
        Err(_) => match serde_json::from_slice::<IgnoredAny>(content) {
            Ok(_) => other("JSON without a schema"),
            Err(deeper) => broken(&deeper),
        },
    }
}

/// It ends in the middle, or is no JSON.
fn broken(error: &serde_json::Error) -> Bad {
    Bad(if error.is_eof() {
        format!("cut off at line {}, column {}", error.line(), error.column())
    } else {
        format!("not JSON: {error}")
    })
}

/// JSON of something else: what it says it is.
fn other(found: &str) -> Bad {
    Bad(format!("{found}, not a report of `rxpath check --json`"))
}

/// Enough of a text from a file to know it again.
fn short(text: &str) -> String {
    const LONGEST: usize = 60;
    let cut: String = text.chars().take(LONGEST).collect();
    if cut.len() < text.len() { format!("{cut}...") } else { cut }
}
