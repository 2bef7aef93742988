//! TOML files that are part of the program. The build script of a crate packs those of a folder, and the crate reads them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;

/// For a build script: packs each `FOLDER/NAME.toml`, also of folders below it, as `texts.z` into `OUT_DIR`.
pub fn pack_for_build(folder: &str) {
    println!("cargo::rerun-if-changed={folder}");
    let to = Path::new(&std::env::var_os("OUT_DIR").unwrap_or_default()).join("texts.z");
    if let Err(error) = File::create(to).and_then(|file| pack(Path::new(folder), file)) {
        println!("cargo::error=cannot pack the texts: {error}");
    }
}

/// Of each file: its name, the end of the line, its text, and a zero.
fn pack(folder: &Path, to: impl Write) -> io::Result<()> {
    let mut files = Vec::new();
    collect(folder, &mut files)?;
    files.sort();
    let mut packed = ZlibEncoder::new(to, Compression::best());
    for file in files {
        let name = file.strip_prefix(folder).unwrap_or(&file).with_extension("");
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

/// The texts that the build script of the crate packed, unpacked at the first use.
#[macro_export]
macro_rules! texts_of_build {
    () => {
        std::sync::LazyLock::new(|| {
            $crate::PackedTexts::unpack(include_bytes!(concat!(env!("OUT_DIR"), "/texts.z")))
        })
    };
}

/// The texts of a folder by their names.
pub struct PackedTexts(BTreeMap<&'static str, &'static str>);

impl PackedTexts {
    /// The content of `texts.z`. The texts stay until the program ends, because what is read from them borrows.
    ///
    /// # Panics
    /// If a build script did not write it.
    #[must_use]
    #[expect(clippy::expect_used, reason = "a build script wrote it, and the tests read it")]
    pub fn unpack(packed: &[u8]) -> Self {
        let mut all = String::new();
        ZlibDecoder::new(packed).read_to_string(&mut all).expect("the packed texts");
        let all: &'static str = all.leak();
        let mut texts = BTreeMap::new();
        for file in all.split_terminator('\0') {
            let (name, text) = file.split_once('\n').expect("a name");
            texts.insert(name, text);
        }
        Self(texts)
    }

    /// What `NAME.toml` says.
    ///
    /// # Panics
    /// Without that file: a name in the crate is wrong, and a table that reads as empty would hide it.
    #[must_use]
    #[expect(clippy::panic, reason = "the tests read each text that a crate names")]
    pub fn text(&self, name: &str) -> &'static str {
        self.0.get(name).unwrap_or_else(|| panic!("there is no {name}.toml"))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn each_text_is_that_of_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let files =
            [("limits", "a = 1\n"), ("rules/queues", "b = \"\u{2265} 2\"\nc = 3\n"), ("empty", "")];
        fs::create_dir(folder.path().join("rules")).unwrap();
        fs::write(folder.path().join("code.rs"), "not a text").unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(format!("{name}.toml")), text).unwrap();
        }
        let mut packed = Vec::new();
        pack(folder.path(), &mut packed).unwrap();
        let texts = PackedTexts::unpack(&packed);
        assert_eq!(texts.0, BTreeMap::from(files));
        assert_eq!(texts.text("rules/queues"), "b = \"\u{2265} 2\"\nc = 3\n");
    }

    #[test]
    #[should_panic(expected = "there is no other.toml")]
    fn a_name_without_a_file_is_a_panic() {
        let mut packed = Vec::new();
        pack(tempfile::tempdir().unwrap().path(), &mut packed).unwrap();
        let _ = PackedTexts::unpack(&packed).text("other");
    }
}
