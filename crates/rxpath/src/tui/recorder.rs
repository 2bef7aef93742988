//! Writes frames into a recording as they arrive.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use rxpath_record::watch::{Packer, WatchFrame, WatchSettings};

/// An open recording. Each frame is written completely, so whatever is in the file can be replayed after any end of the
/// process.
#[derive(Debug)]
pub struct Recorder {
    file: File,
    packer: Packer,
    path: PathBuf,
    frames: u64,
}

impl Recorder {
    /// Begins a recording in a new file.
    ///
    /// # Errors
    /// If the file cannot be created; an existing file is not overwritten.
    pub fn create(path: &Path, settings: &WatchSettings) -> anyhow::Result<Self> {
        let mut file = File::create_new(path)
            .with_context(|| format!("cannot record into {}", path.display()))?;
        let (packer, first) = Packer::begin(settings)?;
        file.write_all(&first).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self { file, packer, path: path.into(), frames: 0 })
    }

    /// In the working directory, named by the time: `rxpath-watch-20260131T120000.jsonl.gz`.
    ///
    /// # Errors
    /// As [`Recorder::create`].
    pub fn named_by_time(settings: &WatchSettings) -> anyhow::Result<Self> {
        let now = jiff::Zoned::now().strftime("%Y%m%dT%H%M%S").to_string();
        Self::create(Path::new(&format!("rxpath-watch-{now}.jsonl.gz")), settings)
    }

    /// Adds a frame.
    ///
    /// # Errors
    /// If the disk is full or the file was removed.
    pub fn write(&mut self, frame: &WatchFrame) -> io::Result<()> {
        self.file.write_all(&self.packer.pack(frame)?)?;
        self.frames += 1;
        Ok(())
    }

    /// The file's name.
    pub fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Ends the recording and returns the message.
    pub fn finish(mut self) -> String {
        let last = self.packer.end().and_then(|last| self.file.write_all(&last));
        // Only the end mark is missing then, and a replay says so.
        let cut = last.map_or_else(|error| format!(", not ended: {error}"), |()| String::new());
        format!("{} frames in {}{cut}", self.frames, self.path.display())
    }
}
