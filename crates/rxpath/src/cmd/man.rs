//! `rxpath man`: the man pages, one for each command.

use clap::Command;
use clap_mangen::Man;

use crate::cli::{self, examples};
use crate::cmd::prelude::*;

/// Date of the last change to the pages.
const DATE: &str = "2026-11-23";

/// Environment variables, listed on every page.
const ENVIRONMENT: [(&str, &str); 3] = [
    ("NO_COLOR", "when set and not empty, nothing is coloured unless --color always"),
    ("TERM", "dumb: nothing is coloured unless --color always, and watch shows no full screen"),
    ("COLUMNS", "width of tables and text, instead of the terminal's"),
];

/// Files, by the first words of the command that uses them.
const FILES: [(&str, &str, &str); 6] = [
    ("check", "/etc/rxpath/check.toml", "findings to suppress, each with its reason"),
    ("tune", "/var/lib/rxpath/tune", "journals of changes, for undo"),
    ("run", "/run/rxpath.lock", "lock: only one lab can run at a time"),
    ("run", "/run/rxpath", "list of what a run created, for cleanup"),
    ("cleanup", "/run/rxpath", "list of what a run created; cleanup removes it"),
    ("model", "rxpath-runs/calibration.json", "costs of this host, written by model calibrate"),
];

/// Related pages, by the first words of the command.
const SEE_ALSO: [(&str, &[&str]); 9] = [
    ("check", &["explain", "tune"]),
    ("explain", &["check"]),
    ("diagnose", &["watch", "trace"]),
    ("watch", &["diagnose", "explain"]),
    ("trace", &["steal", "doctor"]),
    ("steal", &["trace", "doctor"]),
    ("serve", &["load"]),
    ("load", &["serve"]),
    ("run", &["list", "report", "compare", "cleanup"]),
];

