//! `rxpath list`: the bundled experiments, each with its question.

use rxpath_lab::scenario::{self, ScenarioFile};

use crate::cmd::prelude::*;
use crate::output::color::{Paint, Stream, paint};
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
pub enum Answer {
    /// The bundled experiments.
    Scenarios(Vec<Listed>),
    /// The keys of scenario files; with `--keys`.
    Keys(Vec<Key>),
}

impl ListCommand {
    /// Runs it.
    pub fn run(self) -> Outcome {
        let answer =
            if self.keys { Answer::Keys(keys()) } else { Answer::Scenarios(self.scenarios()?) };
        let settings = json!({ "all": self.all, "keys": self.keys });
        let answer = Envelope::new("list", settings, answer, Vec::new());
        output::answer(self.format.is_json(), &answer, Answer::to_text)?;
        Ok(Exit::Done)
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

impl Answer {
    fn to_text(&self) -> String {
        let bold = |text: &str| paint(Paint::Bold, Stream::Out, text);
        let mut lines = Vec::new();
        match self {
            Self::Scenarios(all) => {
                let width = all.iter().map(|one| one.name.len()).max().unwrap_or(0);
                for one in all {
                    // Wrapped without colours, which have no width.
                    let text = hanging("", width + 2, &one.question, output::width());
                    let name = bold(&format!("{:width$}", one.name));
                    lines.push(format!("{name}  {}", text.trim()));
                }
                lines.push(String::new());
                lines
                    .push("Run one: rxpath run NAME (--dry-run shows the whole plan first)".into());
            }
            Self::Keys(all) => {
                for one in all {
                    lines.push(bold(&one.key));
                    lines.push(format!("    {}; {}", one.meaning, one.takes));
                }
            }
        }
        lines.join("\n") + "\n"
    }
}
