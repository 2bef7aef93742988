//! The groups of settings in the words of ethtool(8).

use rxpath_core::shell;

use super::Group;
use crate::pairs::{Pairs, as_written};

impl Group {
    /// The command that sets these values of a group, to be pasted into a shell: names as the driver writes them.
    pub(crate) fn ethtool_command(self, dev: &str, asked: &Pairs) -> String {
        let option = self.properties().ethtool.first().copied().unwrap_or_default();
        let mut words: Vec<String> = ["ethtool", option, dev].map(str::to_owned).into();
        if self == Self::Fec {
            words.push("encoding".to_owned());
        }
        for (name, value) in asked.iter() {
            let (name, value) = (as_written(name), as_written(value));
            match (self, name.as_str()) {
                (Self::Eee, "enabled") => words.extend(["eee".to_owned(), value]),
                (Self::Eee, "tx-lpi-timer") => words.extend(["tx-timer".to_owned(), value]),
                (Self::Fec, _) => words.extend((value == "on").then_some(name)),
                (Self::LinkModes, mode) if mode.contains("base") => {
                    words.extend(["advertise".to_owned(), name, value]);
                }
                _ => words.extend([name, value]),
            }
        }
        shell::line(&words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_in_the_words_of_the_program() {
        for (group, asked, command) in [
            (Group::Rings, "rx=4096 tx=512", "ethtool -G eth0 rx 4096 tx 512"),
            (Group::Features, "rx-gro=off", "ethtool -K eth0 rx-gro off"),
            (Group::Eee, "enabled=off tx-lpi-timer=9", "ethtool --set-eee eth0 eee off tx-timer 9"),
            (Group::Fec, "off=off rs=on", "ethtool --set-fec eth0 encoding rs"),
            (
                Group::PrivFlags,
                "tx%20push=on 50%25%3Dit's=off legacy-rx=on",
                r"ethtool --set-priv-flags eth0 'tx push' on '50%=it'\''s' off legacy-rx on",
            ),
            (
                Group::LinkModes,
                "autoneg=on 1000baseT/Full=on",
                "ethtool -s eth0 autoneg on advertise 1000baseT/Full on",
            ),
        ] {
            assert_eq!(group.ethtool_command("eth0", &asked.parse().unwrap()), command);
        }
    }
}
