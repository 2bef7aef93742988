//! Names the sources of this build, and packs the schemas and the TOML files. Programs with one build id understand each other over a pipe.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::ZlibEncoder;
use sha2::{Digest, Sha256};

/// What of a crate becomes a part of the program.
const PARTS: [&str; 5] = ["Cargo.toml", "build.rs", "src", "bpf", "scenarios"];
/// Bytes of the hash that are shown.
const SHOWN: usize = 6;

fn main() {
    match id() {
        Ok(id) => println!("cargo::rustc-env=RXPATH_BUILD={id}"),
        Err(error) => println!("cargo::error=cannot read the sources: {error}"),
    }
    rxpath_texts::pack_for_build("src");
    if let Err(error) = pack_schemas() {
        println!("cargo::error=cannot pack the schemas: {error}");
    }
    let which = if has("LAB") { "" } else { " (agent)" };
    println!("cargo::rustc-env=RXPATH_VERSION={}{which}", env!("CARGO_PKG_VERSION"));
}

fn id() -> io::Result<String> {
    let mut files = Vec::new();
    let mut roots = vec![PathBuf::from("../../Cargo.toml"), PathBuf::from("../../Cargo.lock")];
    for entry in fs::read_dir("..")? {
        let folder = entry?.path();
        roots.extend(PARTS.iter().map(|part| folder.join(part)).filter(|path| path.exists()));
    }
    for root in &roots {
        println!("cargo::rerun-if-changed={}", root.display());
        collect(root, &mut files)?;
    }
    files.sort();
    let mut digest = Sha256::new();
    for file in &files {
        let bytes = fs::read(file)?;
        digest.update(format!("{} {}\n", file.display(), bytes.len()));
        digest.update(bytes);
    }
    let shown = digest.finalize().into_iter().take(SHOWN);
    let hash = shown.fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
    let bpf = if has("BPF") { "" } else { "+nobpf" };
    let lab = if has("LAB") { "" } else { "+agent" };
    Ok(format!("{}-{hash}{bpf}{lab}", env!("CARGO_PKG_VERSION")))
}

/// What stands before a definition in a schema.
const BEFORE: &str = "\n    \"";

/// Writes the files of `schemas/` as compressed JSON: what stands between pieces of text, the pieces, and for each name the
/// places of its pieces.
///
/// Types are parts of several schemas, further apart than the 32 KiB in which zlib finds a text again: half of the bytes.
fn pack_schemas() -> io::Result<()> {
    let mut texts = BTreeMap::new();
    println!("cargo::rerun-if-changed=../../schemas");
    for entry in fs::read_dir("../../schemas")? {
        let path = entry?.path();
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if let Some(name) = file.strip_suffix(".schema.json") {
            texts.insert(name.to_owned(), fs::read_to_string(&path)?);
        }
    }
    let to = Path::new(&std::env::var_os("OUT_DIR").unwrap_or_default()).join("schemas.json.z");
    let mut packed = ZlibEncoder::new(File::create(to)?, Compression::best());
    let pieces: BTreeSet<&str> = texts.values().flat_map(|text| text.split(BEFORE)).collect();
    let pieces: Vec<&str> = pieces.into_iter().collect();
    let names: BTreeMap<&String, Vec<usize>> =
        texts.iter().map(|(name, text)| (name, places(text, &pieces))).collect();
    serde_json::to_writer(&mut packed, &(BEFORE, &pieces, names))?;
    packed.finish().map(drop)
}

/// The places of the pieces of a text, among all in order.
fn places(text: &str, pieces: &[&str]) -> Vec<usize> {
    let place = |piece: &str| pieces.binary_search(&piece).unwrap_or_default();
    text.split(BEFORE).map(place).collect()
}

/// Whether the program is built with this feature.
fn has(feature: &str) -> bool {
    std::env::var_os(format!("CARGO_FEATURE_{feature}")).is_some()
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    fs::read_dir(path)?.try_for_each(|entry| collect(&entry?.path(), files))
}
