//! Which file is sent to a host: a build for its architecture, from the same sources as this program.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};

use crate::program::ProgramFile;
use crate::refusal::HostRefusal;
use crate::ship;

/// Where builds for other hosts are installed.
const INSTALLED: &str = "/usr/local/lib/rxpath";

/// The architectures of hosts, as `uname -m` names them.
pub const ARCHITECTURES: [&str; 2] = ["x86_64", "aarch64"];

/// A file for hosts of an architecture, as the user gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// The architecture as `uname -m` names it.
    pub arch: String,
    /// The file.
    pub file: PathBuf,
}

impl FromStr for Given {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((arch, file)) if ARCHITECTURES.contains(&arch) && !file.is_empty() => {
                Ok(Self { arch: arch.to_owned(), file: file.into() })
            }
            _ => Err("write x86_64=FILE or aarch64=FILE".into()),
        }
    }
}

/// A file that is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binary {
    /// The architecture that it is for.
    pub arch: String,
    /// Where it is.
    pub path: PathBuf,
    /// SHA-256 of the file, in hexadecimal.
    pub hash: String,
}

/// The files that can be sent.
#[derive(Debug)]
pub struct Binaries {
    /// The file of this program.
    pub own: PathBuf,
    /// The build id of this program and of all that is sent.
    pub build: String,
    folders: Vec<PathBuf>,
    /// By architecture, once it is known.
    chosen: Mutex<BTreeMap<String, Binary>>,
}

impl Binaries {
    /// Of a program whose file is `own` and whose build id is `build`, with the files that the user gave.
    ///
    /// # Errors
    /// If a file that was given is not a program of this build for its architecture.
    pub fn new(own: PathBuf, build: &str, given: &[Given]) -> Result<Self, HostRefusal> {
        let mut chosen = BTreeMap::new();
        for Given { arch, file } in given {
            let hash = fitting(file, arch, build).map_err(|why| HostRefusal {
                text: format!("--binary {arch}={}: {why}", file.display()),
                hint: format!("make static, on {arch} and from the sources of this program"),
            })?;
            let binary = Binary { arch: arch.clone(), path: file.clone(), hash };
            if chosen.insert(arch.clone(), binary).is_some() {
                return Err(HostRefusal {
                    text: format!("--binary: {arch} has two files"),
                    hint: "give one for each architecture".into(),
                });
            }
        }
        let beside = own.parent().map(Path::to_owned);
        let folders = beside.into_iter().chain([INSTALLED.into()]).collect();
        Ok(Self { own, build: build.to_owned(), folders, chosen: Mutex::new(chosen) })
    }

    /// The file for hosts of an architecture: one that was given, else `rxpath-ARCH` in the directory of this program or
    /// among the installed ones, else this program. `note` gets a line for each file that is passed over.
    ///
    /// # Errors
    /// If there is none, with what is wrong with those that are there.
    pub fn of(&self, arch: &str, note: &mut dyn FnMut(&str)) -> Result<Binary, String> {
        // why: hosts are connected to at once; the first of them looks, and the others wait for its answer.
        let mut chosen = self.chosen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(binary) = chosen.get(arch) {
            return Ok(binary.clone());
        }
        let mut unfit = Vec::new();
        match self.built_for(arch, &mut unfit).map_or_else(|| self.this(arch), Ok) {
            Ok(binary) => {
                for why in unfit {
                    note(&format!("{why}; it is not sent"));
                }
                chosen.insert(arch.to_owned(), binary.clone());
                Ok(binary)
            }
            Err(why) => Err(unfit.into_iter().next().unwrap_or(why)),
        }
    }

    /// The first `rxpath-ARCH` that fits.
    fn built_for(&self, arch: &str, unfit: &mut Vec<String>) -> Option<Binary> {
        let paths = self.folders.iter().map(|folder| folder.join(format!("rxpath-{arch}")));
        paths.filter(|path| path.exists()).find_map(|path| {
            match fitting(&path, arch, &self.build) {
                Ok(hash) => Some(Binary { arch: arch.to_owned(), path, hash }),
                Err(why) => {
                    unfit.push(format!("{} {why}", path.display()));
                    None
                }
            }
        })
    }

