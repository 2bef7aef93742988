//! What a parameter file and `--set` gave.

use std::collections::BTreeMap;

use serde_json::Value;

/// What a file and `--set` gave, by key: checked, and in the key's base unit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values {
    pub(super) given: BTreeMap<&'static str, Value>,
}
