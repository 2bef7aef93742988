//! What the campaign did so far: the rows of `docs/results/campaign.md`, which is written after each step. A stopped
//! campaign goes on from the page, on another machine too.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

const HEAD: &str = "# Campaign\n\nWhat `make campaign` did so far, and what it found.\n\
    Each step writes this page again, so its name has no date: the rows have the day where it is known.\n\n\
    | part | what | count | peak | last day | found |\n|---|---|---|---|---|---|\n";

/// The word for a row that watches no peak, or has no day.
const NONE: &str = "-";

/// The word for a row that found nothing.
const NOTHING: &str = "nothing";

fn page() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/results/campaign.md")
}

/// What was done of one thing.
#[derive(Default)]
struct Row {
    count: u64,
    /// The largest value seen of what the row watches, with its unit in the row's name.
    peak: Option<u64>,
    /// The day of the last step; rows of older campaigns have none.
    day: Option<String>,
    /// The first that was found.
    found: Option<String>,
    /// Steps of this run of the campaign.
    rounds: usize,
}

/// All that was done, by part and what.
pub struct Campaign {
    rows: BTreeMap<(String, String), Row>,
}

impl Campaign {
    /// Reads the page.
    pub fn open() -> Self {
        let text = fs::read_to_string(page()).unwrap_or_default();
        let rows = text.lines().filter_map(|line| {
            let cells: Vec<&str> = line.strip_prefix("| ")?.split(" | ").collect();
            let [part, what, count, peak, day, found] = cells[..] else { return None };
            let found = found.trim_end_matches(" |");
            let row = Row {
                count: count.parse().ok()?,
                peak: peak.parse().ok(),
                day: (day != NONE).then(|| day.into()),
                found: (found != NOTHING).then(|| found.into()),
                rounds: 0,
            };
            Some(((part.into(), what.into()), row))
        });
        Self { rows: rows.collect() }
    }

    pub fn part(&mut self, name: &'static str) -> Part<'_> {
        Part { name, campaign: self }
    }

    pub fn findings(&self) -> usize {
        self.rows.values().filter(|row| row.found.is_some()).count()
    }

    /// Writes the page, whole or not at all.
    pub fn write(&self) {
        let mut text = String::from(HEAD);
        for ((part, what), row) in &self.rows {
            let peak = row.peak.map_or_else(|| NONE.into(), |peak| peak.to_string());
            let day = row.day.as_deref().unwrap_or(NONE);
            let found = row.found.as_deref().unwrap_or(NOTHING);
            let count = row.count;
            text.push_str(&format!("| {part} | {what} | {count} | {peak} | {day} | {found} |\n"));
        }
        let new = page().with_extension("new");
        fs::write(&new, text).unwrap();
        fs::rename(&new, page()).unwrap();
    }
}

/// A part of it.
pub struct Part<'a> {
    name: &'static str,
    campaign: &'a mut Campaign,
}

impl Part<'_> {
    fn row(&self, what: &str) -> Option<&Row> {
        self.campaign.rows.get(&(self.name.into(), what.into()))
    }

    /// How much of a row is done.
    pub fn done(&self, what: &str) -> u64 {
        self.row(what).map_or(0, |row| row.count)
    }

    /// Takes away the rows that no longer are part of it.
    pub fn keep(&mut self, is_part: impl Fn(&str) -> bool) {
        let name = self.name;
        self.campaign.rows.retain(|(part, what), _| part != name || is_part(what));
    }

    /// How often this run stepped a row.
    pub fn rounds(&self, what: &str) -> usize {
        self.row(what).map_or(0, |row| row.rounds)
    }

    /// Keeps a step, and says what it found.
    pub fn step(&mut self, what: &str, count: u64, peak: Option<u64>, found: Option<String>) {
        let row = self.campaign.rows.entry((self.name.into(), what.into())).or_default();
        row.count += count;
        row.peak = row.peak.max(peak);
        row.rounds += 1;
        row.day = Some(jiff::Timestamp::now().strftime("%F").to_string());
        if let Some(found) = found {
            eprintln!("campaign: {}: {what}: {found}", self.name);
            // One line of a table.
            let line = found.lines().next().unwrap_or_default().replace('|', "/");
            row.found.get_or_insert(line);
        }
        self.campaign.write();
    }

    /// Runs a step that may panic; a panic is what it found.
    pub fn attempt(&mut self, what: &str, count: u64, step: impl FnOnce() -> Option<u64>) {
        match std::panic::catch_unwind(std::panic::AssertUnwindSafe(step)) {
            Ok(peak) => self.step(what, count, peak, None),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().cloned();
                let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).into()));
                self.step(what, count, None, Some(text.unwrap_or_else(|| "a panic".into())));
            }
        }
    }
}
