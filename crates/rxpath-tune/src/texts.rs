//! The rules and tables that are part of the program: each `src/NAME.toml`.

use std::sync::LazyLock;

use rxpath_texts::PackedTexts;

static ALL: LazyLock<PackedTexts> =
    LazyLock::new(|| PackedTexts::unpack(include_bytes!(concat!(env!("OUT_DIR"), "/texts.z"))));

/// What `src/NAME.toml` says.
pub(crate) fn text(name: &str) -> &'static str {
    ALL.text(name)
}
