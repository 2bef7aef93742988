//! How help is laid out: groups of commands on the top page, headings over options, examples at the end.

use clap::Command;

use super::examples;
use super::groups::GROUPS;
use crate::exit::Exit;
use crate::output::table::hanging;
use crate::output::width;

/// Headings over options, for commands that begin with the words in brackets: `HEADING: OPTION...`, by the long names of
/// the options. The first match applies.
const HEADINGS: &str = include_str!("headings.txt");

/// The tree with headings, groups and examples, for the top page and those of commands that are `shown` by their name.
pub fn laid_out(tree: Command, shown: &dyn Fn(&str) -> bool) -> Command {
    let groups = groups(&tree);
    let end = format!("\nWithout a command: rxpath check.\n\n{}", exits());
    with_examples(tree, ("", end.as_str()), shown).help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{groups}\nOptions:\n{{options}}{{after-help}}"
    ))
}

fn groups(tree: &Command) -> String {
    let about = |name: &str| {
        tree.find_subcommand(name).and_then(Command::get_about).map(ToString::to_string)
    };
    // As wide as clap makes the rest of the page.
    let width = width().unwrap_or(100).min(100);
    let mut out = String::new();
    for (title, names) in GROUPS {
        // rxpath-agent does not have all of them.
        let mut here = names.iter().filter_map(|name| Some((name, about(name)?))).peekable();
        if here.peek().is_some() {
            out += &format!("\n{title}:\n");
        }
        out.extend(here.map(|(name, text)| hanging(&format!("  {name}"), 15, &text, Some(width))));
    }
    out
}

fn exits() -> String {
    let all = Exit::STATUSES.iter().map(|(code, meaning)| format!("  {code:<4} {meaning}\n"));
    format!("Exit status:\n{}", all.collect::<String>())
}

