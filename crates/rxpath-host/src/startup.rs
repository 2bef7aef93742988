//! What start-up files set beside sysctl.d: udev rules and rc.local, line by line.
//!
//! The question it answers: *which line of a udev rule or of rc.local writes a setting of this host, and what does it
//! write?* Understood are what such files usually hold: `ATTR{…}=`, `SYSCTL{…}=` and `RUN` of udev, `echo VALUE > FILE`,
//! `sysctl -w`, `ethtool` and `ip link set` of scripts. A line that runs only under a condition is told without its value.
//! Scripts that these files call, and units of systemd, are not looked into. Nothing here runs or changes anything.
//!
//! **Source** udev(7), systemd-rc-local-generator(8): rc.local runs, as the last of them, when it may be executed.

mod shell;
mod udev;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::Root;

/// Directories of udev rules, the one that hides the others first.
pub const UDEV: [&str; 4] = [
    "/etc/udev/rules.d",
    "/run/udev/rules.d",
    "/usr/local/lib/udev/rules.d",
    "/usr/lib/udev/rules.d",
];

/// Where distributions look for rc.local.
pub const SCRIPTS: [&str; 2] = ["/etc/rc.local", "/etc/rc.d/rc.local"];

/// How a file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// udev rules.
    Udev,
    /// A shell script.
    Script,
}

/// What a line sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sets {
    /// A file below `/proc` or `/sys` is written.
    File {
        /// The file; with `*` where a name is not known, such as that of a udev rule's device.
        path: String,
        /// What is written; `None` when that is not to be told, or only happens under a condition.
        value: Option<String>,
    },
    /// A tool changes a device.
    Device {
        /// The device; with `*` where its name is not known.
        device: String,
        /// The command: `ethtool -K eth0 gro off`.
        command: String,
    },
}

/// A line of a file that sets something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The file and the line, from 1: `/etc/rc.local:7`.
    pub place: String,
    /// What it sets.
    pub sets: Sets,
}

/// What the lines of a text set, with their numbers.
pub fn parse_startup(form: Form, text: &str) -> Vec<(usize, Sets)> {
    match form {
        Form::Udev => udev::parse(text),
        Form::Script => shell::script(text),
    }
}

/// The lines of all files in the order in which they act; a file that cannot be read has none.
pub fn read(root: &Root) -> Vec<Step> {
    let mut rules: BTreeMap<String, String> = BTreeMap::new();
    for dir in UDEV {
        for name in root.list(dir).unwrap_or_default() {
            if is_rules(&name) {
                let path = format!("{dir}/{name}");
                rules.entry(name).or_insert(path);
            }
        }
    }
    let scripts = SCRIPTS.iter().filter(|path| is_run(root, path));
    let files = rules.into_values().map(|path| (Form::Udev, path));
    let files = files.chain(scripts.map(|path| (Form::Script, (*path).to_owned())));
    let mut all: Vec<Step> = Vec::new();
    for (form, path) in files {
        let text = root.text(&path).unwrap_or_default();
        let steps = parse_startup(form, &text).into_iter();
        all.extend(steps.map(|(line, sets)| Step { place: format!("{path}:{line}"), sets }));
    }
    all
}

/// Whether a file of a directory of udev rules is read.
pub fn is_rules(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "rules")
}

/// Whether a script is run at boot: only one that may be executed is. A captured tree holds no other.
pub fn is_run(root: &Root, path: &str) -> bool {
    let may_run = |real: &Path| {
        fs::metadata(real).is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0)
    };
    if root.is_live() { may_run(&root.path(path)) } else { root.exists(path) }
}

/// The text with nothing in it but what its lines set, each on its line, in a form that reads the same: who wrote the
/// rest may have named people, disks and passwords in it. `None` when nothing is left.
pub fn bare(form: Form, text: &str) -> Option<String> {
    let mut lines: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for (line, sets) in parse_startup(form, text) {
        lines.entry(line).or_default().push(sets.command());
    }
    let last = *lines.keys().next_back()?;
    let shown = |line| {
        let commands = lines.get(&line).map(|commands| commands.join("; "));
        match (commands, form) {
            (None, _) => String::new(),
            (Some(commands), Form::Script) => commands,
            // Whatever else the rule asked for is in the values: where it asked, they are not told.
            (Some(commands), Form::Udev) => {
                format!("SUBSYSTEM==\"net\", RUN+=\"/bin/sh -c '{commands}'\"")
            }
        }
    };
    Some((1..=last).map(|line| shown(line) + "\n").collect())
}

