//! `/proc/sys`: settings by their dotted names, as typed facts.
//!
//! **Caveat** `/proc/sys/net` shows the network namespace of the calling thread, and in a namespace that is
//! not the first only a part of it: what is missing there is "not visible in this namespace".

use std::collections::BTreeMap;

use rxpath_core::Fact;
use serde::{Deserialize, Serialize};

use crate::error::fact;
use crate::{HostError, Root};

/// The deepest tree that is walked (`net/ipv4/conf/DEV/name` is 5).
const MAX_DEPTH: usize = 8;

/// Keys and seeds: never collected, because knowing them helps an attacker.
const SECRETS: [&str; 3] = ["tcp_fastopen_key", "stable_secret", "netdev_rss_key"];

/// A setting's value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// One number.
    Number(i64),
    /// Several numbers: `net.ipv4.udp_mem`, `net.ipv4.tcp_rmem`.
    Numbers(Vec<i64>),
    /// Anything else, without the white space around it.
    Text(String),
}

impl Value {
    /// The number, when it is one.
    pub fn number(&self) -> Option<i64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Numbers(_) | Self::Text(_) => None,
        }
    }
}

/// What a setting's text means.
pub fn parse(text: &str) -> Value {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let numbers: Option<Vec<i64>> = words.iter().map(|word| word.parse().ok()).collect();
    match numbers.as_deref() {
        Some([number]) => Value::Number(*number),
        Some([_, ..]) => Value::Numbers(numbers.unwrap_or_default()),
        _ => Value::Text(text.trim().to_owned()),
    }
}

/// Where setting `name` (`net.core.rmem_max`, or with slashes where a part has a dot) is.
pub fn path(name: &str) -> String {
    let relative = if name.contains('/') { name.to_owned() } else { name.replace('.', "/") };
    format!("/proc/sys/{relative}")
}

/// One setting.
///
/// **Errors** [`HostError::Missing`] when this kernel or namespace does not have it.
pub fn read(root: &Root, name: &str) -> Result<Value, HostError> {
    Ok(parse(&root.text(&path(name))?))
}

/// Every setting below `dir` (`net`, `net/core`) by its path below `/proc/sys`, with slashes.
///
/// Slashes, because device names may hold dots (`net/ipv4/conf/eth0.100/rp_filter`).
/// Files that can't be read (write-only triggers such as `net/ipv4/route/flush`) are gaps with their reason.
pub fn walk(root: &Root, dir: &str) -> Result<BTreeMap<String, Fact<Value>>, HostError> {
    let mut found = BTreeMap::new();
    let mut open = vec![(dir.trim_matches('/').to_owned(), 0)];
    while let Some((dir, depth)) = open.pop() {
        let names = match root.list(&format!("/proc/sys/{dir}")) {
            Ok(names) => names,
            Err(error) if depth == 0 => return Err(error),
            Err(error) => {
                found.insert(dir, error.into_gap());
                continue;
            }
        };
        for name in names {
            let inner = format!("{dir}/{name}");
            if root.is_dir(&format!("/proc/sys/{inner}")) {
                if depth < MAX_DEPTH {
                    open.push((inner, depth + 1));
                }
            } else if SECRETS.contains(&name.as_str()) {
                found.insert(inner, Fact::absent("a key: not collected"));
            } else {
                let value = fact(root.text(&format!("/proc/sys/{inner}"))).map(|text| parse(&text));
                found.insert(inner, value);
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn values_are_typed() {
        assert_eq!(parse("212992\n"), Value::Number(212_992));
        assert_eq!(
            parse("187155\t249540\t374310\n"),
            Value::Numbers(vec![187_155, 249_540, 374_310])
        );
        assert_eq!(parse("pfifo_fast\n"), Value::Text("pfifo_fast".into()));
        assert_eq!(parse("\n"), Value::Text(String::new()));
        assert_eq!(serde_json::to_string(&parse("1 2")).unwrap(), "[1,2]");
    }

    #[test]
    fn a_walk_keeps_dots_and_leaves_keys_out() {
        let dir = tempfile::tempdir().unwrap();
        let conf = dir.path().join("proc/sys/net/ipv4/conf/eth0.100");
        fs::create_dir_all(&conf).unwrap();
        fs::write(conf.join("rp_filter"), "2\n").unwrap();
        fs::write(dir.path().join("proc/sys/net/ipv4/tcp_fastopen_key"), "secret\n").unwrap();
        let found = walk(&Root::tree(dir.path()).unwrap(), "net").unwrap();
        assert_eq!(found["net/ipv4/conf/eth0.100/rp_filter"], Fact::ok(Value::Number(2)));
        assert!(found["net/ipv4/tcp_fastopen_key"].gap().unwrap().contains("not collected"));
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn this_host_has_settings() {
        assert!(read(&Root::host(), "net.ipv4.ip_default_ttl").unwrap().number().unwrap() > 0);
        let all = walk(&Root::host(), "net").unwrap();
        assert!(all.len() > 100, "{}", all.len());
        assert!(matches!(read(&Root::host(), "net.no.such"), Err(HostError::Missing { .. })));
    }
}