/// Options of `rxpath man`.
#[derive(Debug, Args)]
pub struct ManCommand {
    /// The command whose page is printed, for example `load udp`; without it, the main page
    #[arg(value_name = "COMMAND", conflicts_with = "out")]
    command: Vec<String>,
    /// Write the page of every command into this directory; it is created if missing
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl ManCommand {
    /// Prints or writes the pages.
    pub fn run(self) -> Outcome {
        let mut tree = cli::bare_tree();
        tree.build();
        if let Some(directory) = self.out {
            let cannot = || format!("cannot write man pages into {}", directory.display());
            std::fs::create_dir_all(&directory).or_usage(cannot)?;
            for (path, command) in visible(&tree) {
                let file = directory.join(format!("{}.1", title(&path)));
                let text = page(&path, command)?;
                std::fs::write(&file, text).or_usage(cannot)?;
            }
            return Ok(Exit::Done);
        }
        // `rxpath man load-udp` works too: it is the name of the page.
        let path = self.command.join(" ").replace('-', " ");
        let path = path.strip_prefix("rxpath").map_or(path.as_str(), str::trim_start);
        let pages = visible(&tree);
        let Some((path, command)) = pages.iter().find(|(known, _)| known == path) else {
            let names: Vec<&str> = pages.iter().skip(1).map(|(known, _)| known.as_str()).collect();
            return Err(Failure::usage(format!("man {path}: no such command"))
                .hint(format!("one of {}", names.join(", "))));
        };
        output::text(&page(path, command)?)?;
        Ok(Exit::Done)
    }
}

/// Every visible command with its words; the main page first.
fn visible(tree: &Command) -> Vec<(String, &Command)> {
    fn walk<'a>(command: &'a Command, path: &str, all: &mut Vec<(String, &'a Command)>) {
        all.push((path.to_owned(), command));
        let shown = |sub: &&Command| !sub.is_hide_set() && sub.get_name() != "help";
        for sub in command.get_subcommands().filter(shown) {
            walk(sub, format!("{path} {}", sub.get_name()).trim_start(), all);
        }
    }
    let mut all = Vec::new();
    walk(tree, "", &mut all);
    all
}

/// `rxpath-load-udp`.
fn title(path: &str) -> String {
    format!("rxpath {path}").trim_end().replace(' ', "-")
}

fn page(path: &str, command: &Command) -> std::io::Result<String> {
    let name = title(path);
    // Clap names a page by its command; users type `rxpath load udp`.
    let command = command.clone().display_name(name.as_str()).disable_help_subcommand(true);
    let man = Man::new(command.clone())
        .title(name.to_uppercase())
        .date(DATE)
        .source(format!("rxpath {}", env!("CARGO_PKG_VERSION")))
        .manual("rxpath manual");
    let mut roff = Vec::new();
    man.render_title(&mut roff)?;
    man.render_name_section(&mut roff)?;
    man.render_synopsis_section(&mut roff)?;
    man.render_description_section(&mut roff)?;
    man.render_options_section(&mut roff)?;
    if command.get_subcommands().next().is_some() {
        man.render_subcommands_section(&mut roff)?;
    }
    let mut text = clean(&String::from_utf8_lossy(&roff));
    if let Some(notes) = command.get_after_help() {
        text += &section("NOTES", &format!("{}\n", escaped(&notes.to_string())));
    }
    text += &tail(path, &command);
    Ok(bold_code(&text))
}

/// The sections after the options.
fn tail(path: &str, command: &Command) -> String {
    let begins = |start: &str| path == start || path.starts_with(&format!("{start} "));
    let status = Exit::STATUSES.iter().map(|(code, what)| item(&code.to_string(), what));
    let mut out = section("EXIT STATUS", &status.collect::<String>());
    let variables = ENVIRONMENT.iter().map(|(name, what)| item(name, what));
    out += &section("ENVIRONMENT", &variables.collect::<String>());
    let files: String = FILES
        .iter()
        .filter(|(start, ..)| path.is_empty() || begins(start))
        .map(|(_, file, what)| item(file, what))
        .collect();
    if !files.is_empty() {
        out += &section("FILES", &files);
    }
    let lines = examples::of(path, command).into_iter().map(|(line, what)| item(line, what));
    out += &section("EXAMPLES", &lines.collect::<String>());
    out + &section("SEE ALSO", &see_also(path, command))
}

fn see_also(path: &str, command: &Command) -> String {
    let mut pages = Vec::new();
    if let Some((parent, _)) = path.rsplit_once(' ') {
        pages.push(title(parent));
    }
    if !path.is_empty() {
        pages.push("rxpath".into());
    }
    let subs = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    pages.extend(subs.map(|sub| title(format!("{path} {}", sub.get_name()).trim_start())));
    let first = path.split(' ').next().unwrap_or_default();
    if let Some((_, others)) = SEE_ALSO.iter().find(|(start, _)| *start == first) {
        pages.extend(others.iter().map(|other| title(other)));
    }
    let named: Vec<String> =
        pages.iter().map(|page| format!("\\fB{}\\fR(1)", escaped(page))).collect();
    named.join(",\n") + "\n"
}

fn section(name: &str, body: &str) -> String {
    format!(".SH \"{name}\"\n{body}")
}

fn item(name: &str, what: &str) -> String {
    format!(".TP\n\\fB{}\\fR\n{}\n", escaped(name), escaped(what))
}

/// Escapes text for roff: no line begins with a control character; backslashes and hyphens are literal.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        if line.starts_with(['.', '\'']) {
            out += "\\&";
        }
        for letter in line.chars() {
            match letter {
                '\\' => out += "\\e",
                '-' => out += "\\-",
                '…' => out += "...",
                other => out.push(other),
            }
        }
        out.push('\n');
    }
    out.trim_end().to_owned()
}

/// Removes what groff and mandoc complain about: blank lines with breaks around them become one space.
fn clean(roff: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in roff.lines().map(str::trim_end) {
        let last = lines.last().map_or("", String::as_str);
        let begins_part = last.starts_with(".SH") || last.starts_with(".TP") || last == ".sp";
        match line {
            "" if begins_part => {}
            "" if last == ".br" => {
                lines.pop();
                lines.push(".sp".into());
            }
            "" => lines.push(".sp".into()),
            ".br" if begins_part => {}
            _ => {
                if line.starts_with(".SH") && matches!(last, ".br" | ".sp") {
                    lines.pop();
                }
                // Three dots at the beginning would be a request.
                let line = line.replace('…', "...");
                let dots = line.starts_with("...");
                lines.push(if dots { format!("\\&{line}") } else { line });
            }
        }
    }
    lines.iter().fold(String::new(), |text, line| text + line + "\n")
}

/// Text in backticks becomes bold, as is usual in man pages.
fn bold_code(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let mut is_bold = false;
        for letter in line.chars() {
            if letter == '`' {
                is_bold = !is_bold;
                out += if is_bold { "\\fB" } else { "\\fR" };
            } else {
                out.push(letter);
            }
        }
        if is_bold {
            out += "\\fR";
        }
        out.push('\n');
    }
    out
}
