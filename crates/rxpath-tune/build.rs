//! Packs each `src/NAME.toml` into OUT_DIR, all of them as `texts.z`.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::ZlibEncoder;

fn main() {
    println!("cargo::rerun-if-changed=src");
    if let Err(error) = pack() {
        println!("cargo::error=cannot pack the texts: {error}");
    }
}

/// Of each file: its name, the end of the line, its text, and a zero.
fn pack() -> io::Result<()> {
    let mut files = Vec::new();
    collect(Path::new("src"), &mut files)?;
    files.sort();
    let to = Path::new(&std::env::var_os("OUT_DIR").unwrap_or_default()).join("texts.z");
    let mut packed = ZlibEncoder::new(File::create(to)?, Compression::best());
    for file in files {
        let name = file.strip_prefix("src").unwrap_or(&file).with_extension("");
        write!(packed, "{}\n{}\0", name.display(), fs::read_to_string(&file)?)?;
    }
    packed.finish().map(drop)
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if path.is_dir() {
        return fs::read_dir(path)?.try_for_each(|entry| collect(&entry?.path(), files));
    }
    if path.extension().is_some_and(|ending| ending == "toml") {
        files.push(path.to_owned());
    }
    Ok(())
}
