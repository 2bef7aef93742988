//! Packs the rules and tables, each `src/NAME.toml`.

fn main() {
    rxpath_texts::pack_for_build("src");
}
