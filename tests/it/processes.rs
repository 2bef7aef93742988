//! Scripts look for processes and end them only where these are their own.

use std::path::{Path, PathBuf};

/// Programs that take a name for all processes of a machine.
const BY_NAME: [&str; 3] = ["pgrep", "pkill", "killall"];

/// Lines that take a name and neither one network namespace nor one parent, as `line: text`.
fn machine_wide(script: &str) -> Vec<String> {
    let is_one_of = |line: &str| {
        let mut words = line.split(|c: char| !c.is_ascii_alphanumeric());
        !line.trim_start().starts_with('#') && words.any(|it| BY_NAME.contains(&it))
    };
    let is_limited = |line: &str| {
        line.contains("--ns ") && line.contains("--nslist ") || line.contains("--parent ")
    };
    let found = (1..).zip(script.lines());
    let found = found.filter(|(_, line)| is_one_of(line) && !is_limited(line));
    found.map(|(number, line)| format!("{number}: {}", line.trim())).collect()
}

/// The scripts below a directory.
pub fn scripts(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            scripts(&path, found);
        } else if path.extension().is_some_and(|it| it == "sh") {
            found.push(path);
        }
    }
}

#[test]
fn no_script_looks_at_the_processes_of_all_the_machine() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut all = Vec::new();
    for dir in ["tests", "tools"] {
        scripts(&root.join(dir), &mut all);
    }
    assert!(all.iter().any(|path| path.ends_with("guest_hosts.sh")), "{all:?}");
    let wide = |path: &PathBuf| {
        let lines = machine_wide(&std::fs::read_to_string(path).unwrap());
        lines.into_iter().map(|line| format!("{}:{line}", path.display())).collect::<Vec<_>>()
    };
    let wide: Vec<String> = all.iter().flat_map(wide).collect();
    assert_eq!(wide, Vec::<String>::new());
}

#[test]
fn a_name_alone_is_all_of_the_machine() {
    let script = "# pgrep -x x\nuntil pgrep -x rxpath; do\npgrep --ns $$ --nslist net -x rxpath\n\tkillall x\npkill --parent $$\n";
    assert_eq!(machine_wide(script), ["2: until pgrep -x rxpath; do", "4: killall x"]);
}
