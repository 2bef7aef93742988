//! Replays the fuzzers' corpora through every parser, and mutations of them: no fuzzer and no nightly needed.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use chacha20::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

#[path = "../../fuzz/targets.rs"]
mod targets;

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

fn names(dir: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(dir).unwrap();
    entries.map(|e| e.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned()).collect()
}

fn inputs(target: &str) -> Vec<Vec<u8>> {
    let entries = fs::read_dir(fuzz().join("corpus").join(target)).unwrap();
    entries.map(|e| fs::read(e.unwrap().path()).unwrap()).collect()
}

#[test]
fn every_target_has_a_corpus() {
    let listed: BTreeSet<String> =
        targets::TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(listed, names(&fuzz().join("corpus")), "fuzz/targets.rs and fuzz/corpus/");
    for name in &listed {
        assert!(!inputs(name).is_empty(), "the corpus of {name} is empty");
    }
}

#[test]
fn no_input_of_a_corpus_panics() {
    for (name, target) in targets::TARGETS {
        for input in inputs(name) {
            target(&input);
        }
    }
}

#[test]
fn no_mutation_of_a_corpus_panics() {
    const SEED: u64 = 20_261_121;
    let mut random = ChaCha8Rng::seed_from_u64(SEED);
    for (name, target) in targets::TARGETS {
        for input in inputs(name) {
            for _ in 0..100 {
                target(&mutated(&input, &mut random));
            }
        }
    }
}

/// Cuts, repeats and overwrites, as a fuzzer would; small enough to run in every test run.
fn mutated(input: &[u8], random: &mut ChaCha8Rng) -> Vec<u8> {
    const SPICE: &[&[u8]] = &[
        b"-1",
        b"18446744073709551616",
        b"\n",
        b":",
        b" ",
        b"\0",
        b"(",
        b")",
        b",",
        b"\xff",
        b"CPU",
        "é".as_bytes(),
    ];
    let mut bytes = input.to_vec();
    for _ in 0..random.random_range(1..5) {
        let at = random.random_range(0..=bytes.len());
        match random.random_range(0..4) {
            0 => bytes.truncate(at),
            1 => {
                let spice = SPICE[random.random_range(0..SPICE.len())];
                bytes.splice(at..at, spice.iter().copied());
            }
            2 if at < bytes.len() => bytes[at] = random.random(),
            _ => {
                let end = random.random_range(at..=bytes.len()).min(at + 64);
                bytes.drain(at..end);
            }
        }
    }
    bytes
}
