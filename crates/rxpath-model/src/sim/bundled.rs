//! Parameter sets of the published experiments.

/// Names and texts.
pub const ALL: &[(&str, &str)] = &[
    ("livelock-200", include_str!("bundled/livelock-200.toml")),
    ("livelock-200-load", include_str!("bundled/livelock-200-load.toml")),
    ("livelock-400", include_str!("bundled/livelock-400.toml")),
    ("simple-path", include_str!("bundled/simple-path.toml")),
    ("tcp-nice", include_str!("bundled/tcp-nice.toml")),
    ("tcp-ring", include_str!("bundled/tcp-ring.toml")),
    ("whole-path", include_str!("bundled/whole-path.toml")),
];

/// The text of a bundled set.
pub fn find(name: &str) -> Option<&'static str> {
    ALL.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}
