//! Commands and options of the full program that rxpath-agent does not have.

use clap::Command;

use super::groups::GROUPS;

/// Commands below those that both have.
const BELOW: [&str; 1] = ["tune auto"];

/// Options of commands that both have: the command's words and the long name.
const OPTIONS: [(&str, &str); 8] = [
    ("check", "host"),
    ("diagnose", "host"),
    ("doctor", "host"),
    ("steal", "host"),
    ("trace", "host"),
    ("watch", "host"),
    ("diagnose", "selftest"),
    ("tune plan", "predict"),
];

/// The refusal of a command line, if this build leaves out the command or the option that it names. `first` are its words
/// before the first option.
pub fn refusal(tree: &Command, first: &str, words: &[String]) -> Option<String> {
    let command = commands(tree).into_iter().find(|name| begins(first, name)).map(str::to_owned);
    let name = command.or_else(|| option(tree, first, words))?;
    Some(format!("rxpath: `{name}` is not part of rxpath-agent: install the package rxpath\n"))
}

/// The commands that this build leaves out.
pub fn commands(tree: &Command) -> Vec<&'static str> {
    let all = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).chain(BELOW);
    all.filter(|name| find(tree, name).is_none()).collect()
}

/// Whether these words are that command's.
pub fn begins(words: &str, name: &str) -> bool {
    words.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

fn option(tree: &Command, first: &str, words: &[String]) -> Option<String> {
    let is_given = |long: &str| {
        let before = words.iter().take_while(|word| *word != "--");
        let longs = before.filter_map(|word| word.strip_prefix("--"));
        longs.filter_map(|word| word.split('=').next()).any(|word| word == long)
    };
    let missing = OPTIONS.iter().filter(|(name, long)| lacks(tree, name, long));
    let (name, long) =
        missing.filter(|(name, _)| begins(first, name)).find(|(_, long)| is_given(long))?;
    Some(format!("{name} --{long}"))
}

fn lacks(tree: &Command, name: &str, long: &str) -> bool {
    let command = find(tree, name);
    command.is_some_and(|it| it.get_arguments().all(|arg| arg.get_long() != Some(long)))
}

fn find<'a>(tree: &'a Command, name: &str) -> Option<&'a Command> {
    name.split(' ').try_fold(tree, |at, word| at.find_subcommand(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_agent_leaves_out_is_said_in_one_line() {
        let tune = Command::new("tune").subcommand(Command::new("plan"));
        let agent = Command::new("rxpath").subcommand(Command::new("check")).subcommand(tune);
        for (words, name) in
            [("run", "run"), ("load udp 192.0.2.1:4321", "load"), ("tune auto", "tune auto")]
        {
            let said = refusal(&agent, words, &[]).unwrap();
            assert!(said.starts_with(&format!("rxpath: `{name}` is not part of")), "{said}");
            assert_eq!(said.lines().count(), 1);
        }
        for words in ["", "check", "tune plan", "tune run", "runs", "nonsense"] {
            assert_eq!(refusal(&agent, words, &[]), None, "{words}");
        }
    }

    #[test]
    fn an_option_that_the_agent_lacks_is_said_in_one_line() {
        let json = clap::Arg::new("json").long("json").action(clap::ArgAction::SetTrue);
        let agent = Command::new("rxpath").subcommand(Command::new("check").arg(json));
        let said = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            refusal(&agent, "check", &words)
        };
        for line in ["rxpath check --host web1", "rxpath check --json --host=web1"] {
            let text = said(line).unwrap();
            assert!(text.starts_with("rxpath: `check --host` is not part of"), "{text}");
            assert_eq!(text.lines().count(), 1);
        }
        for line in ["rxpath check --json", "rxpath check --hosts", "rxpath check -- --host"] {
            assert_eq!(said(line), None, "{line}");
        }
    }

    #[cfg(feature = "lab")]
    #[test]
    fn the_full_program_leaves_nothing_out() {
        let tree = crate::cli::bare_tree();
        assert_eq!(commands(&tree), Vec::<&str>::new());
        for (name, long) in OPTIONS {
            assert!(find(&tree, name).is_some() && !lacks(&tree, name, long), "{name} --{long}");
        }
    }
}
