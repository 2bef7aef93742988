//! RSS and hashed fields as pairs.

use crate::pairs::Pairs;
use crate::read::ioctl::{self, FlowKind, HashFields};
use crate::read::netlink::ethtool::{NO_TRANSFORMATION, Rss, function_bit, transformation_bit};
use crate::write::ioctl::steering::{self, RssRequest, Table};
use crate::{Group, HostError};

/// What RSS has.
const NAMES: &str = "a value of indir, key, hfunc or input-xfrm";

/// The names of the flow kinds.
pub fn flows() -> impl Iterator<Item = &'static str> {
    FlowKind::ALL.into_iter().map(FlowKind::name)
}

/// Fields as letters of the ethtool program; `-` for none.
fn letters(fields: HashFields) -> String {
    let letters = fields.to_string();
    if letters.is_empty() { "-".into() } else { letters }
}

fn fields(letters: &str) -> Option<HashFields> {
    HashFields::try_from(if letters == "-" { String::new() } else { letters.to_owned() }).ok()
}

/// The hashed fields of each kind of packet that the driver answers for.
pub(super) fn flow_hash(dev: &str) -> Result<Pairs, HostError> {
    let mut pairs = Pairs::default();
    let mut refusal = None;
    for kind in FlowKind::ALL {
        match ioctl::flow_hash(dev, kind) {
            Ok(fields) => pairs.push(kind.name(), letters(fields)),
            // Drivers refuse the kinds that they do not distinguish.
            Err(
                error @ (HostError::Unsupported { .. }
                | HostError::Kernel { errno: libc::EINVAL, .. }),
            ) => refusal = Some(error),
            Err(error) => return Err(error),
        }
    }
    match refusal {
        Some(error) if pairs.is_empty() => Err(error),
        _ => Ok(pairs),
    }
}

pub(super) fn set_flow_hash(dev: &str, asked: &Pairs) -> Result<(), HostError> {
    for (name, text) in asked.iter() {
        let (flow, fields) = hashed(name, text)?;
        steering::set_hash_fields(dev, flow, fields)?;
    }
    Ok(())
}

/// Whether these are names and values that RSS or the hashed fields take, as far as that is seen without the device.
pub fn check(group: Group, asked: &Pairs) -> Result<(), HostError> {
    if group == Group::FlowHash {
        return asked.iter().try_for_each(|(name, text)| hashed(name, text).map(drop));
    }
    let any_table = |text: &str| {
        let is_table = match text.split_once(':') {
            None => text == "default" || text.split(',').all(|entry| entry.parse::<u32>().is_ok()),
            Some(("equal", count)) => count.parse::<u32>().is_ok_and(|count| count > 0),
            Some(("weights", all)) => all.split(':').all(|weight| weight.parse::<u32>().is_ok()),
            Some(_) => false,
        };
        let expected = "default, equal:N, weights:A:B.. or queues";
        is_table.then_some(Table::Default).ok_or_else(|| bad("indir", text, expected))
    };
    request(asked, any_table).map(drop)
}

fn hashed(name: &str, text: &str) -> Result<(FlowKind, HashFields), HostError> {
    let kind = FlowKind::ALL.into_iter().find(|kind| kind.name() == name);
    if let (Some(kind), Some(fields)) = (kind, fields(text)) {
        return Ok((kind, fields));
    }
    let flows: Vec<&str> = flows().collect();
    let why = format!("{name}={text}: expected {} and letters of mvtsdfn (or -)", flows.join(", "));
    Err(HostError::malformed("flow-hash", 0, why))
}

fn key(text: &str) -> Result<Vec<u8>, HostError> {
    let bytes: Result<Vec<u8>, _> = text.split(':').map(|b| u8::from_str_radix(b, 16)).collect();
    bytes.map_err(|_| bad("key", text, "bytes like 6d:5a:01"))
}

fn function(text: &str) -> Result<u8, HostError> {
    function_bit(text).ok_or_else(|| bad("hfunc", text, "toeplitz, xor or crc32"))
}

