//! Examples of each command, for its help and its man page: `examples.txt`, by the words of the command.

use std::sync::LazyLock;

use clap::Command;

use super::left_out;

/// A command line and what it is for.
pub type Example = (&'static str, &'static str);

/// The words of a command without `rxpath` in brackets, then its examples: `LINE  # WHAT IT IS FOR`.
const EXAMPLES: &str = include_str!("examples.txt");

/// The examples of a command, by its words without `rxpath`; the empty text is the top page.
pub fn of(path: &str, command: &Command) -> Vec<Example> {
    let head = format!("[{path}]");
    let lines = EXAMPLES.lines().skip_while(|line| *line != head).skip(1);
    lines
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split_once("  # "))
        .filter(|(line, _)| is_known(line, path, command))
        .filter(|(line, _)| is_taken(line, &LEFT_OUT, cfg!(feature = "lab")))
        .collect()
}

/// Commands that this build leaves out.
static LEFT_OUT: LazyLock<Vec<&str>> = LazyLock::new(|| left_out::commands(&super::bare_tree()));

/// Whether a build without these commands takes an example, and without a screen.
fn is_taken(line: &str, left_out: &[&str], has_screen: bool) -> bool {
    let Some(words) = line.strip_prefix("rxpath ") else { return true };
    let is_view = words == "watch" || words.starts_with("watch --replay ");
    let named = words.strip_prefix("man ").unwrap_or(words);
    (has_screen || !is_view) && !left_out.iter().any(|name| left_out::begins(named, name))
}

/// Whether this build has the options of an example; one of another command is taken as it is.
fn is_known(line: &str, path: &str, command: &Command) -> bool {
    let Some(words) = line.strip_prefix(format!("rxpath {path}").trim_end()) else { return true };
    let mut at = command;
    words.split_whitespace().take_while(|word| *word != "--").all(|word| {
        if let Some(sub) = at.find_subcommand(word) {
            at = sub;
        }
        let Some(option) = word.strip_prefix("--") else { return true };
        let name = option.split('=').next();
        at.get_arguments().any(|arg| arg.get_long() == name)
    })
}

/// The examples as they stand under a page of help.
pub fn text(path: &str, command: &Command) -> String {
    let examples = of(path, command);
    let width = examples.iter().map(|(line, _)| line.len()).max().unwrap_or(0);
    // A long line stays on a line of its own, so that it can be copied unbroken.
    let line = |(line, what): &Example| {
        if width > 44 {
            format!("  {line}\n      {what}\n")
        } else {
            format!("  {line:width$}   {what}\n")
        }
    };
    examples.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_of_an_option_that_a_build_lacks_is_left_out() {
        let json = clap::Arg::new("json").long("json").action(clap::ArgAction::SetTrue);
        let check = Command::new("check").arg(json);
        let known = |line| is_known(line, "check", &check);
        assert!(known("rxpath check --json") && known("rxpath check -- --host"));
        assert!(!known("rxpath check --host web1") && !known("rxpath check --host=web1"));
        assert!(known("rxpath capture --host web1"), "of another command");
        let tree = Command::new("rxpath").subcommand(check.clone());
        assert!(is_known("rxpath check --json", "", &tree));
    }

    #[test]
    fn an_example_of_a_command_that_a_build_lacks_is_left_out() {
        let agent = |line| is_taken(line, &["load", "tune auto"], false);
        for line in ["rxpath load udp h:9", "rxpath man load udp", "rxpath tune auto --live e"] {
            assert!(!agent(line) && is_taken(line, &[], true), "{line}");
        }
        for view in ["rxpath watch", "rxpath watch --replay r.jsonl"] {
            assert!(!agent(view) && is_taken(view, &[], true), "{view}");
        }
        for line in ["rxpath", "rxpath watch --once", "rxpath tune plan", "rxpath man --out man1"] {
            assert!(agent(line), "{line}");
        }
    }

    #[test]
    fn each_line_is_an_example_with_its_purpose() {
        for line in EXAMPLES.lines().filter(|line| !line.is_empty() && !line.starts_with('[')) {
            assert!(line.contains("  # "), "{line}");
        }
    }
}
