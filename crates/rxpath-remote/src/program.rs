//! What the file of a program says of itself: for which architecture it is, and of which build.

use std::fs;
use std::path::Path;

use crate::ship;

/// Comes before the build id in a file of rxpath.
const MARK: &[u8] = b"@@rxpath-build ";
/// Comes after it.
const END: &[u8] = b"@@";
/// The longest build id.
const LONGEST: usize = 64;
/// Hexadecimal digits of the sources' hash in it.
const DIGITS: usize = 12;

/// A program, read from its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramFile {
    /// Its architecture as `uname -m` names it; `None` for one on which rxpath does not run.
    pub arch: Option<&'static str>,
    /// The build id; `None` if it is no rxpath, or one that has none.
    pub build: Option<String>,
    /// SHA-256 of the file, in hexadecimal.
    pub hash: String,
}

impl ProgramFile {
    /// Reads a program's file; or says what is wrong with it.
    pub fn read(path: &Path) -> Result<Self, String> {
        let unreadable = |error| format!("cannot be read: {error}");
        if !fs::metadata(path).map_err(unreadable)?.is_file() {
            return Err("is not a file".into());
        }
        let bytes = fs::read(path).map_err(unreadable)?;
        let machine = machine(&bytes).ok_or("is not a program (ELF)")?;
        Ok(Self { arch: arch_of(machine), build: build(&bytes), hash: ship::hash(&bytes) })
    }

    /// Why it cannot stand for a program of this build on this architecture; `None` if it can.
    pub fn unfit(&self, arch: &str, build: &str) -> Option<String> {
        match (self.arch, &self.build) {
            (Some(own), _) if own != arch => Some(format!("is a program for {own}")),
            (None, _) => Some(format!("is not a program for {arch}")),
            (_, Some(own)) if own == build => None,
            (_, Some(own)) => Some(format!("is build {own}, this is {build}")),
            (_, None) => Some("is not rxpath, or has no build id".into()),
        }
    }
}

/// The machine in the header of a program. **Source** elf(5): the byte order is at 5, the machine at 18.
fn machine(bytes: &[u8]) -> Option<u16> {
    let machine = [*bytes.get(18)?, *bytes.get(19)?];
    match (bytes.starts_with(b"\x7fELF"), bytes[5]) {
        (true, 1) => Some(u16::from_le_bytes(machine)),
        (true, 2) => Some(u16::from_be_bytes(machine)),
        _ => None,
    }
}

/// **Source** include/uapi/linux/elf-em.h.
fn arch_of(machine: u16) -> Option<&'static str> {
    match machine {
        62 => Some("x86_64"),
        183 => Some("aarch64"),
        _ => None,
    }
}

fn build(bytes: &[u8]) -> Option<String> {
    let marks = bytes.windows(MARK.len()).enumerate().filter(|(_, window)| *window == MARK);
    marks.map(|(at, _)| &bytes[at + MARK.len()..]).find_map(|rest| {
        let rest = &rest[..rest.len().min(LONGEST + END.len())];
        let end = rest.windows(END.len()).position(|window| window == END)?;
        let id = std::str::from_utf8(&rest[..end]).ok()?;
        is_build_id(id).then(|| id.to_owned())
    })
}

/// A version, a hyphen, a hash. Other text may follow a mark that is only looked for.
fn is_build_id(text: &str) -> bool {
    let Some((version, rest)) = text.rsplit_once('-') else { return false };
    let hash = rest.split('+').next().unwrap_or_default();
    version.starts_with(|c: char| c.is_ascii_digit())
        && hash.len() == DIGITS
        && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".+-".contains(&byte))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub const BUILD: &str = "0.1.0-0123456789ab";

    /// The bytes of a program, so far as they are looked at.
    pub fn program(machine: u8, build: &str) -> Vec<u8> {
        let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
        bytes.resize(18, 0);
        bytes.extend([machine, 0]);
        // A mark that another text follows, as in a program that looks for it.
        bytes.extend(b"@@rxpath-build some text@@rxpath-stored");
        bytes.extend(format!("@@rxpath-build {build}@@").bytes());
        bytes
    }

    fn read(bytes: &[u8]) -> Result<ProgramFile, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), bytes).unwrap();
        ProgramFile::read(file.path())
    }

    #[test]
    fn a_program_says_for_which_machine_it_is_and_of_which_build() {
        let own = read(&program(62, BUILD)).unwrap();
        assert_eq!((own.arch, own.build.as_deref()), (Some("x86_64"), Some(BUILD)));
        assert_eq!(own.unfit("x86_64", BUILD), None);
        assert_eq!(own.unfit("aarch64", BUILD).unwrap(), "is a program for x86_64");
        let other = own.unfit("x86_64", "0.1.0-ffffffffffff").unwrap();
        assert_eq!(other, "is build 0.1.0-0123456789ab, this is 0.1.0-ffffffffffff");
        let without = read(&program(62, "0.1.0-0123456789ab+nobpf")).unwrap();
        assert!(without.unfit("x86_64", BUILD).unwrap().contains("+nobpf"));
        let arm = read(&program(183, BUILD)).unwrap();
        assert_eq!(arm.arch, Some("aarch64"));
        let strange = read(&program(8, BUILD)).unwrap();
        assert_eq!(strange.unfit("x86_64", BUILD).unwrap(), "is not a program for x86_64");
        let foreign = read(&program(62, "no id")).unwrap();
        assert_eq!(foreign.unfit("x86_64", BUILD).unwrap(), "is not rxpath, or has no build id");
    }

    #[test]
    fn what_is_no_program_is_said_to_be_none() {
        assert_eq!(
            read(b"#!/bin/sh\necho a script, not a program\n"),
            Err("is not a program (ELF)".into())
        );
        assert_eq!(read(b"\x7fELF"), Err("is not a program (ELF)".into()));
        assert_eq!(ProgramFile::read(Path::new("/")), Err("is not a file".into()));
        let missing = ProgramFile::read(Path::new("/nonexistent")).unwrap_err();
        assert!(missing.starts_with("cannot be read: No such file"), "{missing}");
    }
}
