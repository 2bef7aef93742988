//! What the documents name between backticks is there: files, options, targets of make, modules.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use regex_lite::Regex;

use super::{outside_blocks, pages};
use crate::commands::root;

/// Folders of the repository that documents name. Others, as `target` and `rxpath-runs`, are made by programs.
const FOLDERS: [&str; 15] = [
    ".ci",
    ".github",
    "ansible",
    "bench",
    "crates",
    "deploy",
    "docs",
    "fleet",
    "fuzz",
    "monitoring",
    "packaging",
    "schemas",
    "testdata",
    "tests",
    "tools",
];

/// What ARCHITECTURE.md names by the end of its path alone, as `endpoint/wire.rs`: files with these endings, and folders.
const ENDS: [&str; 6] = [".rs", ".toml", ".txt", ".c", ".h", "/"];

/// Options of other programs, and one that no help lists because rxpath gives it to itself.
const OTHER_OPTIONS: [&str; 5] =
    ["--call-graph", "--enable-feature", "--outside", "--sender-clock", "--set-string"];

/// Whether a page says what is so now. The results of a day and the list of changes keep the names that they had.
fn is_current(page: &Path) -> bool {
    let name = page.file_name().unwrap_or_default().to_string_lossy();
    name != "CHANGELOG.md" && !name.starts_with(|c: char| c.is_ascii_digit())
}

/// What stands between backticks outside code blocks. It may go on in the next line.
fn quoted(text: &str) -> Vec<String> {
    let outside = outside_blocks(text).collect::<Vec<_>>().join("\n");
    let spans = outside.split("\n\n").flat_map(|part| part.split('`').skip(1).step_by(2));
    spans.map(|span| span.replace('\n', " ")).collect()
}

/// `a/{b,c}` as `a/b` and `a/c`.
fn alternatives(word: &str) -> Vec<String> {
    let parts = word.split_once('{').and_then(|(head, rest)| Some((head, rest.split_once('}')?)));
    let Some((head, (all, tail))) = parts else { return vec![word.to_owned()] };
    all.split(',').map(|one| format!("{head}{one}{tail}")).collect()
}

/// Whether a part of a path stands for several names: `NAME.rs` and `hosts-*.sh` do, `README.md` is a name.
fn stands_for_others(part: &str) -> bool {
    let capitals = part.chars().filter(char::is_ascii_uppercase).count();
    part.contains('*') || (capitals > 2 && !part.contains(".md"))
}

fn is_of_path(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_./-*".contains(c)
}

/// The file or folder that a word names, where it names one of the repository.
fn place(word: &str) -> Option<PathBuf> {
    let (first, _) = word.split_once('/').filter(|_| word.chars().all(is_of_path))?;
    let fixed: Vec<&str> = word.split('/').take_while(|part| !stands_for_others(part)).collect();
    let crates = root().join("crates");
    if FOLDERS.contains(&first) {
        Some(root().join(fixed.join("/")))
    } else {
        (first.starts_with("rxpath-") && crates.join(first).is_dir())
            .then(|| crates.join(fixed.join("/")))
    }
}

/// The words of a span, without punctuation behind them.
fn words(span: &str) -> impl Iterator<Item = String> {
    let words = span.split_whitespace();
    words.map(|word| word.trim_end_matches([',', '.', ':', ';', '(', ')'])).flat_map(alternatives)
}

/// The paths that a span names and that are not there.
fn missing_paths(span: &str) -> Vec<String> {
    words(span).filter(|word| place(word).is_some_and(|path| !path.exists())).collect()
}

/// The files of the crates, and their folders with `/` behind them; those of tests are left out.
fn sources() -> Vec<String> {
    let mut all = Vec::new();
    let mut folders = vec![root().join("crates")];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if !path.is_dir() {
                all.push(path.display().to_string());
            } else if !path.ends_with("tests") {
                all.push(format!("{}/", path.display()));
                folders.push(path);
            }
        }
    }
    all
}

/// The shortened paths of a span that are not the end of one path alone.
fn unclear_ends(span: &str, sources: &[String]) -> Vec<String> {
    let is_end = |word: &String| {
        place(word).is_none()
            && word.chars().all(is_of_path)
            && !word.starts_with('/')
            && !word.split('/').any(stands_for_others)
            && ENDS.iter().any(|end| word.ends_with(end))
    };
    let fault = |word: String| {
        let end = format!("/{word}");
        let count = sources.iter().filter(|path| path.ends_with(&end)).count();
        (count != 1).then(|| format!("{word}: the end of {count} paths"))
    };
    words(span).filter(is_end).filter_map(fault).collect()
}

