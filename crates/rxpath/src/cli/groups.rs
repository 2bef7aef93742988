//! Tasks, and the commands of each: those of the full program, whatever this build has.

/// The commands, grouped by task.
pub const GROUPS: [(&str, &[&str]); 6] = [
    ("This host", &["check", "explain", "watch", "export", "diagnose", "trace", "steal", "doctor"]),
    ("Change it", &["tune"]),
    ("Traffic", &["serve", "load"]),
    (
        "Experiments",
        &["list", "run", "hosts", "reproduce", "capacity", "demo", "compare", "report", "cleanup"],
    ),
    ("Predict", &["model"]),
    ("Scripts", &["capture", "schema", "completions", "man"]),
];
