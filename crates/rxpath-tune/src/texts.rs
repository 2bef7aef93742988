//! The rules and tables that are part of the program: each `src/NAME.toml`.

use std::sync::LazyLock;

use rxpath_texts::PackedTexts;

static ALL: LazyLock<PackedTexts> = rxpath_texts::texts_of_build!();

/// What `src/NAME.toml` says.
pub(crate) fn text(name: &str) -> &'static str {
    ALL.text(name)
}