impl Sets {
    /// As a command of a shell. What is not known is a variable that nothing sets.
    fn command(&self) -> String {
        match self {
            Self::File { path, value: Some(value) } if is_plain(value) => {
                format!("echo {value} > {path}")
            }
            Self::File { path, .. } => format!("echo $unknown > {path}"),
            Self::Device { command, .. } => command.clone(),
        }
    }
}

/// Whether a text stands for itself in a shell's line within a udev rule.
fn is_plain(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || " ._:+,/=-*?[]@".contains(c);
    let is_option = text.starts_with("-n") || text.starts_with("-e");
    text.chars().all(fits) && !is_option && !text.contains("  ") && text.trim() == text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn file(path: &str, value: Option<&str>) -> Sets {
        Sets::File { path: path.into(), value: value.map(str::to_owned) }
    }

    #[test]
    fn files_act_in_their_order_and_hide_each_other() {
        let dir = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("proc/x", "");
        put("usr/lib/udev/rules.d/60-net.rules", "SYSCTL{net/core/a}=\"1\"\n");
        put("etc/udev/rules.d/60-net.rules", "#\nSUBSYSTEM==\"net\", SYSCTL{net/core/a}=\"2\"\n");
        put("run/udev/rules.d/50-x.rules", "SUBSYSTEM==\"net\", ATTR{mtu}=\"9000\"\n");
        put("etc/udev/rules.d/notes.txt", "ATTR{mtu}=\"1\"\n");
        put("etc/rc.local", "#!/bin/sh\nsysctl -w net.core.a=3\n");
        let steps = read(&Root::tree(dir.path()).unwrap());
        let shown: Vec<(&str, &Sets)> =
            steps.iter().map(|step| (step.place.as_str(), &step.sets)).collect();
        assert_eq!(
            shown,
            [
                ("/run/udev/rules.d/50-x.rules:1", &file("/sys/class/net/*/mtu", Some("9000"))),
                ("/etc/udev/rules.d/60-net.rules:2", &file("/proc/sys/net/core/a", Some("2"))),
                ("/etc/rc.local:2", &file("/proc/sys/net/core/a", Some("3"))),
            ]
        );
    }

    #[test]
    fn what_is_bare_names_nobody_and_reads_the_same() {
        let script = "#!/bin/sh\n# by Ann\nmount -o password=x //nas/a /b; echo 1 > /proc/sys/net/core/a\n\
                      [ -e /x ] && echo 2 > /proc/sys/net/core/b\nethtool -K eth0 gro off\n";
        let left = bare(Form::Script, script).unwrap();
        assert_eq!(
            left,
            "\n\necho 1 > /proc/sys/net/core/a\necho $unknown > /proc/sys/net/core/b\nethtool -K eth0 gro off\n"
        );
        assert_eq!(parse_startup(Form::Script, &left), parse_startup(Form::Script, script));
        let rule = "SUBSYSTEM==\"net\", ATTRS{serial}==\"S123\", ATTR{mtu}=\"9000\"\n";
        let left = bare(Form::Udev, rule).unwrap();
        assert_eq!(
            left,
            "SUBSYSTEM==\"net\", RUN+=\"/bin/sh -c 'echo $unknown > /sys/class/net/*/mtu'\"\n"
        );
        assert_eq!(bare(Form::Script, "exit 0\n"), None);
    }

    proptest! {
        #[test]
        fn garbage_never_panics(text in "\\PC{0,120}") {
            drop(parse_startup(Form::Udev, &text));
            drop(parse_startup(Form::Script, &text));
        }

        #[test]
        fn what_is_bare_reads_the_same(
            value in "[a-z0-9 ]{1,6}",
            name in "[a-z*]{1,5}",
            before in prop_oneof![Just(""), Just("if true; then "), Just("true && "), Just("cd /; ")],
        ) {
            let text = format!("\n{before}echo {value} > /sys/class/net/{name}/mtu\nsysctl -w net.a.b={name}\n");
            let left = bare(Form::Script, &text).unwrap();
            prop_assert_eq!(parse_startup(Form::Script, &left), parse_startup(Form::Script, &text));
            let rule = format!("SUBSYSTEM==\"net\", KERNEL==\"{name}\", ATTR{{mtu}}=\"{}\"\n", value.trim());
            let left = bare(Form::Udev, &rule);
            let of = |text: &str| parse_startup(Form::Udev, text);
            prop_assert_eq!(left.as_deref().map(of), Some(of(&rule)).filter(|all| !all.is_empty()));
        }
    }
}
