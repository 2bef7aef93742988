//! Shell completion: the shell asks this program for the values of options and arguments at each completion.

#[cfg_attr(not(feature = "lab"), path = "complete/none.rs")]
mod lab;

use std::ffi::OsStr;

use anyhow::Context;
use clap::Command;
use clap_complete::engine::{
    ArgValueCandidates, ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use clap_complete::env::{CompleteEnv, Shells};
use rxpath_tune::rules;

use crate::cmd::{explain, tune};

/// The variable by which a completion script asks this program.
const VARIABLE: &str = "RXPATH_COMPLETE";

/// The tree with its values, for the shells.
fn tree() -> Command {
    with_values(super::bare_tree(), "")
}

/// Answers a shell that asks for completions. Returns whether a shell asked.
pub fn answered() -> bool {
    if std::env::var_os(VARIABLE).is_none() {
        return false;
    }
    let here = std::env::current_dir().ok();
    let asked = CompleteEnv::with_factory(tree).var(VARIABLE);
    asked.try_complete(std::env::args_os(), here.as_deref()).unwrap_or_else(|error| {
        crate::note!("rxpath: {error}");
        true
    })
}

/// The script of a shell: it asks this program at each completion.
pub fn script(shell: &str) -> anyhow::Result<Vec<u8>> {
    let mut script = Vec::new();
    let shells = Shells::builtins();
    let known = shells.completer(shell).with_context(|| format!("no completions for {shell}"))?;
    known.write_registration(VARIABLE, "rxpath", "rxpath", "rxpath", &mut script)?;
    Ok(script)
}

/// The source of an argument's values.
enum Values {
    Given(fn() -> Vec<CompletionCandidate>),
    OrFile(fn() -> Vec<CompletionCandidate>),
    KindThenDir,
}

/// The command (or any), the long name of the option or the argument, its values.
type Entry = (&'static str, &'static str, Values);

const VALUES: &[Entry] = &[
    ("explain", "words", Values::Given(topics)),
    ("man", "command", Values::Given(commands)),
    ("tune plan", "ids", Values::Given(rule_ids)),
    ("tune plan", "persist", Values::KindThenDir),
    ("", "dev", Values::Given(|| entries("/sys/class/net"))),
    ("", "netns", Values::OrFile(|| entries("/run/netns"))),
];

fn all_values() -> impl Iterator<Item = &'static Entry> {
    VALUES.iter().chain(lab::VALUES)
}

fn with_values(mut command: Command, path: &str) -> Command {
    let ids: Vec<(clap::Id, String)> =
        command.get_arguments().map(|arg| (arg.get_id().clone(), name_of(arg))).collect();
    for (id, called) in ids {
        let fits =
            |(under, name, _): &&Entry| (under.is_empty() || *under == path) && *name == called;
        if let Some((.., values)) = all_values().find(fits) {
            command = command.mut_arg(id, |arg| match values {
                Values::Given(give) => arg.add(ArgValueCandidates::new(*give)),
                Values::OrFile(give) => arg.add(ArgValueCompleter::new(OrFile(*give))),
                Values::KindThenDir => arg.add(ArgValueCompleter::new(KindThenDir)),
            });
        }
    }
    command.mut_subcommands(|sub| {
        let path = format!("{path} {}", sub.get_name());
        with_values(sub, path.trim_start())
    })
}

/// The long name of an option, the id of an argument.
fn name_of(arg: &clap::Arg) -> String {
    arg.get_long().unwrap_or_else(|| arg.get_id().as_str()).to_owned()
}

/// Names; files where no name begins so.
struct OrFile(fn() -> Vec<CompletionCandidate>);

impl ValueCompleter for OrFile {
    fn complete(&self, current: &OsStr) -> Vec<CompletionCandidate> {
        let begun = current.to_string_lossy();
        let mut names = (self.0)();
        names.retain(|name| name.get_value().to_string_lossy().starts_with(&*begun));
        names.extend(PathCompleter::any().complete(current));
        names
    }
}

/// `--persist KIND DIR`.
struct KindThenDir;

impl ValueCompleter for KindThenDir {
    fn complete(&self, current: &OsStr) -> Vec<CompletionCandidate> {
        self.complete_at(0, current)
    }

    fn complete_at(&self, arg_index: usize, current: &OsStr) -> Vec<CompletionCandidate> {
        if arg_index > 0 {
            return PathCompleter::dir().complete(current);
        }
        let begun = current.to_string_lossy();
        let kinds = tune::persist_kinds().into_iter().filter(|kind| kind.starts_with(&*begun));
        kinds.map(CompletionCandidate::new).collect()
    }
}

fn told(name: impl Into<std::ffi::OsString>, what: &str) -> CompletionCandidate {
    CompletionCandidate::new(name).help(Some(what.to_owned().into()))
}

fn topics() -> Vec<CompletionCandidate> {
    let topics = explain::topics().unwrap_or_default();
    let mut all = Vec::new();
    for topic in &topics {
        // One word for the shell; terms of several words are found by each of them.
        if !topic.name.contains(' ') {
            all.push(told(topic.name.as_str(), &topic.what));
        }
        let sysctls = topic.also.iter().filter(|name| name.contains('.') && topic.rule.is_some());
        all.extend(sysctls.map(|name| told(name.as_str(), &topic.what)));
    }
    all
}

fn rule_ids() -> Vec<CompletionCandidate> {
    rules::all().map(|rule| told(rule.id, rule.what)).collect()
}

fn commands() -> Vec<CompletionCandidate> {
    let tree = super::bare_tree();
    let visible = tree.get_subcommands().filter(|sub| !sub.is_hide_set());
    visible.map(|sub| CompletionCandidate::new(sub.get_name())).collect()
}

fn entries(directory: &str) -> Vec<CompletionCandidate> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
    names.sort();
    names.into_iter().map(CompletionCandidate::new).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_argument_with_values_is_there() {
        fn ids(command: &Command, path: &str, all: &mut Vec<(String, String)>) {
            all.extend(command.get_arguments().map(|arg| (path.to_owned(), name_of(arg))));
            for sub in command.get_subcommands() {
                ids(sub, format!("{path} {}", sub.get_name()).trim_start(), all);
            }
        }
        let mut all = Vec::new();
        ids(&tree(), "", &mut all);
        for (path, name, _) in all_values() {
            let there = all.iter().any(|(of, id)| (path.is_empty() || of == path) && id == name);
            assert!(there, "{path} {name}");
        }
    }
}