/// The command at `path` with the `end` of its page, and those below it that are shown.
fn with_examples(
    mut command: Command,
    (path, end): (&str, &str),
    shown: &dyn Fn(&str) -> bool,
) -> Command {
    let found: Vec<(clap::Id, &'static str)> = command
        .get_arguments()
        .filter(|arg| {
            arg.get_help_heading().is_none() || matches!(arg.get_long(), Some("json" | "format"))
        })
        .filter_map(|arg| Some((arg.get_id().clone(), heading(path, arg.get_long()?)?)))
        .collect();
    for (id, heading) in found {
        command = command.mut_arg(id, |arg| arg.help_heading(heading));
    }
    if path.starts_with("serve ") || path.starts_with("load ") {
        command = command.mut_args(|arg| match arg.get_help().map(ToString::to_string) {
            Some(text) => arg.help(of_protocol(path, &text)),
            None => arg,
        });
    }
    let own = command.get_after_help().map(|text| format!("\n{text}\n")).unwrap_or_default();
    let examples = examples::text(path, &command);
    if !examples.is_empty() {
        command = command.after_help(format!("Examples:\n{examples}{own}{end}"));
    }
    command.mut_subcommands(|sub| {
        if !shown(sub.get_name()) {
            return sub;
        }
        let path = format!("{path} {}", sub.get_name());
        with_examples(sub, (path.trim_start(), ""), shown)
    })
}

/// The workload commands share options, and their texts speak of datagrams and the receiver.
fn of_protocol(path: &str, text: &str) -> String {
    let first = match path.split(' ').nth(1) {
        Some("tcp") => "first byte",
        Some("http") => "first request",
        _ => "first datagram",
    };
    if path.starts_with("load ") {
        let receiver = "; a receiver counts from the first datagram, and ends after this long without one, too";
        return text.replace(receiver, "");
    }
    text.replace("a receiver counts from the first datagram", &format!("counted from the {first}"))
}

fn heading(path: &str, long: &str) -> Option<&'static str> {
    let mut fits = false;
    HEADINGS.lines().find_map(|line| {
        if let Some(under) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            let rest = path.strip_prefix(under);
            fits = rest
                .is_some_and(|rest| under.is_empty() || rest.is_empty() || rest.starts_with(' '));
            return None;
        }
        let (heading, longs) = line.split_once(": ")?;
        (fits && longs.split(' ').any(|known| known == long)).then_some(heading)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::cli;

    /// Every visible command with its words.
    fn walk<'a>(command: &'a Command, path: &str, all: &mut Vec<(String, &'a Command)>) {
        all.push((path.to_owned(), command));
        for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
            if sub.get_name() != "help" {
                walk(sub, format!("{path} {}", sub.get_name()).trim_start(), all);
            }
        }
    }

    #[test]
    fn every_command_has_examples_and_each_is_one_that_is_taken() {
        let tree = cli::tree();
        let mut all = Vec::new();
        walk(&tree, "", &mut all);
        assert!(all.len() > 35, "{}", all.len());
        for (path, command) in all {
            let examples = examples::of(&path, command);
            assert!(!examples.is_empty(), "`{path}` has no example");
            let help = command.get_after_help().unwrap().to_string();
            assert_eq!(help.matches("Examples:").count(), 1, "{path}: {help}");
            for (line, what) in examples {
                assert!(help.contains(line) && help.contains(what), "{path}: {help}");
                let line = line.replace('\'', "");
                let words = line.split(' ');
                let taken = cli::tree().try_get_matches_from(words);
                assert!(taken.is_ok(), "{line}: {}", taken.unwrap_err());
                let first = path.split(' ').next().unwrap();
                assert!(
                    path.is_empty() || line.contains(first) || path == "capture",
                    "{path}: {line}"
                );
            }
        }
    }

    #[test]
    fn every_command_is_in_one_group_and_the_top_page_has_them_all() {
        let tree = cli::tree();
        let grouped: Vec<&str> =
            GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let there: BTreeSet<&str> = tree
            .get_subcommands()
            .filter(|sub| !sub.is_hide_set() && sub.get_name() != "help")
            .map(Command::get_name)
            .collect();
        assert_eq!(grouped.iter().copied().collect::<BTreeSet<_>>(), there);
        assert_eq!(grouped.len(), there.len());
        let page = cli::tree().render_help().to_string();
        for word in
            ["This host:", "Change it:", "Scripts:", "rxpath diagnose -d 10s --port 53", "143"]
        {
            assert!(page.contains(word), "{word}: {page}");
        }
    }

    #[test]
    fn a_page_is_the_same_if_only_its_own_command_is_laid_out() {
        for path in ["", "list", "load udp", "tune auto", "model bounds"] {
            let own = |name: &str| path.split(' ').any(|word| word == name);
            let page = |mut tree: Command| {
                tree.build();
                let mut at = &mut tree;
                for word in path.split_whitespace() {
                    at = at.find_subcommand_mut(word).unwrap();
                }
                at.render_help().to_string()
            };
            assert_eq!(page(laid_out(cli::bare_tree(), &own)), page(cli::tree()), "{path}");
            let end = |tree: &Command| {
                let doctor = tree.find_subcommand("doctor").unwrap();
                doctor.get_after_help().map(ToString::to_string)
            };
            assert_eq!(end(&laid_out(cli::bare_tree(), &own)), end(&cli::bare_tree()), "{path}");
            assert_ne!(end(&cli::tree()), end(&cli::bare_tree()));
        }
    }

    #[test]
    fn workloads_speak_of_their_own_protocol() {
        let tree = cli::tree();
        let mut all = Vec::new();
        walk(&tree, "", &mut all);
        for (path, command) in all {
            if path.contains("tcp") || path.contains("http") {
                let page = command.clone().render_long_help().to_string();
                assert!(!page.contains("datagram"), "{path}: {page}");
            }
        }
    }

    fn has(command: &Command, long: &str) -> bool {
        command.get_arguments().any(|arg| arg.get_long() == Some(long))
            || command.get_subcommands().any(|sub| has(sub, long))
    }

    #[test]
    fn every_heading_is_over_options_of_its_command() {
        let tree = cli::tree();
        let mut under = &tree;
        for line in HEADINGS.lines().filter(|line| !line.is_empty()) {
            if let Some(path) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                let mut words = path.split_whitespace();
                under = words.try_fold(&tree, |at, word| at.find_subcommand(word)).expect(line);
            } else {
                let (_, longs) = line.split_once(": ").expect(line);
                assert_eq!(longs.split(' ').find(|long| !has(under, long)), None, "{line}");
            }
        }
    }

    #[test]
    fn options_stand_under_headings_with_colour_at_the_end() {
        let mut tree = cli::tree();
        tree.build();
        let serve = tree.find_subcommand_mut("serve").unwrap().find_subcommand_mut("udp").unwrap();
        let page = serve.render_help().to_string();
        let at = |word: &str| page.find(word).unwrap_or_else(|| panic!("{word}: {page}"));
        assert!(at("Threads:") < at("--cpu") && at("Simulated work:") < at("--sleep"), "{page}");
        assert!(at("Output:") < at("--json"), "{page}");
        assert!(at("--format") < at("--color") && at("--color") < at("Examples:"), "{page}");
        let bounds =
            tree.find_subcommand_mut("model").unwrap().find_subcommand_mut("bounds").unwrap();
        let page = bounds.render_help().to_string();
        assert!(page.find("Output:").unwrap() < page.find("--json").unwrap(), "{page}");
    }
}
