//! Words of the user that end up on a command line: an ssh destination and a directory.

use serde::Deserialize;

/// A word that ssh takes: an alias of its configuration, `user@host`, `ssh://user@host:port`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Destination(String);

impl Destination {
    /// As ssh is given it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Destination {
    type Error = String;

    /// Refuses what ssh or a shell could take for something else. `ssh -- DEST` protects from options alone; ssh hands
    /// `%h` and `%r` to shells of `ProxyCommand` and `Match exec`.
    fn try_from(text: String) -> Result<Self, String> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "._-@:/[]%+".contains(c);
        if text.is_empty() || text.starts_with('-') || !text.chars().all(allowed) {
            return Err(format!(
                "`{}` is no ssh destination: write an alias of ~/.ssh/config, user@host or ssh://user@host:port",
                text.escape_debug()
            ));
        }
        Ok(Self(text))
    }
}

/// An absolute directory of letters that every shell takes as they are.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Directory(String);

impl Directory {
    /// Its path.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Directory {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "._/+-".contains(c);
        let climbs = text.split('/').any(|part| part == "..");
        if !text.starts_with('/') || climbs || !text.chars().all(allowed) {
            return Err(format!(
                "`{}` is no directory that rxpath uses on a host: write an absolute path of letters, digits and ._/+-",
                text.escape_debug()
            ));
        }
        // An empty word would be none in the line that starts an endpoint, and the next words would take its place.
        let text = text.trim_end_matches('/');
        Ok(Self(if text.is_empty() { "/" } else { text }.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ssh_takes_is_taken() {
        let all =
            ["gen1", "me@gen1.lab", "ssh://me@gen1.lab:2222", "2001:db8::1", "me@[fe80::1%eth0]"];
        for text in all {
            assert_eq!(Destination::try_from(text.to_owned()).unwrap().as_str(), text);
        }
    }

    #[test]
    fn hostile_words_are_refused() {
        let all = [
            "",
            "-oProxyCommand=sh",
            "a b",
            "a;b",
            "a`b`",
            "$(id)",
            "a|b",
            "a&b",
            "a\nb",
            "a'b",
            "a\"b",
            "a\\b",
            "a>b",
            "a\u{0}b",
            "é",
            "a*b",
            "a?b",
            "{a,b}",
            "~root",
            "a!b",
            "a#b",
            "a=b",
            "a,b",
        ];
        for text in all {
            assert!(Destination::try_from(text.to_owned()).is_err(), "{text:?}");
        }
        let all = [
            "", "relative", "/a b", "/a;b", "/$HOME", "/a/../b", "/a'b", "/a\nb", "~/x", "/a*",
            "-x",
        ];
        for text in all {
            assert!(Directory::try_from(text.to_owned()).is_err(), "{text:?}");
        }
        for (text, path) in [("/opt/scratch/", "/opt/scratch"), ("/", "/"), ("//", "/")] {
            assert_eq!(Directory::try_from(text.to_owned()).unwrap().as_str(), path);
        }
    }
}