fn input(text: &str) -> Result<u8, HostError> {
    let expected = "none, symmetric-xor or symmetric-or-xor";
    transformation_bit(text).ok_or_else(|| bad("input-xfrm", text, expected))
}

fn joined(table: &[u32]) -> String {
    table.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

fn as_pairs(rss: &Rss) -> Pairs {
    let mut pairs = Pairs::default();
    if !rss.table.is_empty() {
        pairs.push("indir", joined(&rss.table));
    }
    if let Some(key) = rss.key_bytes() {
        let key: Vec<String> = key.iter().map(|byte| format!("{byte:02x}")).collect();
        pairs.push("key", key.join(":"));
    }
    if let Some(function) = &rss.function {
        pairs.push("hfunc", function);
    }
    // Kernels before 6.8 have none, and refuse to be asked for one.
    pairs.push("input-xfrm", rss.transformation.as_deref().unwrap_or(NO_TRANSFORMATION));
    pairs
}

pub(super) fn rss_pairs(dev: &str) -> Result<Pairs, HostError> {
    ioctl::rss(dev).map(|rss| as_pairs(&rss))
}

fn bad(name: &str, text: &str, expected: &str) -> HostError {
    HostError::malformed("rss", 0, format!("{name}={text}: expected {expected}"))
}

/// A table by its words: `default`, `equal:N`, `weights:A:B`, or its entries `0,1,0,1`.
///
/// `size` is how many entries the device's table has, `queues` how many queues it has now.
pub fn table(text: &str, size: usize, queues: u32) -> Option<Table> {
    let spread = |weights: &[u32]| {
        let total: u64 = weights.iter().map(|w| u64::from(*w)).sum();
        if total == 0 || weights.len() > size {
            return None;
        }
        // As the ethtool program does it: each queue gets its share of the table, in order.
        let (mut entries, mut sum) = (Vec::with_capacity(size), 0u64);
        let mut queue = 0;
        for at in 0..size as u64 {
            while at * total >= sum * size as u64 {
                sum += u64::from(*weights.get(queue)?);
                queue += 1;
            }
            entries.push(queue as u32 - 1);
        }
        Some(Table::Entries(entries))
    };
    if text == "default" {
        return Some(Table::Default);
    }
    if let Some(count) = text.strip_prefix("equal:") {
        let count = count.parse::<u32>().ok().filter(|n| (1..=queues).contains(n))?;
        return Some(Table::Entries((0..size as u32).map(|at| at % count).collect()));
    }
    if let Some(weights) = text.strip_prefix("weights:") {
        let weights: Option<Vec<u32>> = weights.split(':').map(|w| w.parse().ok()).collect();
        return spread(&weights?).filter(|_| text.matches(':').count() <= queues as usize);
    }
    let entries: Option<Vec<u32>> = text.split(',').map(|entry| entry.parse().ok()).collect();
    let entries = entries.filter(|entries| entries.len() == size)?;
    entries.iter().all(|queue| *queue < queues).then_some(Table::Entries(entries))
}

/// The table of a device by its words.
fn table_of(dev: &str, text: &str) -> Result<Table, HostError> {
    let (size, queues) = (ioctl::rss(dev)?.table.len(), ioctl::receive_queues(dev)?);
    let expected = || format!("default, equal:N, weights:A:B.. or {size} queues below {queues}");
    table(text, size, queues).ok_or_else(|| bad("indir", text, &expected()))
}

/// Parses a request; `table` reads the words of a table.
fn request(
    asked: &Pairs,
    table: impl Fn(&str) -> Result<Table, HostError>,
) -> Result<RssRequest, HostError> {
    let mut request = RssRequest::default();
    for (name, text) in asked.iter() {
        match name {
            "indir" => request.table = Some(table(text)?),
            "key" => request.key = Some(key(text)?),
            "hfunc" => request.function = Some(function(text)?),
            "input-xfrm" => request.transformation = Some(input(text)?),
            _ => return Err(bad(name, text, NAMES)),
        }
    }
    Ok(request)
}

pub(super) fn set_rss(dev: &str, asked: &Pairs) -> Result<(), HostError> {
    steering::set_rss(dev, &request(asked, |text| table_of(dev, text))?)
}

/// Writes parts back. A table that is the driver's default is reset in the driver: it then follows the number of
/// queues again, as it did before (`IFF_RXFH_CONFIGURED`, net/ethtool/ioctl.c `ethtool_set_rxfh`).
pub(super) fn restore_rss(dev: &str, was: &Pairs) -> Result<(), HostError> {
    let mut request = request(was, |text| table_of(dev, text))?;
    let queues = ioctl::receive_queues(dev)?;
    if let Some(Table::Entries(entries)) = &request.table
        && *entries == default_table(entries.len(), queues)
    {
        request.table = Some(Table::Default);
    }
    steering::set_rss(dev, &request)
}

/// **Source** include/linux/ethtool.h `ethtool_rxfh_indir_default`.
fn default_table(size: usize, queues: u32) -> Vec<u32> {
    (0..size as u32).map(|at| at % queues.max(1)).collect()
}

/// The request with its table as the entries that should read back.
pub(super) fn spell_out(dev: &str, asked: &Pairs) -> Result<Pairs, HostError> {
    let Some(words) = asked.get("indir") else { return Ok(asked.clone()) };
    let (size, queues) = (ioctl::rss(dev)?.table.len(), ioctl::receive_queues(dev)?);
    let entries = match table(words, size, queues) {
        Some(Table::Entries(entries)) => entries,
        Some(Table::Default) => default_table(size, queues),
        None => return Ok(asked.clone()),
    };
    let entries = joined(&entries);
    let spelled = asked.iter().map(|(name, value)| {
        let value = if name == "indir" { entries.as_str() } else { value };
        (name, value)
    });
    Ok(spelled.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tables_are_made_from_words() {
        let entries = |text| match table(text, 8, 4) {
            Some(Table::Entries(entries)) => entries,
            other => panic!("{other:?}"),
        };
        assert_eq!(entries("equal:4"), [0, 1, 2, 3, 0, 1, 2, 3]);
        assert_eq!(entries("weights:1:1"), [0, 0, 0, 0, 1, 1, 1, 1]);
        assert_eq!(entries("weights:3:0:1"), [0, 0, 0, 0, 0, 0, 2, 2]);
        assert_eq!(entries("3,3,3,3,3,3,3,3"), [3; 8]);
        assert_eq!(table("default", 8, 4), Some(Table::Default));
        for wrong in
            ["equal:0", "equal:5", "0,1", "4,0,0,0,0,0,0,0", "weights:0", "weights:1:1:1:1:1", "x"]
        {
            assert_eq!(table(wrong, 8, 4), None, "{wrong}");
        }
    }

    #[test]
    fn fields_are_letters() {
        assert_eq!(letters(HashFields(0xf0)), "sdfn");
        assert_eq!(fields("sd"), Some(HashFields(0x30)));
        assert_eq!((letters(HashFields(0)).as_str(), fields("-")), ("-", Some(HashFields(0))));
        assert_eq!(fields("q"), None);
    }

    #[test]
    fn rss_is_text_without_blanks() {
        let rss = Rss {
            table: vec![0, 1],
            key: rxpath_core::Fact::ok("6d01".into()),
            function: Some("toeplitz".into()),
            transformation: None,
        };
        assert_eq!(
            as_pairs(&rss).to_string(),
            "indir=0,1 key=6d:01 hfunc=toeplitz input-xfrm=none"
        );
    }

    proptest! {
        #[test]
        fn any_text_is_a_table_within_bounds_or_none(text in "[a-z0-9:,]{0,20}", size in 1usize..300, queues in 1u32..9) {
            if let Some(Table::Entries(entries)) = table(&text, size, queues) {
                prop_assert_eq!(entries.len(), size);
                prop_assert!(entries.iter().all(|queue| *queue < queues));
            }
        }
    }
}
