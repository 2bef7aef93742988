//! Replacing what names a host, its users and its neighbours.
//!
//! Replaced, each by a stand-in that is the same wherever the original was the same, so that what belongs together
//! can still be seen: hardware addresses (locally administered ones), IPv4 addresses (192.0.2.0/24 and on),
//! IPv6 addresses (2001:db8::/32), UUIDs, the host's name and the names of its users. Kept: addresses that name
//! nobody (zero, loopback, broadcast) and whatever has another form, such as PCI addresses and version numbers of
//! three parts.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use rxpath_core::IntoMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Root;

/// Names shorter than this are too likely to be other words: they are left.
const SHORTEST_NAME: usize = 4;
/// A name may stand behind one of these in a word, or at its begin.
const BEFORE: &[char] = &['-', '_', ':'];
/// And before one of these, or at its end: `granite01.example.org`.
const BEHIND: &[char] = &['-', '_', ':', '.'];

/// Names of a host and of the people who use it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostNames {
    /// Its name, whole and up to the first dot.
    pub hosts: Vec<String>,
    /// Its users.
    pub users: Vec<String>,
}

impl HostNames {
    /// Those of the host with this root.
    ///
    /// Users are those whom people are: numbers from 1000 on (login.defs(5), `UID_MIN`), without `nobody`.
    pub fn of(root: &Root) -> Self {
        let name = root.value("/proc/sys/kernel/hostname").unwrap_or_default();
        let short = name.split('.').next().unwrap_or_default().to_owned();
        let passwd = root.text("/etc/passwd").unwrap_or_default();
        let users = passwd.lines().filter_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next()?;
            let number: u32 = fields.nth(1)?.parse().ok()?;
            ((1000..65_534).contains(&number)).then(|| name.to_owned())
        });
        let known = |name: &String| name != "localhost" && name != "nobody";
        let hosts = [name, short].into_iter().filter(known).collect();
        Self { hosts, users: users.filter(known).collect() }
    }
}

/// How many different things of each kind were replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Replaced {
    /// Hardware addresses.
    pub mac_count: u64,
    /// IPv4 addresses.
    pub ipv4_count: u64,
    /// IPv6 addresses.
    pub ipv6_count: u64,
    /// UUIDs.
    pub uuid_count: u64,
    /// Host and user names.
    pub name_count: u64,
}

/// Replaces.
#[derive(Debug, Default)]
pub struct Scrubber {
    is_off: bool,
    /// Names and what replaces each.
    known: BTreeMap<String, String>,
    /// Addresses that something else than the next free one replaces.
    addresses: BTreeMap<IpAddr, String>,
    macs: BTreeMap<String, usize>,
    ipv4: BTreeMap<Ipv4Addr, usize>,
    ipv6: BTreeMap<Ipv6Addr, usize>,
    uuids: BTreeMap<String, usize>,
    names: BTreeSet<String>,
}

impl Scrubber {
    /// One that replaces nothing.
    pub fn none() -> Self {
        Self { is_off: true, ..Self::default() }
    }

    /// One that knows these names.
    pub fn new(HostNames { hosts, users }: HostNames) -> Self {
        let hosts = hosts.into_iter().map(|name| (name, "host".to_owned()));
        let users = users.into_iter().map(|name| (name, "user".to_owned()));
        // A name of both is the host's.
        Self::of_known(users.chain(hosts).into_map(), BTreeMap::new())
    }

    /// One that replaces each of these names and addresses by what is said there, and other addresses as ever.
    pub fn of_known(
        mut names: BTreeMap<String, String>,
        addresses: BTreeMap<IpAddr, String>,
    ) -> Self {
        names.retain(|name, _| name.len() >= SHORTEST_NAME);
        Self { known: names, addresses, ..Self::default() }
    }

