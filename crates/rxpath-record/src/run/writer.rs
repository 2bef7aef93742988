//! Writes a run so that it can be read at any moment, also after a kill or a power cut.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use rxpath_core::number::grouped;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::{CALIBRATION, ENVIRONMENT, EVENTS, HISTOGRAMS, MANIFEST, RunError, SAMPLES};
use crate::environment::Environment;
use crate::event::{RunEvent, What};
use crate::manifest::{Manifest, Status};
use crate::samples::TrialSamples;

/// One run being written.
///
/// Events are appended and flushed line by line, and synced to the disk at the end of each trial. The manifest
/// is replaced whole, by rename, so that a reader sees the old or the new one and never half of it.
#[derive(Debug)]
pub struct RunWriter {
    directory: PathBuf,
    events: File,
    lines: u64,
    trials: u64,
    /// Length of the last whole line's end: what a failed append is cut back to.
    length: u64,
}

impl RunWriter {
    /// Makes `base/run_id` and an empty `events.jsonl` in it. `base` is made when it is missing.
    pub fn create(base: &Path, run_id: &str) -> Result<Self, RunError> {
        let nothing = || "nothing of the run was written".to_owned();
        fs::create_dir_all(base).map_err(|e| RunError::of("create", base, nothing, e))?;
        let directory = base.join(run_id);
        fs::create_dir(&directory).map_err(|e| RunError::of("create", &directory, nothing, e))?;
        let path = directory.join(EVENTS);
        let events = OpenOptions::new()
            .append(true)
            .create_new(true)
            .open(&path)
            .map_err(|e| RunError::of("create", &path, nothing, e))?;
        Ok(Self { directory, events, lines: 0, trials: 0, length: 0 })
    }

    /// The run directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Appends one event. `trial-ended` and `run-ended` are synced to the disk.
    ///
    /// A line that can't be written whole is taken back, so that what is there stays readable.
    pub fn event(&mut self, event: &RunEvent) -> Result<(), RunError> {
        let path = self.directory.join(EVENTS);
        let mut line = serde_json::to_vec(event)
            .map_err(|source| RunError::Unwritable { path: path.clone(), source })?;
        line.push(b'\n');
        if let Err(error) = self.events.write_all(&line) {
            // On a full disk shrinking still works; if it does not, the reader drops the half line.
            let _ = self.events.set_len(self.length);
            return Err(RunError::of("write", &path, || self.kept(), error));
        }
        self.length += line.len() as u64;
        self.lines += 1;
        if matches!(event.what, What::TrialEnded { .. } | What::RunEnded { .. }) {
            self.events
                .sync_data()
                .map_err(|error| RunError::of("sync", &path, || self.kept(), error))?;
            self.trials += u64::from(matches!(event.what, What::TrialEnded { .. }));
        }
        Ok(())
    }

    /// Replaces `manifest.json`.
    pub fn manifest(&self, manifest: &Manifest) -> Result<(), RunError> {
        self.replace(MANIFEST, manifest)
    }

    /// Replaces `environment.json`.
    pub fn environment(&self, environment: &Environment) -> Result<(), RunError> {
        self.replace(ENVIRONMENT, environment)
    }

    /// Replaces `calibration.json`.
    pub fn calibration(&self, calibration: &serde_json::Value) -> Result<(), RunError> {
        self.replace(CALIBRATION, calibration)
    }

    /// Appends the samples of a trial to `samples.jsonl.gz`, as a gzip member of their own.
    pub fn samples(&self, samples: &TrialSamples) -> Result<(), RunError> {
        let path = self.directory.join(SAMPLES);
        let mut line = serde_json::to_vec(samples)
            .map_err(|source| RunError::Unwritable { path: path.clone(), source })?;
        line.push(b'\n');
        let made = OpenOptions::new().append(true).create(true).open(&path).and_then(|file| {
            let before = file.metadata()?.len();
            let mut packed = GzEncoder::new(&file, Compression::fast());
            let written = packed.write_all(&line).and_then(|()| packed.try_finish());
            drop(packed);
            // Half a member would hide those of later trials.
            written.inspect_err(|_| drop(file.set_len(before)))
        });
        made.map_err(|error| RunError::of("write", &path, || self.kept(), error))
    }

