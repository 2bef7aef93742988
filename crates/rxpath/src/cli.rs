//! The top level of the command line: options of every command, and how an invalid command line is rejected.

pub mod complete;
pub mod examples;
mod groups;
mod layout;
mod left_out;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser};
use rxpath_host::command_line::words;

use crate::build_id::{LONG_VERSION, VERSION};
use crate::cmd::Command;
use crate::exit::Exit;
use crate::output::color::When;

/// Measures, explains, predicts and tunes the Linux network receive path.
#[derive(Debug, Parser)]
#[command(name = "rxpath", version = VERSION, long_version = LONG_VERSION, about)]
pub struct Cli {
    /// When to colour what is printed; the variable `NO_COLOR` turns it off as well
    #[arg(long, global = true, value_enum, default_value_t = When::Auto, display_order = 1000)]
    pub color: When,
    /// What to do; without a command: `rxpath check`.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// The whole tree, with the layout of its help.
#[cfg(test)]
pub fn tree() -> clap::Command {
    layout::laid_out(Cli::command(), &|_| true)
}

/// The tree as the types declare it, without what the layout adds.
pub fn bare_tree() -> clap::Command {
    Cli::command()
}

/// Reads the command line; help and refusals are printed here. Only a page of help needs its layout.
pub fn parse() -> Result<Cli, Exit> {
    let read = |tree: clap::Command| {
        tree.try_get_matches().and_then(|found| Cli::from_arg_matches(&found))
    };
    read(bare_tree())
        .or_else(|error| match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
                // The layout of the top page and of the commands that the words name.
                let words = words();
                read(layout::laid_out(bare_tree(), &|name| words.iter().any(|word| word == name)))
            }
            _ => Err(error),
        })
        .map_err(|error| refuse(&error))
}

/// Prints clap's words in the form of all our errors: `rxpath: what`, then `hint: …`.
fn refuse(error: &clap::Error) -> Exit {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // A reader that closed the pipe wants no more output.
            let _ = error.print();
            return Exit::Done;
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            return Exit::Usage;
        }
        _ => {}
    }
    let words = words();
    let negative = (error.kind() == ErrorKind::UnknownArgument).then(|| negative_value(&words));
    let left_out = || left_out::refusal(&bare_tree(), &first_words(&words), &words);
    let own = || in_our_words(&error.render().to_string(), &page_of(&words));
    let text = negative.flatten().or_else(left_out).unwrap_or_else(own);
    eprint!("{text}");
    Exit::Usage
}

/// Clap takes a negative value for an option. This message says so where the value follows an option; the page says
/// what the option takes.
fn negative_value(words: &[String]) -> Option<String> {
    let negative = |word: &str| {
        let mut letters = word.chars();
        letters.next() == Some('-') && letters.next().is_some_and(|next| next.is_ascii_digit())
    };
    let pair = words.windows(2).find(|pair| pair[0].starts_with('-') && negative(&pair[1]))?;
    let [option, value] = pair else { return None };
    let page = page_of(words);
    Some(format!(
        "rxpath: `{option} {value}`: is negative\nhint: this option takes no value below 0; see `{page}`\n"
    ))
}

/// The words of a command line before the first option of a command, without the program: `load udp`.
fn first_words(words: &[String]) -> String {
    let mut first = Vec::new();
    let mut rest = words.iter().skip(1).map(String::as_str);
    while let Some(word) = rest.next() {
        if word == "--color" {
            rest.next();
        } else if !word.starts_with('-') {
            first.push(word);
        } else if !word.starts_with("--color=") {
            break;
        }
    }
    first.join(" ")
}

/// The page of help that belongs to these words: `rxpath load udp --help`.
fn page_of(words: &[String]) -> String {
    let tree = bare_tree();
    let (mut command, mut page) = (&tree, String::from("rxpath"));
    for word in words.iter().skip(1) {
        if let Some(sub) = command.find_subcommand(word) {
            page += &format!(" {}", sub.get_name());
            command = sub;
        } else if !word.starts_with('-') {
            // The first argument: what follows is no command any more.
            break;
        }
    }
    page + " --help"
}

/// Rewrites clap's `error: …` and `tip: …` in our form; joins the lines of a message.
fn in_our_words(text: &str, page: &str) -> String {
    let mut out = String::new();
    for paragraph in text.split("\n\n").filter(|p| !p.trim().is_empty()) {
        let line = paragraph.lines().map(str::trim).collect::<Vec<_>>().join(" ");
        if let Some(what) = line.strip_prefix("error: ") {
            out += &format!("rxpath: {what}\n");
        } else if let Some(tip) = line.strip_prefix("tip: ") {
            out += &format!("hint: {tip}\n");
        } else if line.starts_with("For more information, try ") {
            out += &format!("hint: see `{page}`\n");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_sound() {
        tree().debug_assert();
    }

    #[test]
    fn a_negative_value_is_named_with_its_option() {
        let said = |line: &str| {
            negative_value(&line.split(' ').map(str::to_owned).collect::<Vec<String>>())
        };
        let told = said("rxpath model bounds --stall -1s").unwrap();
        assert!(told.starts_with("rxpath: `--stall -1s`: is negative\nhint: "), "{told}");
        assert!(told.ends_with("see `rxpath model bounds --help`\n"), "{told}");
        assert!(!told.contains("smallest"), "0 may be refused too: {told}");
        assert_eq!(said("rxpath load udp --sise 3"), None);
        assert_eq!(said("rxpath load udp -x"), None);
    }

    #[test]
    fn the_page_of_help_is_that_of_the_command() {
        let page = |line: &str| page_of(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(page("rxpath load udp --sise 3"), "rxpath load udp --help");
        assert_eq!(page("rxpath --color never tune plan x"), "rxpath --help");
        assert_eq!(page("rxpath tune plan check"), "rxpath tune plan --help");
        assert_eq!(page("rxpath --bogus"), "rxpath --help");
    }

    #[test]
    fn the_first_words_are_those_before_an_option() {
        let first =
            |line: &str| first_words(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(first("rxpath tune auto --live eth0"), "tune auto");
        assert_eq!(first("rxpath --color never run"), "run");
        assert_eq!(first("rxpath --color=never load udp --rate 1"), "load udp");
        assert_eq!(first("rxpath --bogus run"), "");
    }

    #[test]
    fn refusals_have_our_form() {
        let error = tree().try_get_matches_from(["rxpath", "load", "udp", "--sise", "3"]);
        let text = in_our_words(&error.unwrap_err().render().to_string(), "rxpath load udp --help");
        assert!(text.starts_with("rxpath: unexpected argument '--sise' found\nhint: "), "{text}");
        assert!(text.ends_with("hint: see `rxpath load udp --help`\n"), "{text}");
    }
}