    /// What was replaced so far.
    pub fn replaced(&self) -> Replaced {
        Replaced {
            mac_count: self.macs.len() as u64,
            ipv4_count: self.ipv4.len() as u64,
            ipv6_count: self.ipv6.len() as u64,
            uuid_count: self.uuids.len() as u64,
            name_count: self.names.len() as u64,
        }
    }

    /// A file's content.
    pub fn text(&mut self, text: &str) -> String {
        self.words(text, true)
    }

    /// A path or a device's name: names of hosts and users are left, for these are the kernel's words.
    pub fn name(&mut self, text: &str) -> String {
        self.words(text, false)
    }

    fn words(&mut self, text: &str, with_names: bool) -> String {
        if self.is_off {
            return text.to_owned();
        }
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, ':' | '.' | '-' | '_');
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find(is_part) {
            out += &rest[..start];
            rest = &rest[start..];
            let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            out += &self.word(word, with_names);
            rest = after;
        }
        out + rest
    }

    /// One run of letters, digits and `:.-_`.
    fn word(&mut self, word: &str, with_names: bool) -> String {
        // A colon or dot at the end belongs to the sentence, not to the address.
        let body = word.trim_end_matches(['.', ':']);
        let body = if body.len() < word.len() && word.ends_with("::") { word } else { body };
        let tail = &word[body.len()..];
        if let Some(replaced) = self.address(body) {
            return replaced + tail;
        }
        // An address with a port behind a dot, as tcpdump writes it.
        if let Some((address, port)) = body.rsplit_once('.')
            && let Some(replaced) = self.address(address)
        {
            return format!("{replaced}.{port}{tail}");
        }
        if with_names && let Some((at, stand_in)) = self.named(body) {
            let [before, behind] = [&body[..at.start], &body[at.end..]];
            let [before, behind] = [before, behind].map(|part| self.word(part, true));
            self.names.insert(body[at].to_owned());
            return before + &stand_in + &behind + tail;
        }
        // An address with a port, a device's name with its address, an interrupt's name: part by part.
        let mut out = String::with_capacity(word.len());
        let mut from = 0;
        for (at, c) in body.char_indices().chain([(body.len(), '-')]) {
            if matches!(c, '-' | '_' | ':') && at >= from {
                let part = &body[from..at];
                let part = self.part(part).unwrap_or_else(|| part.to_owned());
                out += &part;
                if at < body.len() {
                    out.push(c);
                }
                from = at + 1;
            }
        }
        out + tail
    }

    fn part(&mut self, part: &str) -> Option<String> {
        if let Some(mac) = part.strip_prefix("enx").filter(|mac| is_hex(mac, 12)) {
            let number = number(&mut self.macs, mac.to_ascii_lowercase());
            return Some(format!("enx0200{:08x}", number as u32));
        }
        self.ipv4(part)
    }

    fn address(&mut self, word: &str) -> Option<String> {
        self.mac(word)
            .or_else(|| self.uuid(word))
            .or_else(|| self.ipv4(word))
            .or_else(|| self.ipv6(word))
    }

    fn mac(&mut self, word: &str) -> Option<String> {
        for separator in [':', '-'] {
            let pairs: Vec<&str> = word.split(separator).collect();
            if pairs.len() == 6 && pairs.iter().all(|pair| is_hex(pair, 2)) {
                let plain = pairs.concat().to_ascii_lowercase();
                if plain == "000000000000" || plain == "ffffffffffff" {
                    return None;
                }
                let bytes = (number(&mut self.macs, plain) as u32).to_be_bytes();
                let parts: Vec<String> = [[0x02, 0x00].as_slice(), &bytes]
                    .concat()
                    .iter()
                    .map(|b| format!("{b:02x}"))
                    .collect();
                return Some(parts.join(&separator.to_string()));
            }
        }
        None
    }

    fn uuid(&mut self, word: &str) -> Option<String> {
        let parts: Vec<&str> = word.split('-').collect();
        let lengths = [8, 4, 4, 4, 12];
        let fits = parts.len() == 5 && parts.iter().zip(lengths).all(|(part, n)| is_hex(part, n));
        fits.then(|| {
            let n = number(&mut self.uuids, word.to_ascii_lowercase());
            format!("00000000-0000-0000-0000-{n:012x}")
        })
    }

    fn ipv4(&mut self, word: &str) -> Option<String> {
        let address: Ipv4Addr = word.parse().ok()?;
        if let Some(known) = self.addresses.get(&IpAddr::V4(address)) {
            return Some(known.clone());
        }
        // Net masks name nobody; what begins with 0 is as often a version as an address.
        let mask = u32::from(address).leading_ones() + u32::from(address).trailing_zeros() >= 32;
        if address.octets()[0] == 0 || address.is_loopback() || mask {
            return None;
        }
        let n = number(&mut self.ipv4, address) as u32;
        Some(Ipv4Addr::from(u32::from(Ipv4Addr::new(192, 0, 2, 0)).wrapping_add(n)).to_string())
    }

    fn ipv6(&mut self, word: &str) -> Option<String> {
        let address: Ipv6Addr = word.parse().ok()?;
        if let Some(known) = self.addresses.get(&address.to_canonical()) {
            return Some(known.clone());
        }
        if address.is_unspecified() || address.is_loopback() {
            return None;
        }
        let n = number(&mut self.ipv6, address) as u128;
        Some(Ipv6Addr::from((0x2001_0db8_u128 << 96) + n).to_string())
    }

    /// The longest name in a word, and what replaces it.
    fn named(&self, word: &str) -> Option<(Range<usize>, String)> {
        let places = self.known.iter().flat_map(|(name, stand_in)| {
            word.match_indices(name.as_str()).map(move |(at, name)| (at..at + name.len(), stand_in))
        });
        let is_whole = |(place, _): &(Range<usize>, &String)| {
            let before = word[..place.start].chars().next_back();
            let behind = word[place.end..].chars().next();
            before.is_none_or(|c| BEFORE.contains(&c)) && behind.is_none_or(|c| BEHIND.contains(&c))
        };
        let longest = places.filter(is_whole).max_by_key(|(place, _)| place.len());
        longest.map(|(place, stand_in)| (place, stand_in.clone()))
    }
}

