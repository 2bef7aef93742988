//! A cause and the answer to it. Pure.

use serde::{Deserialize, Serialize};

use super::grade::{Grade, of_windows};

/// One window of `rxpath diagnose`.
#[derive(Clone, Serialize, Deserialize)]
pub struct Window {
    pub bpf: bool,
    pub grade: Grade,
    pub stage: String,
    pub confidence: String,
    pub sentence: String,
    /// CPUs that programs had which are no part of the suite.
    #[serde(default)]
    pub others_cpus: f64,
}

/// From so many CPUs on, others' programs are a cause as well.
const DISTURBED_CPUS: f64 = 0.3;

impl Window {
    pub fn is_disturbed(&self) -> bool {
        self.others_cpus >= DISTURBED_CPUS
    }
}

/// A cause and what was said of it.
#[derive(Clone, Serialize, Deserialize)]
pub struct Row {
    pub name: String,
    #[serde(default)]
    pub truth: String,
    pub windows: Vec<Window>,
    pub remedy: String,
    /// Why it could not be made here.
    pub missing: Option<String>,
}

impl Row {
    pub fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            truth: String::new(),
            windows: Vec::new(),
            remedy: String::new(),
            missing: None,
        }
    }

    /// The windows that count: those that others left alone, where there are some.
    pub fn counted(&self, bpf: bool) -> Vec<&Window> {
        let all: Vec<&Window> = self.windows.iter().filter(|it| it.bpf == bpf).collect();
        let alone: Vec<&Window> = all.iter().copied().filter(|it| !it.is_disturbed()).collect();
        if alone.is_empty() { all } else { alone }
    }

    /// Whether others disturbed all of its windows.
    pub fn is_disturbed(&self) -> bool {
        let counted = self.counted(true);
        !counted.is_empty() && counted.iter().all(|window| window.is_disturbed())
    }

    fn of(&self, bpf: bool) -> Option<Grade> {
        let grades: Vec<Grade> = self.counted(bpf).iter().map(|it| it.grade).collect();
        of_windows(&grades)
    }

    /// With BPF.
    pub fn grade(&self) -> Option<Grade> {
        self.of(true)
    }

    /// By counters alone.
    pub fn without_bpf(&self) -> Option<Grade> {
        self.of(false)
    }
}