    /// Makes `histograms/<name>.hlog` with what `write` puts into it.
    ///
    /// The name becomes one path component: what is not a letter, digit, `-`, `_`, `.` or `@` is replaced by `-`.
    pub fn histogram(
        &self,
        name: &str,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), RunError> {
        let directory = self.directory.join(HISTOGRAMS);
        let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.@".contains(c) { c } else { '-' };
        let name: String = name.chars().map(plain).collect();
        let path = directory.join(format!("{}.hlog", name.trim_start_matches('.')));
        let made = fs::create_dir_all(&directory)
            .and_then(|()| File::create(&path))
            .map(io::BufWriter::new)
            .and_then(|mut file| {
                write(&mut file)?;
                file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_data()
            });
        made.map_err(|error| RunError::of("write", &path, || self.kept(), error))
    }

    /// Ends the run: syncs the events, adds the checksum of each data file to `manifest` and writes it.
    ///
    /// Checksums are those of the files at this moment; `report.html` and the manifest itself have none.
    pub fn finish(self, mut manifest: Manifest) -> Result<PathBuf, RunError> {
        let path = self.directory.join(EVENTS);
        self.events.sync_all().map_err(|e| RunError::of("sync", &path, || self.kept(), e))?;
        if manifest.status == Status::Running {
            manifest.status = Status::Complete;
        }
        manifest.files = checksums(&self.directory)?;
        self.manifest(&manifest)?;
        Ok(self.directory)
    }

    fn replace(&self, name: &str, value: &impl Serialize) -> Result<(), RunError> {
        let path = self.directory.join(name);
        let mut text = serde_json::to_vec_pretty(value)
            .map_err(|source| RunError::Unwritable { path: path.clone(), source })?;
        text.push(b'\n');
        let temporary = self.directory.join(format!(".{name}.new"));
        let written = File::create(&temporary)
            .and_then(|mut file| {
                file.write_all(&text)?;
                file.sync_all()
            })
            .and_then(|()| fs::rename(&temporary, &path))
            // The rename itself is only on the disk when the directory is.
            .and_then(|()| File::open(&self.directory)?.sync_all());
        written.map_err(|error| {
            let _ = fs::remove_file(&temporary);
            RunError::of("write", &path, || self.kept(), error)
        })
    }

    fn kept(&self) -> String {
        format!(
            "{} events and {} whole trials are kept in {}; free space and run again, or \
             `rxpath report` what is there",
            grouped(self.lines),
            grouped(self.trials),
            self.directory.display()
        )
    }
}

/// SHA-256 of each data file of `directory`, by its name relative to it.
fn checksums(directory: &Path) -> Result<BTreeMap<String, String>, RunError> {
    let mut sums = BTreeMap::new();
    for name in [ENVIRONMENT, CALIBRATION, EVENTS, SAMPLES] {
        if let Some(sum) = sha256(&directory.join(name))? {
            sums.insert(name.to_owned(), sum);
        }
    }
    let histograms = directory.join(HISTOGRAMS);
    let failed = |source| RunError::Io { op: "read", path: histograms.clone(), source };
    if histograms.is_dir() {
        for entry in fs::read_dir(&histograms).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if let Some(sum) = sha256(&entry.path())? {
                sums.insert(format!("{HISTOGRAMS}/{name}"), sum);
            }
        }
    }
    Ok(sums)
}

/// SHA-256 of a file in hex; `None` when there is no such file.
pub(super) fn sha256(path: &Path) -> Result<Option<String>, RunError> {
    let failed = |source| RunError::Io { op: "read", path: path.to_owned(), source };
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let got = file.read(&mut buffer).map_err(failed)?;
        if got == 0 {
            break;
        }
        digest.update(&buffer[..got]);
    }
    let hex = |text: String, byte: &u8| text + &format!("{byte:02x}");
    Ok(Some(digest.finalize().iter().fold(String::new(), hex)))
}
