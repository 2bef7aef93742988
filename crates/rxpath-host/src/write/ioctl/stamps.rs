//! Hardware time stamps to ask for.
//!
//! **Source** linux/net_tstamp.h `SIOCSHWTSTAMP`, `struct hwtstamp_config`; net/core/dev_ioctl.c.

use crate::ioctl::issue;
use crate::pairs::Pairs;
use crate::read::ioctl::stamps::filled;
use crate::write::netlink::field::put_words;
use crate::{Group, HostError};

const SIOCSHWTSTAMP: libc::Ioctl = 0x89b0;

/// Asks for other stamps; what is not asked for stays as it reads now.
///
/// **Source** net/core/dev_ioctl.c `dev_set_hwtstamp`. **Caveat** a driver may stamp more than what is asked for, and then
/// says so when it is read; some reset the link.
pub fn set_stamps(dev: &str, asked: &Pairs) -> Result<(), HostError> {
    let mut buffer = filled(dev)?;
    put_words(&mut buffer, Group::Stamps, asked)?;
    issue(SIOCSHWTSTAMP, "set the time stamps of", dev, &mut buffer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ioctl::put;
    use crate::read::netlink::ethtool::field::Answer;
    use crate::write::netlink::group::check;

    fn structure(words: &[u32]) -> [u8; 12] {
        let mut buffer = [0; 12];
        put(&mut buffer, words);
        buffer
    }

    fn pairs(structure: &[u8]) -> Pairs {
        Answer::of_words(Group::Stamps, structure).pairs()
    }

    #[test]
    fn what_is_read_can_be_written_back() {
        for words in [[0, 0, 0], [0, 1, 1], [0, 3, 15], [1, 9, 77]] {
            let (read, mut again) = (structure(&words), structure(&words[..1]));
            put_words(&mut again, Group::Stamps, &pairs(&read)).unwrap();
            assert_eq!(again, read);
        }
        let mut before = structure(&[0, 1]);
        put_words(&mut before, Group::Stamps, &"rx-filter=all".parse().unwrap()).unwrap();
        assert_eq!(pairs(&before).to_string(), "tx-type=on rx-filter=all");
    }

    #[test]
    fn wrong_names_and_values_are_refused_before_they_are_sent() {
        for (text, words) in [
            ("rx-filter=most", "none or all or some"),
            ("rx-filter=1", "none or all or some"),
            ("filter=all", "there are tx-type, rx-filter"),
        ] {
            let error = check(Group::Stamps, &text.parse().unwrap()).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
