//! `rxpath list`: the bundled experiments, each with its question.

use rxpath_lab::scenario::{self, ScenarioFile, Title};

use crate::cmd::prelude::*;
use crate::output::color::bold;
use crate::output::table::hanging;

/// `rxpath list`
#[derive(Debug, clap::Args)]
pub struct ListCommand {
    /// List the tutorial experiments too
    #[arg(long)]
    all: bool,
    /// List every key of a scenario file or of `run --set`, with its values
    #[arg(long, conflicts_with = "all")]
    keys: bool,
    #[command(flatten)]
    format: FormatArgs,
}

/// One bundled scenario.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Listed {
    name: String,
    question: String,
    /// The outcome that the author expects.
    expected: Option<String>,
    /// Their names, in their order.
    variants: Vec<String>,
}

/// One key of a scenario file.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Key {
    /// `load.rate`.
    key: String,
    /// Its allowed values, as text.
    takes: String,
    meaning: String,
}

/// The `result` object.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ListResult {
    /// The bundled experiments.
    Scenarios(Vec<Listed>),
    /// The keys of scenario files; with `--keys`.
    Keys(Vec<Key>),
}

impl ListCommand {
    /// Runs it.
    pub fn run(self) -> Outcome {
        if !self.format.is_json() {
            let text = if self.keys { keys_as_text() } else { self.titles_as_text()? };
            output::text(&text)?;
            return Ok(Exit::Done);
        }
        let answer = if self.keys {
            ListResult::Keys(keys())
        } else {
            ListResult::Scenarios(self.scenarios()?)
        };
        let settings = json!({ "all": self.all, "keys": self.keys });
        output::json(&Envelope::new("list", settings, answer, Vec::new()))?;
        Ok(Exit::Done)
    }

    /// Only what is printed is read: variants are in the JSON alone.
    fn titles_as_text(&self) -> anyhow::Result<String> {
        let shown = |title: &Title| self.all || !title.hidden;
        let all: Vec<Title> = scenario::titles()?.into_iter().filter(shown).collect();
        let width = all.iter().map(|one| one.name.len()).max().unwrap_or(0);
        let mut lines = Vec::new();
        for one in &all {
            // Wrapped without colours, which have no width.
            let text = hanging("", width + 2, &one.question, output::width());
            lines.push(format!("{}  {}", bold(&format!("{:width$}", one.name)), text.trim()));
        }
        lines.push(String::new());
        lines.push("Run one: rxpath run NAME (--dry-run shows the whole plan first)\n".into());
        Ok(lines.join("\n"))
    }

    fn scenarios(&self) -> anyhow::Result<Vec<Listed>> {
        let shown = |file: &ScenarioFile| self.all || !file.hidden;
        let listed = |file: ScenarioFile| Listed {
            variants: file.names(),
            name: file.name,
            question: file.question,
            expected: file.expected,
        };
        Ok(scenario::bundled()?.into_iter().filter(shown).map(listed).collect())
    }
}

fn keys() -> Vec<Key> {
    let key = |[key, takes, meaning]: [String; 3]| Key { key, takes, meaning };
    scenario::reference().into_iter().map(key).collect()
}

fn keys_as_text() -> String {
    let text = |key: Key| format!("{}\n    {}; {}\n", bold(&key.key), key.meaning, key.takes);
    keys().into_iter().map(text).collect()
}
