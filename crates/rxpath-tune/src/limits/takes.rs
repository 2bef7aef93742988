//! What a setting takes, and whether a value is that.

use rxpath_core::CpuList;
use rxpath_host::read::sysfs::device::parse_mask;
use serde::Deserialize;

/// Largest int of the kernel.
pub(super) const INT: i64 = i32::MAX as i64;

/// What a setting takes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Takes {
    /// One number, both ends included.
    Number(i64, i64),
    /// Three numbers from this one up that do not fall: smallest, default or pressure, largest.
    Triple(i64),
    /// First and last port of a range.
    Ports,
    /// Single ports and ranges of them, or nothing.
    PortList,
    /// Bits of CPUs or queues.
    Mask,
    /// One of these.
    OneOf(Vec<String>),
    /// A word, of those that the host offers.
    Word,
    /// A name, which may hold colons and commas.
    Name,
    /// A number of us, or `n/a`.
    Latency,
}

impl Takes {
    pub(super) fn check(&self, value: &str) -> Result<(), String> {
        match self {
            Self::Number(min, max) => number(value, *min, *max),
            Self::Triple(min) => triple(value, *min),
            Self::Ports => ports(value),
            Self::PortList => port_list(value),
            Self::Mask => bits(value).map(drop).ok_or_else(|| {
                format!("`{value}` is no mask: expected hexadecimal like 3 or 00000003")
            }),
            Self::OneOf(words) if words.iter().any(|word| word == value) => Ok(()),
            Self::OneOf(words) => Err(format!("`{value}`: expected {}", words.join(", "))),
            Self::Word => word(value, "_-."),
            Self::Name => word(value, "_-.:,"),
            Self::Latency if value == "n/a" => Ok(()),
            Self::Latency => number(value, 0, INT),
        }
    }
}

pub(super) fn number(value: &str, min: i64, max: i64) -> Result<(), String> {
    match value.trim().parse::<i64>() {
        Ok(number) if (min..=max).contains(&number) => Ok(()),
        _ => Err(format!("`{value}`: expected a number from {min} to {max}")),
    }
}

/// The CPUs or queues of a mask.
pub(super) fn bits(value: &str) -> Option<CpuList> {
    parse_mask(value).ok()
}

fn triple(value: &str, min: i64) -> Result<(), String> {
    let numbers: Result<Vec<i64>, _> = value.split_whitespace().map(str::parse).collect();
    let fit = |all: &Vec<i64>| {
        all.len() == 3 && all.is_sorted() && all.iter().all(|n| (min..=INT).contains(n))
    };
    numbers.ok().filter(fit).map(drop).ok_or_else(|| {
        format!(
            "`{value}`: expected three numbers from {min} to {INT} that do not fall: 4096 131072 6291456"
        )
    })
}

/// **Source** net/ipv4/sysctl_net_ipv4.c `ipv4_local_port_range`: 1 to 65535, the first not above the last.
fn ports(value: &str) -> Result<(), String> {
    let numbers: Result<Vec<u16>, _> = value.split_whitespace().map(str::parse).collect();
    match numbers.as_deref() {
        Ok([first, last]) if *first >= 1 && first <= last => Ok(()),
        _ => Err(format!("`{value}`: expected two ports from 1 to 65535, the lower one first")),
    }
}

/// **Source** kernel/sysctl.c `proc_do_large_bitmap`: `8080,9148-9160`.
fn port_list(value: &str) -> Result<(), String> {
    let is_range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        matches!((first.parse::<u16>(), last.parse::<u16>()), (Ok(a), Ok(b)) if a <= b)
    };
    if value.trim().is_empty() || value.trim().split(',').all(is_range) {
        return Ok(());
    }
    Err(format!("`{value}`: expected ports up to 65535 like 8080,9148-9160"))
}

fn word(value: &str, others: &str) -> Result<(), String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || others.contains(c);
    if !value.is_empty() && value.chars().all(fits) {
        return Ok(());
    }
    Err(format!("`{value}`: expected one word"))
}
