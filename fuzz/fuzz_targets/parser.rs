//! One fuzzer for all parsers: `RXPATH_FUZZ_TARGET` names the line of `targets.rs` that it runs.
#![no_main]

use std::sync::LazyLock;

#[path = "../targets.rs"]
mod targets;

static TARGET: LazyLock<targets::Target> = LazyLock::new(|| {
    let name = std::env::var("RXPATH_FUZZ_TARGET").unwrap_or_default();
    let found = targets::TARGETS.iter().find(|(target, _)| *target == name);
    found.map(|(_, run)| *run).expect("RXPATH_FUZZ_TARGET: a target of fuzz/targets.rs")
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| TARGET(bytes));