/// The number of a thing: the first is 1.
fn number<K: Ord>(known: &mut BTreeMap<K, usize>, key: K) -> usize {
    let next = known.len() + 1;
    *known.entry(key).or_insert(next)
}

fn is_hex(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|b| b.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn scrubber() -> Scrubber {
        let hosts = vec!["granite01".into(), "vm".into()];
        Scrubber::new(HostNames { hosts, users: vec!["annabel".into()] })
    }

    #[test]
    fn what_names_somebody_is_replaced_and_stays_recognisable() {
        let mut scrubber = scrubber();
        for (text, expected) in [
            ("ether 3c:fd:fe:aa:bb:cc up", "ether 02:00:00:00:00:01 up"),
            (
                "again 3C:FD:FE:AA:BB:CC, other 3c:fd:fe:aa:bb:cd",
                "again 02:00:00:00:00:01, other 02:00:00:00:00:02",
            ),
            ("10.1.2.3:80 and 10.1.2.3/24", "192.0.2.1:80 and 192.0.2.1/24"),
            ("fd12::7 [fd12::8]:443", "2001:db8::1 [2001:db8::2]:443"),
            ("enx3cfdfeaabbcc", "enx020000000001"),
            (
                "root=UUID=123e4567-e89b-12d3-a456-426614174000",
                "root=UUID=00000000-0000-0000-0000-000000000001",
            ),
            ("granite01 annabel@granite01.", "host user@host."),
            (
                "granite01.example.org granite01-data:22 to-granite01",
                "host.example.org host-data:22 to-host",
            ),
            ("10.1.2.3.80 > fd12::7.443:", "192.0.2.1.80 > 2001:db8::1.443:"),
        ] {
            assert_eq!(scrubber.text(text), expected, "{text}");
        }
        let replaced = scrubber.replaced();
        assert_eq!((replaced.mac_count, replaced.ipv4_count, replaced.ipv6_count), (2, 1, 2));
        assert_eq!((replaced.uuid_count, replaced.name_count), (1, 2));
    }

    #[test]
    fn what_names_nobody_is_kept() {
        for text in [
            "0000:3b:00.0 PCI-MSIX-0000:00:03.0 1-edge virtio2-input.0",
            "6.18.44 00:00:00:00:00:00 ff:ff:ff:ff:ff:ff 127.0.0.1 0.0.0.0 255.255.255.0 ::1 ::",
            "mlx5_comp0@pci:0000:81:00.0",
            "12:34:56 rx_queue_0_packets cpu0-1,3 00000000,00000003",
            "vm.stat_interval granite010 xgranite01 net.granite01",
            "Cpus_allowed_list:\t0-3",
            "deadbeef cafe:",
        ] {
            assert_eq!(scrubber().text(text), text);
        }
        assert_eq!(scrubber().name("/proc/sys/granite01"), "/proc/sys/granite01");
        assert_eq!(Scrubber::none().text("10.1.2.3"), "10.1.2.3");
    }

    #[test]
    fn known_names_and_addresses_are_replaced_by_what_was_said() {
        let names = [("gen-1.lab", "gen1"), ("sut", "short")];
        let names = names.map(|(name, alias)| (name.to_owned(), alias.to_owned()));
        let addresses = [("10.1.2.3", "gen1"), ("10.1.2.30", "sut"), ("fd12::7", "sut")];
        let addresses = addresses.map(|(it, alias)| (it.parse().unwrap(), alias.to_owned()));
        let (names, addresses) = (names.into_iter().into_map(), addresses.into_iter().into_map());
        let mut scrubber = Scrubber::of_known(names, addresses);
        for (text, expected) in [
            ("Linux gen-1.lab 6.1.0 #1", "Linux gen1 6.1.0 #1"),
            ("gen-1.lab:22 x-gen-1.lab", "gen1:22 x-gen1"),
            ("10.1.2.30:4321 10.1.2.3:4321 10.1.2.4", "sut:4321 gen1:4321 192.0.2.1"),
            ("[FD12:0::7]:80 ::ffff:10.1.2.3", "[sut]:80 gen1"),
            // Too short, and part of another word.
            ("sut xgen-1.labs", "sut xgen-1.labs"),
        ] {
            assert_eq!(scrubber.text(text), expected, "{text}");
        }
        assert_eq!(scrubber.name("gen-1.lab 10.1.2.3"), "gen-1.lab gen1");
    }

    proptest! {
        #[test]
        fn no_text_panics_and_nothing_is_left_after_once(text in "\\PC{0,80}") {
            let once = scrubber().text(&text);
            let _ = scrubber().text(&once);
        }

        #[test]
        fn no_hardware_address_survives(bytes in any::<[u8; 6]>(), before in "[a-z ]{0,8}") {
            let pairs = bytes.map(|byte| format!("{byte:02x}"));
            let mac = pairs.join(":");
            prop_assume!(!mac.starts_with("02:00:00:00") && mac != "00:00:00:00:00:00" && mac != "ff:ff:ff:ff:ff:ff");
            let text = format!("{before} {mac}\n");
            prop_assert!(!scrubber().text(&text).contains(&mac));
        }

        #[test]
        fn no_address_survives(address in any::<u32>(), port in any::<u16>()) {
            let address = Ipv4Addr::from(address);
            let text = format!("x {address}:{port} y");
            let scrubbed = scrubber().text(&text);
            let kept = scrubbed.contains(&format!(" {address}:"));
            let mask = u32::from(address).leading_ones() + u32::from(address).trailing_zeros() >= 32;
            prop_assert_eq!(kept, address.octets()[0] == 0 || address.is_loopback() || mask || address == Ipv4Addr::new(192, 0, 2, 1));
        }
    }
}
