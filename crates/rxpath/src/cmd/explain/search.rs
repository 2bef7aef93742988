//! Finds topics by name, other name or words; ignores case and `_`, `-`, `.` and `/`.

use rxpath_core::SortFew;

use crate::output::explain::topic::Topic;

/// How well a topic fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fit {
    /// Its text contains all the words.
    Mentions,
    /// Its summary contains all the words, or it belongs to a topic that does.
    About,
    /// One of its names contains all the words.
    Named,
    /// One of its other names is exactly this.
    Alias,
    /// Its name is this.
    Exact,
    /// Its name is this, character for character.
    Literal,
}

/// The matching topics, best first. A device name or host-specific path at the start is ignored: `eth0/rings/rx`,
/// `net.ipv4.conf.all.rp_filter`.
pub fn find<'a>(topics: &'a [Topic], query: &str) -> Vec<(Fit, &'a Topic)> {
    let found = search(topics, query);
    match query.split_once(['.', '/']) {
        Some((_, rest)) if found.is_empty() => find(topics, rest),
        _ => found,
    }
}

/// The topics that match the whole query.
fn search<'a>(topics: &'a [Topic], query: &str) -> Vec<(Fit, &'a Topic)> {
    let query = query.trim();
    let wanted = Wanted::new(query);
    if wanted.words.is_empty() {
        return Vec::new();
    }
    let mut found: Vec<(Fit, &Topic)> =
        topics.iter().filter_map(|topic| Some((wanted.fit(topic)?, topic))).collect();
    // Stable sort: equal matches keep the order of the list, which puts terms first.
    found.sort_few_by_key(|(fit, _)| std::cmp::Reverse(*fit));
    found
}

/// Similar names.
pub fn near(topics: &[Topic], query: &str) -> Vec<String> {
    const CLOSE: f64 = 0.82;
    let wanted = words(query).join("-");
    let mut close: Vec<(f64, &str)> = topics
        .iter()
        .flat_map(|topic| std::iter::once(&topic.name).chain(&topic.also))
        .map(|name| (strsim::jaro_winkler(&words(name).join("-"), &wanted), name.as_str()))
        .filter(|(likeness, _)| *likeness > CLOSE)
        .collect();
    close.sort_few_by(|a, b| b.0.total_cmp(&a.0));
    let mut names: Vec<String> = Vec::new();
    for (_, name) in close {
        if names.len() < 3 && !names.iter().any(|known| words(known) == words(name)) {
            names.push(name.to_owned());
        }
    }
    names
}

struct Wanted<'a> {
    literal: &'a str,
    words: Vec<String>,
}

impl<'a> Wanted<'a> {
    fn new(query: &'a str) -> Self {
        // A file of /proc/sys is the sysctl; any other file is found by its last part.
        let bare = match query.strip_prefix("/proc/sys/") {
            Some(sysctl) => sysctl,
            None if query.starts_with('/') => query.rsplit('/').next().unwrap_or(query),
            None => query,
        };
        Self { literal: query, words: words(bare) }
    }

    fn fit(&self, topic: &Topic) -> Option<Fit> {
        if topic.name == self.literal {
            return Some(Fit::Literal);
        }
        if words(&topic.name) == self.words {
            return Some(Fit::Exact);
        }
        if topic.also.iter().any(|name| words(name) == self.words) {
            return Some(Fit::Alias);
        }
        let names = std::iter::once(&topic.name).chain(&topic.also);
        if names.clone().any(|name| self.is_in(&words(name))) {
            return Some(Fit::Named);
        }
        let mut line = words(&topic.what);
        line.extend(names.flat_map(|name| words(name)));
        if let Some(rule) = topic.rule {
            line.extend(words(rule.set_now));
            line.extend(words(rule.verify));
        }
        if self.is_in(&line) {
            return Some(Fit::About);
        }
        let mut text = line;
        text.extend(topic.parts.iter().flat_map(|part| words(&part.text)));
        if let Some(rule) = topic.rule {
            text.extend(words(rule.why));
            text.extend(words(rule.mechanism));
            text.extend(words(rule.not_when));
        }
        self.is_in(&text).then_some(Fit::Mentions)
    }

    /// Whether each word occurs, or is the beginning of a word that occurs: `softirq` of `softirqs`.
    fn is_in(&self, text: &[String]) -> bool {
        let same = |wanted: &String| {
            let begins = |word: &String| wanted.len() > 3 && word.starts_with(wanted.as_str());
            text.iter().any(|word| word == wanted || begins(word))
        };
        self.words.iter().all(same)
    }
}

/// The words of a text, in lower case; a percent sign counts as one word.
fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric() && c != '%')
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}
