//! Packs the scenarios, each `scenarios/NAME.toml`.

fn main() {
    rxpath_texts::pack_for_build("scenarios");
}
