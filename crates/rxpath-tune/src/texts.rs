//! The rules and tables that are part of the program, as TOML: each `src/NAME.toml`, packed by the build script.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::LazyLock;

use flate2::read::ZlibDecoder;
use rxpath_core::IntoMap;

/// The texts by their names. They stay until the program ends, because rules borrow from them.
static ALL: LazyLock<BTreeMap<&'static str, &'static str>> = LazyLock::new(|| {
    let packed: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/texts.z"));
    let mut all = String::new();
    #[expect(clippy::expect_used, reason = "the build script wrote it, and the tests read it")]
    ZlibDecoder::new(packed).read_to_string(&mut all).expect("the packed texts");
    let all: &'static str = all.leak();
    all.split_terminator('\0').filter_map(|file| file.split_once('\n')).into_map()
});

/// What `src/NAME.toml` says.
///
/// # Panics
/// Without that file: a name in this crate is wrong, and a table that reads as empty would hide it.
#[expect(clippy::panic, reason = "the tests read each text that the crate names")]
pub(crate) fn text(name: &str) -> &'static str {
    ALL.get(name).unwrap_or_else(|| panic!("there is no src/{name}.toml"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_text_is_that_of_its_file() {
        for (name, text) in &*ALL {
            let file = format!("{}/src/{name}.toml", env!("CARGO_MANIFEST_DIR"));
            assert_eq!(std::fs::read_to_string(file).unwrap(), *text, "{name}");
        }
        assert!(ALL.contains_key("rules/queues/rings") && ALL.contains_key("limits/settings"));
    }
}
