//! Commands of the full program that rxpath-agent does not have.

use clap::Command;

use super::layout::GROUPS;

/// Those below commands that both have.
const BELOW: [&str; 1] = ["tune auto"];

/// The refusal of a command line that begins with these words, if this build leaves out what they name.
pub fn refusal(tree: &Command, words: &str) -> Option<String> {
    let commands = GROUPS.iter().flat_map(|(_, names)| names.iter().copied());
    let begins = |name: &&str| words == *name || words.starts_with(&format!("{name} "));
    let name = commands.chain(BELOW).filter(|name| !is_there(tree, name)).find(begins)?;
    Some(format!("rxpath: `{name}` is not part of rxpath-agent: install the package rxpath\n"))
}

fn is_there(tree: &Command, name: &str) -> bool {
    name.split(' ').try_fold(tree, |at, word| at.find_subcommand(word)).is_some()
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
            let said = refusal(&agent, words).unwrap();
            assert!(said.starts_with(&format!("rxpath: `{name}` is not part of")), "{said}");
            assert_eq!(said.lines().count(), 1);
        }
        for words in ["", "check", "tune plan", "tune run", "runs", "nonsense"] {
            assert_eq!(refusal(&agent, words), None, "{words}");
        }
    }

    #[cfg(feature = "lab")]
    #[test]
    fn the_full_program_leaves_nothing_out() {
        let names = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).chain(BELOW);
        for name in names {
            assert_eq!(refusal(&crate::cli::bare_tree(), name), None);
        }
    }
}
