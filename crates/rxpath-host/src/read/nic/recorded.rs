//! Answers that a captured tree holds: one JSON file for each device, one for the host.
//!
//! The form is that of the types in [`crate::read::nic`]: typed and readable, so that a tree can be looked over before
//! it is given away, and written by hand. What a file does not hold is a gap ("not recorded"); what it holds
//! beyond these types is left alone, so that trees of older and newer versions can be read.

use rxpath_core::{Fact, IntoMap};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::error::Category;
use serde_json::{Map, Value, json};

use super::{HostAnswers, Nic};
use crate::parse::ParseError;
use crate::read::ioctl::FlowKind;
use crate::{HostError, Root};

/// Where a tree keeps the answers about a device.
pub fn device_path(dev: &str) -> String {
    format!("/netlink/device/{dev}.json")
}

/// Where a tree keeps the answers about the host.
pub const HOST_PATH: &str = "/netlink/host.json";

/// The answers about a device; all gaps when the tree has none.
///
/// **Errors** `Malformed` when the file is not what it should be.
pub fn load(root: &Root, dev: &str) -> Result<Nic, HostError> {
    from_file(root, &device_path(dev))
}

/// The answers about the host; all gaps when the tree has none.
///
/// **Errors** as [`load`].
pub fn load_host(root: &Root) -> Result<HostAnswers, HostError> {
    from_file(root, HOST_PATH)
}

fn from_file<T: DeserializeOwned + Default>(root: &Root, path: &str) -> Result<T, HostError> {
    match root.bytes(path) {
        Ok(bytes) => parse(&bytes).map_err(|e| e.at(root.path(path))),
        Err(HostError::Missing { .. }) => Ok(T::default()),
        Err(error) => Err(error),
    }
}

/// Reads a device's file.
pub fn parse_device(bytes: &[u8]) -> Result<Nic, ParseError> {
    parse(bytes)
}

/// Reads the host's file.
pub fn parse_host(bytes: &[u8]) -> Result<HostAnswers, ParseError> {
    parse(bytes)
}

fn parse<T: DeserializeOwned + Default>(bytes: &[u8]) -> Result<T, ParseError> {
    let bad = |e: serde_json::Error| {
        let why = match e.classify() {
            Category::Eof => "cut: the recorded answers end in the middle".to_owned(),
            Category::Syntax => format!("no JSON, recorded answers expected: {e}"),
            Category::Data | Category::Io => format!("not what a driver answers: {e}"),
        };
        ParseError::new(e.line(), why)
    };
    let mut answers: Value = serde_json::from_slice(bytes).map_err(bad)?;
    if let Ok(whole) = T::deserialize(answers.clone()) {
        return Ok(whole);
    }
    if let Value::Object(fields) = &mut answers {
        keep_readable::<T>(fields);
    }
    T::deserialize(answers).map_err(bad)
}

/// Makes a gap of each field that cannot be read, with the reason: it costs itself and not its file.
fn keep_readable<T: DeserializeOwned>(fields: &mut Map<String, Value>) {
    let error = |name: &str, value: &Value| {
        let alone = Value::Object(Map::from_iter([(name.to_owned(), value.clone())]));
        T::deserialize(alone).err()
    };
    let mut unreadable = Vec::new();
    for (name, value) in fields.iter_mut() {
        let Some(why) = error(name, value) else { continue };
        *value = json!({ "state": "absent", "why": format!("recorded, and not what a driver answers: {why}") });
        if error(name, value).is_some() {
            unreadable.push(name.clone());
        }
    }
    for name in unreadable {
        fields.remove(&name);
    }
}

/// Answers of which each is a gap, and why.
pub(super) fn all_gaps<T: Serialize + DeserializeOwned + Default>(why: &str) -> T {
    let mut answers = json!(T::default());
    let facts = answers.as_object_mut().into_iter().flat_map(|fields| fields.values_mut());
    for fact in facts.filter(|value| value.get("state").is_some()) {
        *fact = json!(Fact::<()>::absent(why));
    }
    T::deserialize(answers).unwrap_or_default()
}

impl Nic {
    /// A device of which nothing can be said, and why.
    pub fn all_gaps(why: &str) -> Self {
        let flow_hash = FlowKind::ALL.into_iter().map(|kind| (kind, Fact::absent(why))).into_map();
        Self { flow_hash, ..all_gaps(why) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::nic::Reader;
    use proptest::prelude::*;

    #[test]
    fn a_field_of_a_wrong_type_costs_itself() {
        let text = r#"{
            "rings": {"state": "ok", "value": {"rx": "many"}},
            "flow_hash": 7,
            "eee": {"state": "ok", "value": {"enabled": true}}
        }"#;
        let nic = parse_device(text.as_bytes()).unwrap();
        assert_eq!(nic.eee.value().unwrap().enabled, Some(true));
        assert!(nic.rings.gap().unwrap().contains("not what a driver answers"), "{:?}", nic.rings);
        assert!(nic.flow_hash.is_empty());
        assert!(parse_device(b"[1]").is_err() && parse_device(b"{\"rings\": ").is_err());
    }

    #[test]
    fn what_is_written_reads_back_the_same() {
        let lo = Reader::open().unwrap().device("lo");
        let text = serde_json::to_string_pretty(&lo).unwrap();
        assert_eq!(parse_device(text.as_bytes()).unwrap(), lo);
    }

    #[test]
    fn each_answer_is_a_gap_with_its_reason() {
        let others = |answers: &Value| -> Vec<String> {
            let fields = answers.as_object().unwrap().iter();
            fields.filter(|(_, fact)| fact["why"] != "gone").map(|(name, _)| name.clone()).collect()
        };
        let nic = json!(Nic::all_gaps("gone"));
        assert_eq!(others(&nic), ["flow_hash"]);
        assert!(others(&nic["flow_hash"]).is_empty());
        assert_eq!(nic["flow_hash"].as_object().unwrap().len(), FlowKind::ALL.len());
        assert!(others(&json!(all_gaps::<HostAnswers>("gone"))).is_empty());
    }

    #[test]
    fn what_is_not_in_the_file_is_a_gap_and_what_is_unknown_is_left_alone() {
        let nic = parse_device(br#"{"rings":{"state":"ok","value":{"rx":{"now":256}}},"later":1}"#);
        let nic = nic.unwrap();
        assert_eq!(nic.rings.value().unwrap().rx.now, Some(256));
        assert_eq!(nic.coalesce.gap().unwrap(), "absent: not recorded");
        let error = parse_device(b"{\n\"rings\": 7,}").unwrap_err();
        assert_eq!(error.line, 2, "{error}");
    }

    proptest! {
        #[test]
        fn garbage_never_panics(text in "\\PC{0,80}") {
            let _ = parse_device(text.as_bytes());
            let _ = parse_host(text.as_bytes());
        }
    }
}
