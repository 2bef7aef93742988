//! The groups of settings in the words of ethtool(8).

use super::Group;
use crate::pairs::Pairs;

impl Group {
    /// Options of ethtool(8) that change the group; none for what it can't change.
    pub fn ethtool_options(self) -> &'static [&'static str] {
        match self {
            Self::Features => &["-K", "--features", "--offload"],
            Self::Coalesce => &["-C", "--coalesce"],
            Self::Rings => &["-G", "--set-ring"],
            Self::Channels => &["-L", "--set-channels"],
            Self::Pause => &["-A", "--pause"],
            Self::PrivFlags => &["--set-priv-flags"],
            Self::Eee => &["--set-eee"],
            Self::LinkModes => &["-s", "--change"],
            Self::Fec => &["--set-fec"],
            Self::Rss => &["-X", "--set-rxfh-indir", "--rxfh"],
            Self::Stamps | Self::FlowHash | Self::Link => &[],
        }
    }

    /// The command that sets these values of a group.
    pub(crate) fn ethtool_command(self, dev: &str, asked: &Pairs) -> String {
        let values = asked.iter().filter_map(|(name, value)| match (self, name) {
            (Self::Eee, "enabled") => Some(format!("eee {value}")),
            (Self::Eee, "tx-lpi-timer") => Some(format!("tx-timer {value}")),
            (Self::Fec, encoding) => (value == "on").then(|| encoding.to_owned()),
            (Self::LinkModes, mode) if mode.contains("base") => {
                Some(format!("advertise {mode} {value}"))
            }
            _ => Some(format!("{name} {value}")),
        });
        let values: Vec<String> = values.collect();
        let option = self.ethtool_options().first().copied().unwrap_or_default();
        let encoding = if self == Self::Fec { "encoding " } else { "" };
        format!("ethtool {option} {dev} {encoding}{}", values.join(" "))
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
                Group::LinkModes,
                "autoneg=on 1000baseT/Full=on",
                "ethtool -s eth0 autoneg on advertise 1000baseT/Full on",
            ),
        ] {
            assert_eq!(group.ethtool_command("eth0", &asked.parse().unwrap()), command);
        }
    }
}
