//! `rxpath model eval`: the queueing formulas, case by case.

use rxpath_model::{Evaluated, evaluate};
use serde_json::Value;

use crate::cmd::prelude::*;

/// `rxpath model eval`
#[derive(Debug, clap::Args)]
#[command(
    after_help = "FILE holds {\"cases\":[{\"id\":\"a\",\"kind\":\"M/M/1/K\",\"inputs\":{\"rho\":0.8,\"K\":16}}]}; \
                        other fields of a case are ignored. docs/reference/model.md lists the kinds.\n\
                        Exit: 0 all computed, 2 not a file of cases, 5 some cases have a problem."
)]
pub struct EvalCommand {
    /// The file of cases; `-` is standard input
    file: PathBuf,
    #[command(flatten)]
    format: FormatArgs,
}

impl EvalCommand {
    /// Runs it.
    pub fn run(self) -> Outcome {
        let text = read(&self.file).map_err(Failure::usage_of)?;
        let evaluated = evaluate(&text).or_usage(|| self.file.display().to_string())?;
        let told = |(id, problem): (&str, &rxpath_model::inputs::Problem)| {
            Warning::new("model-case", format!("case `{id}`: {}", problem.text))
        };
        let warnings: Vec<Warning> = evaluated.problems().map(told).collect();
        let exit = if warnings.is_empty() { Exit::Done } else { Exit::Partial };
        let settings = json!({ "file": self.file.display().to_string() });
        let answer = Envelope::new("model-eval", settings, evaluated, warnings);
        output::answer(self.format.is_json(), &answer, table)?;
        Ok(exit)
    }
}

fn read(path: &Path) -> anyhow::Result<String> {
    if path == Path::new("-") {
        return std::io::read_to_string(std::io::stdin()).context("standard input");
    }
    std::fs::read_to_string(path).with_context(|| path.display().to_string())
}

/// One block per case, one line per output.
fn table(evaluated: &Evaluated) -> String {
    let mut text = String::new();
    for case in &evaluated.cases {
        text += &format!("{}\n", case.id);
        for (name, value) in &case.outputs {
            text += &format!("  {name:<28} {}\n", shown(value));
        }
    }
    text
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "-".into(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
