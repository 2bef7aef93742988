//! Topics whose texts are written for `explain` alone: terms, counters and drop reasons, in files next to this one.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use anyhow::Context;
use rxpath_texts::PackedTexts;
use serde::Deserialize;

use crate::output::explain::topic::{Topic, TopicKind};

static TEXTS: LazyLock<PackedTexts> = rxpath_texts::texts_of_build!();

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// Texts that several topics share.
    #[serde(default)]
    short: BTreeMap<String, String>,
    topic: Vec<Written>,
}

#[derive(Deserialize)]
struct Written {
    name: String,
    #[serde(default)]
    also: Vec<String>,
    what: String,
    #[serde(default)]
    see: Vec<String>,
    #[serde(flatten)]
    parts: BTreeMap<String, String>,
}

pub(super) fn terms() -> anyhow::Result<Vec<Topic>> {
    let parts = [("place", "Place on the path"), ("so", "What follows")];
    read(TopicKind::Term, "terms", "What it is", &parts)
}

pub(super) fn counters() -> anyhow::Result<Vec<Topic>> {
    let parts = [("read", "Read at"), ("function", "Counted by")];
    read(TopicKind::Counter, "counters", "What it counts", &parts)
}

pub(super) fn reasons() -> anyhow::Result<Vec<Topic>> {
    let parts = [("function", "Given by")];
    let mut all = read(TopicKind::DropReason, "reasons", "What it means", &parts)?;
    for topic in &mut all {
        topic.also.push(format!("SKB_DROP_REASON_{}", topic.name));
    }
    Ok(all)
}

/// Reads a file: `what` under its heading, then each part under its own.
fn read(
    kind: TopicKind,
    file: &str,
    what: &'static str,
    parts: &[(&str, &'static str)],
) -> anyhow::Result<Vec<Topic>> {
    let File { short, topic } = toml::from_str(TEXTS.text(&format!("cmd/explain/{file}")))?;
    let one = |of: Written| {
        let mut page = Topic::new(kind, of.name, of.what.as_str()).part(what, of.what);
        for (key, heading) in parts {
            let text = of.parts.get(*key).with_context(|| format!("{}: no {key}", page.name))?;
            page = page.part(heading, short.get(text).unwrap_or(text).as_str());
        }
        Ok(Topic { also: of.also, see: of.see, ..page })
    };
    topic.into_iter().map(one).collect()
}
