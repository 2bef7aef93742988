//! Reading a case's inputs by name and range, and collecting its outputs so that none is infinite or NaN.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// Why outputs of a case are missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Problem {
    /// Which sort of problem.
    pub code: Code,
    /// One line: what is wrong, where, what would be right.
    pub text: String,
}

/// The sorts of problems.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// No formula for this kind.
    UnknownKind,
    /// An input is missing, of the wrong type or out of its range.
    BadInput,
    /// The quantity does not exist for these inputs: an overloaded infinite queue has no mean.
    NoValue,
    /// The exact computation would take too long.
    TooLarge,
}

impl Problem {
    /// A problem of `code`.
    pub fn new(code: Code, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }

    /// Input `name` is wrong.
    pub fn bad(name: &str, why: &str) -> Self {
        Self::new(Code::BadInput, format!("`{name}`: {why}"))
    }

    /// A load at or above 1 on a queue without limit.
    pub fn unstable(what: &str, load: f64) -> Self {
        Self::new(
            Code::NoValue,
            format!(
                "{what}: the load is {load:.6}; an unlimited queue has no steady state at a load of 1 or more"
            ),
        )
    }
}

/// The largest number taken: products of a few stay finite.
const LARGEST: f64 = 1e18;

/// The inputs of one case.
#[derive(Debug)]
pub struct Inputs<'a> {
    map: &'a Map<String, Value>,
}

impl<'a> Inputs<'a> {
    /// Reads from this object.
    pub fn new(map: &'a Map<String, Value>) -> Self {
        Self { map }
    }

    /// The value `name`, which must be there.
    pub fn value(&self, name: &str) -> Result<&'a Value, Problem> {
        self.map.get(name).ok_or_else(|| Problem::bad(name, "it is missing"))
    }

    /// Whether the case has `name`.
    pub fn has(&self, name: &str) -> bool {
        self.map.contains_key(name)
    }

    /// A number above 0, at most 1e18.
    pub fn positive(&self, name: &str) -> Result<f64, Problem> {
        number(name, self.value(name)?, |n| n > 0.0, "more than 0")
    }

    /// A number of 0 or more, at most 1e18.
    pub fn not_negative(&self, name: &str) -> Result<f64, Problem> {
        number(name, self.value(name)?, |n| n >= 0.0, "0 or more")
    }

    /// A number of 0 or more, or `default` when the case has none.
    pub fn or(&self, name: &str, default: f64) -> Result<f64, Problem> {
        if self.has(name) { self.not_negative(name) } else { Ok(default) }
    }

    /// A whole number within the range; `64.0` is one too.
    pub fn whole(&self, name: &str, range: std::ops::RangeInclusive<u64>) -> Result<u64, Problem> {
        whole(name, self.value(name)?, range)
    }

    /// A list, by item.
    pub fn list(&self, name: &str) -> Result<&'a [Value], Problem> {
        let list = self.value(name)?.as_array();
        list.map(Vec::as_slice).ok_or_else(|| Problem::bad(name, "it is not a list"))
    }

    /// A list of numbers of 0 or more.
    pub fn numbers(&self, name: &str) -> Result<Vec<f64>, Problem> {
        let each = |item: &Value| number(name, item, |n| n >= 0.0, "0 or more");
        self.list(name)?.iter().map(each).collect()
    }

    /// A list of objects.
    pub fn objects(&self, name: &str) -> Result<Vec<Inputs<'a>>, Problem> {
        let each = |item: &'a Value| {
            item.as_object()
                .map(Inputs::new)
                .ok_or_else(|| Problem::bad(name, "an item is not an object"))
        };
        self.list(name)?.iter().map(each).collect()
    }

    /// A text.
    pub fn text(&self, name: &str) -> Result<&'a str, Problem> {
        self.value(name)?.as_str().ok_or_else(|| Problem::bad(name, "it is not a text"))
    }
}

/// A number that fits, and what that is in words.
fn number(name: &str, value: &Value, fits: fn(f64) -> bool, wanted: &str) -> Result<f64, Problem> {
    let number = value.as_f64().ok_or_else(|| Problem::bad(name, "it is not a number"))?;
    if fits(number) && number <= LARGEST {
        Ok(number)
    } else {
        Err(Problem::bad(name, &format!("{number} must be {wanted}, and at most {LARGEST:e}")))
    }
}

/// A whole number in range.
pub fn whole(
    name: &str,
    value: &Value,
    range: std::ops::RangeInclusive<u64>,
) -> Result<u64, Problem> {
    let number = value.as_u64().or_else(|| {
        value.as_f64().filter(|n| n.fract() == 0.0 && (0.0..1e15).contains(n)).map(|n| n as u64)
    });
    number.filter(|number| range.contains(number)).ok_or_else(|| {
        let wanted = format!("must be a whole number from {} to {}", range.start(), range.end());
        Problem::bad(name, &format!("{value:.40} {wanted}"))
    })
}

/// The outputs of one case.
#[derive(Clone, Debug, Default)]
pub struct Outputs {
    pub(crate) map: Map<String, Value>,
    /// What is missing.
    pub(crate) problem: Option<Problem>,
}

impl Outputs {
    /// Adds a number; one that is not finite becomes the case's problem instead.
    #[must_use]
    pub fn with(mut self, name: &str, value: f64) -> Self {
        if let Some(number) = serde_json::Number::from_f64(value) {
            self.map.insert(name.into(), number.into());
        } else {
            let text = format!("`{name}` has no finite value for these inputs");
            self.problem.get_or_insert(Problem::new(Code::NoValue, text));
        }
        self
    }

    /// Adds a count or any JSON.
    #[must_use]
    pub fn value(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.map.insert(name.into(), value.into());
        self
    }

    /// Says why some outputs are missing.
    #[must_use]
    pub fn but(mut self, problem: Problem) -> Self {
        self.problem.get_or_insert(problem);
        self
    }
}
