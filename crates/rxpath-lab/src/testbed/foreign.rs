//! A third-party program as it is to be started: its words, and the files that it reads.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use crate::error::LabError;

/// Stands for the directory of its files, in words and in files.
const DIR: &str = "{dir}";

/// A third-party program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForeignProgram {
    /// The command, word by word.
    pub words: Vec<String>,
    /// Name and text of each file.
    pub files: BTreeMap<String, String>,
}

impl ForeignProgram {
    /// Its command with pipes, once its files are in `dir`, which is made where it is needed.
    ///
    /// # Errors
    /// If a file cannot be written there.
    pub fn command(&self, dir: &Path) -> Result<Command, LabError> {
        let fill = |text: &String| text.replace(DIR, &dir.display().to_string());
        if self.needs_dir() {
            let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(dir);
            made.map_err(|error| LabError::io("make {dir}", error))?;
        }
        for (name, text) in &self.files {
            let written = fs::write(dir.join(name), fill(text));
            written.map_err(|error| LabError::io("write serve.files", error))?;
        }
        let words: Vec<String> = self.words.iter().map(fill).collect();
        let Some((program, arguments)) = words.split_first() else {
            return Err(LabError::internal("a foreign program with an empty command"));
        };
        let mut command = Command::new(program);
        command.args(arguments);
        piped(&mut command);
        Ok(command)
    }

    /// Whether it has a directory.
    pub fn needs_dir(&self) -> bool {
        !self.files.is_empty() || self.words.iter().any(|word| word.contains(DIR))
    }
}

/// Pipes, and a group of its own: Ctrl-C reaches the runner only, which then ends its programs in order.
pub fn piped(command: &mut Command) {
    command.process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
}