    /// This program, for a host of its own architecture.
    fn this(&self, arch: &str) -> Result<Binary, String> {
        if arch != std::env::consts::ARCH {
            return Err("no static build for it is here".into());
        }
        let hash = ship::hash_of(&self.own)
            .map_err(|error| format!("{} cannot be read: {error}", self.own.display()))?;
        Ok(Binary { arch: arch.to_owned(), path: self.own.clone(), hash })
    }
}

/// The hash of a file that is a program of this build for this architecture; or why it is not.
fn fitting(path: &Path, arch: &str, build: &str) -> Result<String, String> {
    let program = ProgramFile::read(path)?;
    program.unfit(arch, build).map_or(Ok(program.hash), Err)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::tests::{BUILD, program};

    const HERE: &str = std::env::consts::ARCH;

    /// Numbers of this machine's architecture and of another one, and the other one's name.
    fn machines() -> (u8, u8, &'static str) {
        if HERE == "x86_64" { (62, 183, "aarch64") } else { (183, 62, "x86_64") }
    }

    /// What is chosen for an architecture, without looking where builds are installed; and the notes.
    fn chosen(own: &Path, arch: &str) -> (Result<PathBuf, String>, Vec<String>) {
        let mut binaries = Binaries::new(own.to_owned(), BUILD, &[]).unwrap();
        binaries.folders.truncate(1);
        let mut notes = Vec::new();
        let found = binaries.of(arch, &mut |text| notes.push(text.to_owned()));
        (found.map(|binary| binary.path), notes)
    }

    #[test]
    fn a_build_for_the_architecture_is_sent_else_this_program_where_it_can_run() {
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().join("rxpath");
        std::fs::write(&own, "this program").unwrap();
        let (here, other, other_name) = machines();
        assert_eq!(chosen(&own, HERE), (Ok(own.clone()), vec![]));
        let missing = Err("no static build for it is here".to_owned());
        assert_eq!(chosen(&own, other_name), (missing, vec![]));
        let [built, built_other] =
            [HERE, other_name].map(|arch| dir.path().join(format!("rxpath-{arch}")));
        std::fs::write(&built, program(here, BUILD)).unwrap();
        std::fs::write(&built_other, program(other, BUILD)).unwrap();
        assert_eq!(chosen(&own, HERE), (Ok(built.clone()), vec![]));
        assert_eq!(chosen(&own, other_name), (Ok(built_other.clone()), vec![]));
        // Those of another build: passed over where this program can be sent, else the reason.
        std::fs::write(&built, program(here, "0.1.0-ffffffffffff")).unwrap();
        std::fs::write(&built_other, program(other, "0.1.0-ffffffffffff")).unwrap();
        let skew = |path: &Path| {
            format!("{} is build 0.1.0-ffffffffffff, this is {BUILD}", path.display())
        };
        let note = skew(&built) + "; it is not sent";
        assert_eq!(chosen(&own, HERE), (Ok(own.clone()), vec![note]));
        assert_eq!(chosen(&own, other_name), (Err(skew(&built_other)), vec![]));
    }

    #[test]
    fn a_file_that_was_given_is_sent_before_all_others_or_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (own, file) = (dir.path().join("rxpath"), dir.path().join("build"));
        let (here, ..) = machines();
        for (path, bytes) in [
            (&own, b"this program".to_vec()),
            (&file, program(here, BUILD)),
            (&dir.path().join(format!("rxpath-{HERE}")), program(here, BUILD)),
        ] {
            std::fs::write(path, bytes).unwrap();
        }
        let given: Given = format!("{HERE}={}", file.display()).parse().unwrap();
        let binaries = Binaries::new(own.clone(), BUILD, std::slice::from_ref(&given)).unwrap();
        assert_eq!(binaries.of(HERE, &mut |_| {}).unwrap().path, file);
        let refused = |given: &[Given]| Binaries::new(own.clone(), BUILD, given).unwrap_err().text;
        let twice = refused(&[given.clone(), given.clone()]);
        assert_eq!(twice, format!("--binary: {HERE} has two files"));
        std::fs::write(&file, "text").unwrap();
        let path = file.display();
        assert_eq!(refused(&[given]), format!("--binary {HERE}={path}: is not a program (ELF)"));
        for wrong in ["x86_64", "x86_64=", "=file", "mips=file", ""] {
            assert!(wrong.parse::<Given>().is_err(), "{wrong}");
        }
    }
}