/// The names that may stand after `--` and after `make`.
struct Known {
    options: BTreeSet<String>,
    targets: BTreeSet<String>,
}

impl Known {
    fn read() -> Self {
        let help = fs::read_to_string(root().join("docs/reference/commands.md")).unwrap();
        let option = Regex::new("--[a-z0-9][a-z0-9-]*").unwrap();
        let mut options: BTreeSet<String> =
            option.find_iter(&help).map(|found| found.as_str().to_owned()).collect();
        options.extend(OTHER_OPTIONS.map(str::to_owned));
        let makefile = fs::read_to_string(root().join("Makefile")).unwrap();
        let named = makefile.lines().filter_map(|line| Some(line.split_once(':')?.0));
        Self { options, targets: named.map(str::to_owned).collect() }
    }

    /// The option or the target at the beginning of a span, where there is none of this name.
    fn missing(&self, span: &str) -> Option<String> {
        let name = Regex::new("^(--[a-z0-9][a-z0-9-]*|make [a-z][a-z-]*)").unwrap();
        let name = name.find(span)?.as_str();
        let is_known = match name.strip_prefix("make ") {
            Some(target) => self.targets.contains(target),
            None => self.options.contains(name),
        };
        (!is_known).then(|| name.to_owned())
    }
}

#[test]
fn every_name_of_the_documents_is_there() {
    let known = Known::read();
    assert!(known.options.len() > 150, "{} options", known.options.len());
    let mut wrong = Vec::new();
    for page in pages().into_iter().filter(|page| is_current(page)) {
        for span in quoted(&fs::read_to_string(&page).unwrap()) {
            let missing = missing_paths(&span).into_iter().chain(known.missing(&span));
            wrong.extend(missing.map(|name| format!("{}: {name}", page.display())));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_shortened_path_of_the_architecture_is_that_of_one_file() {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let (spans, sources) = (quoted(&page), sources());
    assert!(spans.iter().any(|span| span == "trial/several.rs"), "no path is shortened");
    let unclear: Vec<String> = spans.iter().flat_map(|span| unclear_ends(span, &sources)).collect();
    assert!(unclear.is_empty(), "say more of the path:\n{}", unclear.join("\n"));
}

/// `tools/miri.sh` takes a module that the page names as done, so a name of an earlier place has its tests run again.
#[test]
fn every_module_of_the_page_about_miri_is_there() {
    let page = fs::read_to_string(root().join("docs/results/miri.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let mut count = 0;
    for (module, _) in rows {
        count += 1;
        let (of, path) = module.split_once("::").unwrap();
        let file = format!("crates/rxpath-{of}/src/{}.rs", path.replace("::", "/"));
        assert!(root().join(&file).is_file(), "{module}: no {file}");
    }
    assert!(count > 20, "{count} modules");
}

#[test]
fn a_name_that_is_not_there_is_found() {
    let text = "Say `make\ntest`, `a`.\n\n```\n`fenced`\n```\n\n| `b` | c |\n";
    assert_eq!(quoted(text), ["make test", "a", "b"]);
    assert!(
        missing_paths("tools/miri.sh and rxpath-host/src/lib.rs, rxpath-runs/book.md").is_empty()
    );
    assert!(missing_paths("crates/rxpath/src/cmd/NAME.rs bench/hosts-*.sh").is_empty());
    assert_eq!(missing_paths("docs/SUMMARY.md, docs/NO-SUCH.md"), ["docs/NO-SUCH.md"]);
    assert_eq!(missing_paths("crates/rxpath-{host,no-such}/src"), ["crates/rxpath-no-such/src"]);
    let sources = ["/x/lab/", "/x/lab/rules.rs", "/x/rules.rs"].map(str::to_owned);
    assert_eq!(unclear_ends("lab/rules.rs, lab/, NAME.rs /x/y.rs", &sources), [""; 0]);
    let unclear = ["rules.rs: the end of 2 paths", "no-such.c: the end of 0 paths"];
    assert_eq!(unclear_ends("rules.rs no-such.c", &sources), unclear);
    let known = Known::read();
    assert_eq!(known.missing("--no-such-option=1").as_deref(), Some("--no-such-option"));
    assert_eq!(known.missing("make no-such").as_deref(), Some("make no-such"));
    assert_eq!(known.missing("make test"), None);
    assert_eq!(known.missing("--json"), None);
}
