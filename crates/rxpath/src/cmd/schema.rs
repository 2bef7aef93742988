//! `rxpath schema`: the JSON Schemas of all files and output.
//!
//! They are the files in `schemas/`, packed by the build script. Their types are read in tests only: the code that
//! makes a schema of a type would be a tenth of the program.

use std::collections::BTreeMap;

use flate2::read::ZlibDecoder;
use rxpath_core::IntoMap;
use serde_json::Value;

use crate::cmd::prelude::*;
use crate::cmd::values::write;
use crate::output::line;

/// What the build script wrote: what stands between pieces of text, the pieces, and for each name the places of its pieces.
type PackedSchemas = (String, Vec<String>, BTreeMap<String, Vec<usize>>);

fn packed() -> anyhow::Result<PackedSchemas> {
    let bytes: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/schemas.json.z"));
    let text = std::io::read_to_string(ZlibDecoder::new(bytes))?;
    let value: Value = serde_json::from_str(&text)?;
    Ok(serde_json::from_value(value)?)
}

/// The text of each schema by its name.
fn built_in() -> BTreeMap<String, String> {
    #[expect(clippy::expect_used, reason = "the build script wrote it, and a test reads it")]
    let (between, pieces, names) = packed().expect("built-in schemas");
    let text = |places: Vec<usize>| {
        let pieces: Vec<&str> = places.into_iter().map(|at| pieces[at].as_str()).collect();
        pieces.join(between.as_str())
    };
    names.into_iter().map(|(name, places)| (name, text(places))).into_map()
}

/// The names, for shells that complete them.
pub fn names() -> Vec<String> {
    built_in().into_keys().collect()
}

/// Options of `rxpath schema`.
#[derive(Debug, Args)]
pub struct SchemaCommand {
    /// Which one; without it, the names are listed
    name: Option<String>,
    /// Write all schemas as NAME.schema.json into this directory
    #[arg(long, value_name = "DIR", conflicts_with = "name")]
    write: Option<PathBuf>,
}

impl SchemaCommand {
    /// Lists, prints or writes.
    pub fn run(self) -> Outcome {
        let all = built_in();
        if let Some(directory) = self.write {
            for (name, schema) in &all {
                write(&directory.join(format!("{name}.schema.json")), schema)?;
            }
            return Ok(Exit::Done);
        }
        let Some(wanted) = self.name else {
            for name in all.keys() {
                line(name)?;
            }
            return Ok(Exit::Done);
        };
        let Some(schema) = all.get(&wanted) else {
            let names: Vec<&str> = all.keys().map(String::as_str).collect();
            return Err(Failure::usage(format!("there is no schema `{wanted}`"))
                .hint(format!("one of {}", names.join(", "))));
        };
        line(schema.trim_end())?;
        Ok(Exit::Done)
    }
}

#[cfg(test)]
mod tests;
