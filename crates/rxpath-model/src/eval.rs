//! Reads a file of cases (`kind`, `inputs`) and computes the outputs that each kind defines.
//!
//! All other members of a case, such as `expected`, are ignored.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use thiserror::Error;

use crate::inputs::{Code, Inputs, Outputs, Problem};
use crate::kinds;

/// A text that is no file of cases at all: what is wrong, where, and what would be right.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct FileError(String);

/// What is wrong with JSON of another shape.
const NO_CASES: &str =
    r#"no list `cases`; a cases file is {"cases":[{"id":..., "kind":..., "inputs":{...}}]}"#;

/// One case with what came out of it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct EvaluatedCase {
    /// The case's own name; `#N` (its place in the list, from 0) when it has none.
    pub id: String,
    /// The outputs by name; empty when nothing can be computed.
    pub outputs: Map<String, Value>,
    /// Why outputs are missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
}

/// All cases of a file, in its order.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Evaluated {
    /// The cases.
    pub cases: Vec<EvaluatedCase>,
}

impl Evaluated {
    /// The cases with a problem.
    pub fn problems(&self) -> impl Iterator<Item = (&str, &Problem)> {
        self.cases.iter().filter_map(|case| Some((case.id.as_str(), case.problem.as_ref()?)))
    }
}

/// Evaluates every case of the text of a file.
pub fn evaluate(text: &str) -> Result<Evaluated, FileError> {
    let file: Value = serde_json::from_str(text).map_err(|error| {
        let (line, column, why) = (error.line(), error.column(), reason(&error));
        FileError(format!("line {line}, column {column}: not JSON: {why}"))
    })?;
    let cases = file.get("cases").and_then(Value::as_array);
    let cases = cases.ok_or_else(|| FileError(NO_CASES.into()))?;
    if cases.is_empty() {
        // A file that was cut or made by mistake.
        return Err(FileError("the list `cases` is empty".into()));
    }
    let mut evaluated: Vec<EvaluatedCase> = Vec::with_capacity(cases.len());
    let mut places = HashMap::new();
    for (at, case) in cases.iter().enumerate() {
        let mut case = one(at, case);
        if let Some(first) = places.insert(case.id.clone(), at) {
            // Both are computed: a reader who looks one up by its name must know that there are two.
            let why = format!("the case at index {first} (from 0) has the same");
            case.problem = case.problem.or(Some(Problem::bad("id", &why)));
        }
        evaluated.push(case);
    }
    Ok(Evaluated { cases: evaluated })
}

/// The parser's message without the position, which is reported separately.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or(&text).to_owned()
}

fn one(at: usize, case: &Value) -> EvaluatedCase {
    let id = case.get("id").and_then(Value::as_str).map_or_else(|| format!("#{at}"), str::to_owned);
    let text = |key: &str| case.get(key).and_then(Value::as_str);
    let refused =
        |problem| EvaluatedCase { id: id.clone(), outputs: Map::new(), problem: Some(problem) };
    let Some(kind) = text("kind") else {
        return refused(Problem::bad("kind", "it is missing or not a string"));
    };
    let Some(inputs) = case.get("inputs").and_then(Value::as_object) else {
        return refused(Problem::bad("inputs", "`inputs` is missing or not an object"));
    };
    let Some((_, compute)) = kinds::ALL.iter().find(|(name, _)| *name == kind) else {
        let shown: String = kind.chars().take(80).collect();
        return refused(Problem::new(Code::UnknownKind, format!("no formula for kind `{shown}`")));
    };
    match compute(&Inputs::new(inputs)) {
        Ok(Outputs { map, problem }) => EvaluatedCase { id, outputs: map, problem },
        Err(problem) => refused(problem),
    }
}

#[cfg(test)]
mod tests;
