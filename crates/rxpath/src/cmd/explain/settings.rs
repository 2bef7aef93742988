//! Names of the settings that a rule's command sets: sysctls, files, ethtool names, socket options.

use rxpath_host::Group;

/// The names in a command: `sysctl -w net.core.rmem_max=1` has `net.core.rmem_max` and `rmem_max`.
pub fn names(set_now: &str) -> Vec<String> {
    let mut names = Vec::new();
    let words: Vec<&str> = set_now.split_whitespace().collect();
    for (at, word) in words.iter().enumerate() {
        let bare = word.trim_matches(|c: char| ",;()'\"`".contains(c));
        if let Some((key, _)) = bare.split_once('=')
            && is_sysctl(key)
        {
            names.push(key.to_owned());
            names.extend(key.rsplit('.').next().map(str::to_owned));
        } else if bare.starts_with('/') || bare.starts_with(".../") {
            names.extend(
                bare.rsplit('/').next().filter(|name| name.contains(['_', '.'])).map(Into::into),
            );
        } else if bare.starts_with("ip")
            && words.get(at + 1..at + 4) == Some(&["link", "set", "dev"])
        {
            names.extend(words.get(at + 5).map(|name| (*name).to_owned()));
        } else if let Some(start) = bare.find("SO_") {
            let end = bare[start..].find(|c: char| !c.is_ascii_uppercase() && c != '_');
            names.push(bare[start..].chars().take(end.unwrap_or(usize::MAX)).collect());
        } else if let Some(group) = Group::ALL
            .into_iter()
            .find(|group| at == 1 && group.properties().ethtool.contains(&bare))
        {
            // A rule whose first command differs is about something else.
            for name in options(words.get(at + 2..).unwrap_or_default()) {
                names.push(format!("{} {name}", group.name()));
                if name.contains('-') {
                    names.push(name.to_owned());
                }
            }
        }
    }
    names.dedup();
    names
}

/// The names of `adaptive-rx off rx-usecs N`, up to the end of the command.
fn options<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let is_name = |word: &str| word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    let mut names = Vec::new();
    for pair in words.chunks(2) {
        if !is_name(pair[0]) {
            break;
        }
        names.push(pair[0]);
        if pair.get(1).is_none_or(|value| value.ends_with([';', ','])) {
            break;
        }
    }
    names
}

fn is_sysctl(key: &str) -> bool {
    key.contains('.')
        && !key.starts_with('.')
        && key.chars().all(|c| c.is_ascii_alphanumeric() || "._-/".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_gives_the_names_of_what_it_sets() {
        for (command, wanted) in [
            (
                "sysctl -w net.core.busy_poll=50 net.core.busy_read=50 (us)",
                vec!["net.core.busy_poll", "busy_poll", "net.core.busy_read", "busy_read"],
            ),
            (
                "ethtool -C DEV adaptive-rx off; then set rx-usecs",
                vec!["coalesce adaptive-rx", "adaptive-rx"],
            ),
            (
                "ethtool -C DEV adaptive-rx off rx-usecs N",
                vec!["coalesce adaptive-rx", "adaptive-rx", "coalesce rx-usecs", "rx-usecs"],
            ),
            ("ethtool -G DEV rx MAX", vec!["rings rx"]),
            ("echo MASK > /sys/class/net/DEV/queues/rx-N/rps_cpus; 0 is off", vec!["rps_cpus"]),
            ("setsockopt(SO_BUSY_POLL) in the application", vec!["SO_BUSY_POLL"]),
            ("not possible at runtime", vec![]),
        ] {
            assert_eq!(names(command), wanted, "{command}");
        }
    }
}
