//! The commands in a text for people: where one begins and where the prose goes on.

/// Programs that a text may name with their words.
const PROGRAMS: &[&str] = &[
    "auditctl",
    "augenrules",
    "bpftool",
    "cat",
    "cd",
    "chrt",
    "dmesg",
    "echo",
    "ethtool",
    "grep",
    "hwstamp_ctl",
    "ip",
    "iptables",
    "iptables-legacy-restore",
    "iptables-legacy-save",
    "iptables-save",
    "load",
    "ls",
    "lspci",
    "mpstat",
    "networkctl",
    "nft",
    "nice",
    "nstat",
    "numactl",
    "pgrep",
    "ping",
    "ps",
    "readlink",
    "renice",
    "rxpath",
    "serve",
    "ss",
    "strace",
    "sysctl",
    "systemctl",
    "taskset",
    "tc",
    "tuned-adm",
    "udevadm",
    "uname",
    "zgrep",
];

/// Words that no command here has: from there on it is prose.
const PROSE: &[&str] = &[
    "with", "names", "reads", "says", "shows", "in", "while", "of", "to", "for", "at", "inside",
    "reports", "is", "after", "before", "twice", "where", "rises", "on", "has", "both", "each",
    "itself", "and", "or", "drop", "goes",
];

/// What stands for a value in a command, and a value for it.
const VALUES: &[(&str, &str)] = &[
    ("DEV", "rxv0"),
    ("IF", "rxv0"),
    ("PORT", "5000"),
    ("CPUS", "0"),
    ("LIST", "0"),
    ("CPU", "0"),
    ("PID", "$$"),
    ("MASK", "1"),
    ("MAX", "512"),
    ("N", "1"),
    ("NAME", "x"),
    ("ID", "ring-rx"),
    ("FILE", "/dev/null"),
    ("COMMAND", "true"),
    ("FIELDS", "sdfn"),
    ("MODE", "rs"),
    ("KIND", "pfifo"),
    ("HOST", "-c 1 127.0.0.1"),
    ("SLOT", "00:00.0"),
    ("UNIT", "cron"),
    ("A", "no-run-a"),
    ("B", "no-run-b"),
    ("on|off", "on"),
    ("full|half", "full"),
    ("6d:5a:6d:5a:...", "6d:5a:6d:5a"),
];

/// The commands in a text, as they stand there.
pub fn commands(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut text = text.to_owned();
    while let (Some(begin), Some(end)) = (text.find("for pid in"), text.find("; done")) {
        found.push(text[begin..end + 6].to_owned());
        text.replace_range(begin..end + 6, "");
    }
    // The braces of nft hold semicolons.
    let mut text = text.replace("raw; }", "raw\u{1} }");
    for separator in ["; ", ", ", ": ", ". ", " or ", " and ", "`", " ("] {
        text = text.replace(separator, "\n");
    }
    found.extend(text.lines().filter_map(command));
    found
}

/// A piece of a text up to where its prose begins, if it is a command.
fn command(piece: &str) -> Option<String> {
    let piece = piece.trim().replace('\u{1}', ";");
    let piece = ["or ", "and ", "then ", "Else "]
        .iter()
        .fold(piece.as_str(), |rest, word| rest.strip_prefix(word).unwrap_or(rest));
    let program = piece.split(' ').next()?;
    // A name alone is a name in a sentence.
    if !PROGRAMS.contains(&program) || (piece == program && program != "iptables-legacy-save") {
        return None;
    }
    // What is written is a word of prose elsewhere.
    let takes_any = ["echo", "nft", "ethtool", "ip", "tc", "iptables"].contains(&program);
    let is_prose = |word: &str| {
        let here = takes_any && ["on", "in", "drop"].contains(&word);
        PROSE.contains(&word) && !here
    };
    let words: Vec<&str> = piece.split(' ').take_while(|word| !is_prose(word)).collect();
    let whole = words.join(" ");
    (words.len() > 1 || whole == "iptables-legacy-save")
        .then(|| whole.trim_end_matches(['.', ',']).to_owned())
}

/// The command with a value in the place of each name.
pub fn filled(command: &str) -> String {
    VALUES.iter().fold(command.to_owned(), |text, (name, value)| fill(&text, name, value))
}

/// Puts a value in the place of a name that stands alone: the `N` of `-N` and of `NAME` is none.
pub fn fill(text: &str, name: &str, value: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(name) {
        let (before, behind) = (&rest[..at], &rest[at + name.len()..]);
        out += before;
        let joins = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let alone = !out.ends_with(|c: char| joins(c) || c == '-') && !behind.starts_with(joins);
        out += if alone { value } else { name };
        rest = behind;
    }
    out + rest
}

#[test]
fn commands_are_found_between_the_words() {
    for (text, wanted) in [
        ("ethtool -g DEV shows the size; rx_missed_errors does not rise", vec!["ethtool -g DEV"]),
        (
            "ip -s link show DEV and ethtool -S DEV, twice",
            vec!["ip -s link show DEV", "ethtool -S DEV"],
        ),
        ("on: echo 0 > /a/b, or echo 1 > /c", vec!["echo 0 > /a/b", "echo 1 > /c"]),
        ("pause the sender (`tc -s qdisc show dev IF`: backlog)", vec!["tc -s qdisc show dev IF"]),
        (
            "nft add chain x in '{ hook prerouting priority raw; }'",
            vec!["nft add chain x in '{ hook prerouting priority raw; }'"],
        ),
        (
            "for pid in $(pgrep x); do taskset -pc CPUS $pid; done; and more",
            vec!["for pid in $(pgrep x); do taskset -pc CPUS $pid; done"],
        ),
        ("a word of ethtool", vec![]),
    ] {
        assert_eq!(commands(text), wanted, "{text}");
    }
    assert_eq!(filled("ethtool -N DEV delete N"), "ethtool -N rxv0 delete 1");
}
