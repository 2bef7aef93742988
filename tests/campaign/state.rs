//! What a part has done so far: one JSON line per step in `target/campaign/PART.jsonl`, summed up by row.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// One step: how much of what it did, and what it found wrong.
#[derive(Serialize, Deserialize)]
struct Step {
    row: String,
    count: u64,
    /// The largest value seen of what the row watches, with its unit in the row's name.
    peak: Option<u64>,
    found: Option<String>,
}

#[derive(Default)]
struct Row {
    count: u64,
    peak: Option<u64>,
    found: Vec<String>,
}

/// A part and its steps.
pub struct Part {
    name: &'static str,
    steps: Vec<Step>,
}

impl Part {
    pub fn open(name: &'static str) -> Self {
        let text = fs::read_to_string(Self::path(name)).unwrap_or_default();
        // A campaign that was killed may have left half a line.
        let steps = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        Self { name, steps }
    }

    fn path(name: &str) -> PathBuf {
        root().join("target/campaign").join(format!("{name}.jsonl"))
    }

    /// How much of a row is done.
    pub fn done(&self, row: &str) -> u64 {
        self.steps.iter().filter(|step| step.row == row).map(|step| step.count).sum()
    }

    /// How often a row was stepped.
    pub fn rounds(&self, row: &str) -> usize {
        self.steps.iter().filter(|step| step.row == row).count()
    }

    pub fn findings(&self) -> usize {
        self.steps.iter().filter(|step| step.found.is_some()).count()
    }

    /// Keeps a step, and says what it found.
    pub fn step(&mut self, row: &str, count: u64, peak: Option<u64>, found: Option<String>) {
        if let Some(found) = &found {
            eprintln!("campaign: {}: {row}: {found}", self.name);
        }
        let step = Step { row: row.into(), count, peak, found };
        let path = Self::path(self.name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut file = fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
        writeln!(file, "{}", serde_json::to_string(&step).unwrap()).unwrap();
        self.steps.push(step);
    }

    /// Runs a step that may panic; a panic is what it found.
    pub fn attempt(&mut self, row: &str, count: u64, step: impl FnOnce() -> Option<u64>) {
        match std::panic::catch_unwind(std::panic::AssertUnwindSafe(step)) {
            Ok(peak) => self.step(row, count, peak, None),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().cloned();
                let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).into()));
                self.step(row, count, None, Some(text.unwrap_or_else(|| "a panic".into())));
            }
        }
    }

    fn rows(&self) -> BTreeMap<&str, Row> {
        let mut rows = BTreeMap::<&str, Row>::new();
        for step in &self.steps {
            let row = rows.entry(&step.row).or_default();
            row.count += step.count;
            row.peak = row.peak.max(step.peak);
            row.found.extend(step.found.iter().cloned());
        }
        rows
    }
}

/// The table of all parts, for people.
pub fn write_table(parts: &[&'static str]) {
    let mut text = String::from(
        "# Campaign\n\nWhat `make campaign` did so far on the machine that wrote this page, and what it found.\n\n\
         | part | what | count | peak | found |\n|---|---|---|---|---|\n",
    );
    for name in parts {
        for (what, row) in Part::open(name).rows() {
            let peak = row.peak.map_or_else(|| "-".into(), |peak| peak.to_string());
            let found = match row.found.as_slice() {
                [] => "nothing".into(),
                some => format!("{}: {}", some.len(), some[0].lines().next().unwrap_or_default()),
            };
            text.push_str(&format!("| {name} | {what} | {} | {peak} | {found} |\n", row.count));
        }
    }
    let path = root().join("docs/results/campaign.md");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    println!("{}", path.canonicalize().unwrap().display());
}
