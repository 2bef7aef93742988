//! One thing that can be explained, with its page.

use rxpath_tune::Rule;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

rxpath_core::named! {
    /// The kind of a topic.
    #[derive(
        Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
    )]
    #[serde(rename_all = "kebab-case")]
    pub enum TopicKind {
        /// A term of the receive path.
        Term => "term",
        /// A rule of `check`, with its setting.
        Rule => "rule",
        /// A counter of the kernel.
        Counter => "counter",
        /// A reason for which the kernel drops packets.
        DropReason => "drop reason",
        /// A stage that `diagnose` names as the limit.
        Stage => "stage of diagnose",
        /// A place of the ledger.
        LossPlace => "place of loss",
        /// A metric of experiments.
        Metric => "metric",
        /// A bundled experiment.
        Experiment => "experiment",
        /// An exit status.
        ExitStatus => "exit status",
    }
    /// The word for people.
    pub fn word(self) -> &'static str
}

/// One thing that can be explained, as JSON too. A rule's JSON has its own form.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(
    rename = "ExplainedTopic",
    description = "A counter, metric, drop reason, stage, place, term, experiment or exit status as JSON."
)]
pub struct Topic {
    #[serde(rename = "topic")]
    pub kind: TopicKind,
    pub name: String,
    /// Other names of it.
    pub also: Vec<String>,
    pub what: String,
    // Empty for rules, whose pages have their own form.
    pub parts: Vec<TopicSection>,
    /// Related topics.
    pub see: Vec<String>,
    #[serde(skip)]
    pub rule: Option<&'static Rule>,
}

/// A part of a page.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TopicSection {
    pub heading: &'static str,
    pub text: String,
}

impl Topic {
    pub fn new(kind: TopicKind, name: impl Into<String>, what: impl Into<String>) -> Self {
        Self {
            kind,
            name: name.into(),
            also: Vec::new(),
            what: what.into(),
            parts: Vec::new(),
            see: Vec::new(),
            rule: None,
        }
    }

    pub fn also(mut self, names: &[&str]) -> Self {
        self.also.extend(names.iter().map(|name| (*name).to_owned()));
        self
    }

    pub fn see(mut self, names: &[&str]) -> Self {
        self.see.extend(names.iter().map(|name| (*name).to_owned()));
        self
    }

    pub fn part(mut self, heading: &'static str, text: impl Into<String>) -> Self {
        self.parts.push(TopicSection { heading, text: text.into() });
        self
    }
}
