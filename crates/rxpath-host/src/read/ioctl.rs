//! ethtool as an ioctl. Some topics have nothing else: driver statistics with their names, driver information, which
//! fields are hashed, flow rules, coalescing of one queue, RSS, time stamps. The others are read this way where the kernel
//! does not report them over netlink: rings, channels, coalescing, features, pause, the link. They are not set this way.
//!
//! Generic netlink has no command for driver statistics (`ETHTOOL_MSG_STATS_GET` gives the standard
//! groups only; Documentation/networking/ethtool-netlink.rst, "Request translation").

mod features;
mod flow_hash;
mod length;
mod link;
mod link_mode;
mod per_queue;
mod rss;
mod rules;
mod settings;
mod stamps;
pub mod steering;

pub use features::{features, parse_feature_blocks, private_flags};
pub use flow_hash::{FlowHash, FlowKind, HashFields, flow_hash, parse_flow_hash};
pub use link::{eee, link_modes, link_port, link_state, parse_eee_words, parse_link_settings};
pub use per_queue::{parse_per_queue, queue_coalesce, queue_moderation, set_queue_moderation};
pub use rss::{parse_rxfh, rss};
pub use rules::{FlowRules, flow_rules};
pub use settings::{channels, coalesce, fec, group, group_limits, parse_fec_words, pause, rings};
pub use stamps::{StampConfig, set_stamp_config, stamp_config};

use std::os::fd::AsRawFd;

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::HostError;
use crate::netlink::genl::refused;
use crate::netlink::wire::{text, word32, word64};
use crate::read::netlink::link::NAME_MAX;

// linux/ethtool.h, linux/sockios.h
const SIOCETHTOOL: libc::Ioctl = 0x8946;
const ETHTOOL_GDRVINFO: u32 = 0x03;
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSTATS: u32 = 0x1d;
const ETH_SS_STATS: u32 = 1;
const STRING: usize = 32;
const DRVINFO: usize = 196;
const DRVINFO_STATS: usize = (4 + 5 * STRING + 12 + 4) / 4;

/// More statistics than any driver has; a larger number is a broken driver.
const STATS_MAX: usize = 65_536;

/// Which driver runs a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DriverInfo {
    /// `veth`, `ixgbe`, ...
    pub driver: String,
    /// Its version; the kernel's for most drivers.
    pub version: String,
    /// Firmware; empty for none.
    pub firmware: String,
    /// PCI address and the like; empty for virtual devices.
    pub bus: String,
    /// How many driver statistics there are.
    pub statistics_count: u32,
}

/// `struct ifreq` as `SIOCETHTOOL` reads it.
#[repr(C)]
struct Request {
    name: [u8; NAME_MAX + 1],
    data: *mut libc::c_void,
    /// The kernel copies a whole `struct ifreq` (40 bytes on 64-bit).
    rest: [u8; 24 - size_of::<*mut libc::c_void>()],
}

/// Sends one ethtool command; a refusal says whether privilege or the driver is missing.
///
/// `buffer` begins with the command; one that is shorter than that command makes the kernel write is refused.
pub(crate) fn call(op: &str, dev: &str, buffer: &mut [u8]) -> Result<(), HostError> {
    send(SIOCETHTOOL, op, dev, buffer)
}

/// As [`call`], for a request: a refusal is reported in the kernel's words.
pub(super) fn order(op: &str, dev: &str, buffer: &mut [u8]) -> Result<(), HostError> {
    issue(SIOCETHTOOL, op, dev, buffer)
}

fn send(
    request_number: libc::Ioctl,
    op: &str,
    dev: &str,
    buffer: &mut [u8],
) -> Result<(), HostError> {
    issue(request_number, op, dev, buffer).map_err(|error| refused(&format!("{op} {dev}"), error))
}

fn issue(
    request_number: libc::Ioctl,
    op: &str,
    dev: &str,
    buffer: &mut [u8],
) -> Result<(), HostError> {
    if dev.is_empty() || dev.len() > NAME_MAX {
        return Err(HostError::kernel(format!("{op} {dev}"), libc::ENODEV));
    }
    if length::least(request_number, buffer).is_none_or(|least| buffer.len() < least) {
        return Err(HostError::malformed(
            "ethtool",
            0,
            format!("{op} {dev}: the buffer is too short"),
        ));
    }
    // Any socket carries the question; one that is not bound takes no port.
    let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)
        .map_err(|errno| HostError::kernel("open a socket", errno as i32))?;
    let mut request = Request {
        name: [0; NAME_MAX + 1],
        data: buffer.as_mut_ptr().cast(),
        rest: [0; 24 - size_of::<*mut libc::c_void>()],
    };
    request.name[..dev.len()].copy_from_slice(dev.as_bytes());
    // SAFETY: `request` is a whole ifreq; its data points to `buffer`, which outlives the call and is
    // as long as the command in its first word makes the kernel write (`length::least`).
    let rc = unsafe { libc::ioctl(socket.as_raw_fd(), request_number, &raw mut request) };
    if rc >= 0 {
        return Ok(());
    }
    Err(HostError::last_os(format!("{op} {dev}")))
}

/// The answer to a command that fills a structure of so many words.
fn words(what: &str, dev: &str, command: u32, count: usize) -> Result<Vec<u8>, HostError> {
    let mut buffer = vec![0; count * 4];
    put(&mut buffer, &[command]);
    call(&format!("read {what} of"), dev, &mut buffer)?;
    Ok(buffer)
}

/// Writes 32-bit words at the beginning of a buffer.
fn put(buffer: &mut [u8], words: &[u32]) {
    for (at, word) in buffer.as_chunks_mut().0.iter_mut().zip(words) {
        *at = word.to_ne_bytes();
    }
}

/// Driver information of a device of this thread's namespace.
///
/// **Source** net/ethtool/ioctl.c `ethtool_get_drvinfo`.
pub fn driver_info(dev: &str) -> Result<DriverInfo, HostError> {
    let mut buffer = [0; DRVINFO];
    buffer[..4].copy_from_slice(&ETHTOOL_GDRVINFO.to_ne_bytes());
    call("read the driver of", dev, &mut buffer)?;
    Ok(parse_info(&buffer))
}

fn parse_info(buffer: &[u8; DRVINFO]) -> DriverInfo {
    let part = |n: usize| text(&buffer[4 + n * STRING..4 + (n + 1) * STRING]);
    DriverInfo {
        driver: part(0),
        version: part(1),
        firmware: part(2),
        bus: part(3),
        statistics_count: word32(buffer, DRVINFO_STATS).unwrap_or_default(),
    }
}

/// Driver statistics by name, in the driver's order.
///
/// **Source** net/ethtool/ioctl.c `ethtool_get_stats`. **Cost** some drivers ask the hardware (ms).
/// **Caveat** a name that a driver repeats gets `#2`, `#3`, ... behind it.
pub fn driver_stats(dev: &str) -> Result<Vec<(String, u64)>, HostError> {
    let count = driver_info(dev)?.statistics_count as usize;
    if count == 0 {
        return Ok(Vec::new());
    }
    if count > STATS_MAX {
        let why = format!("{dev} claims {count} statistics");
        return Err(HostError::malformed("ethtool", 0, why));
    }
    // Room for a driver that gets queues between the calls: old kernels write what they have then.
    let room = 2 * count + 4096;
    let mut names = vec![0; 12 + room * STRING];
    for (at, word) in [ETHTOOL_GSTRINGS, ETH_SS_STATS, count as u32].into_iter().enumerate() {
        names[at * 4..at * 4 + 4].copy_from_slice(&word.to_ne_bytes());
    }
    call("read the statistics' names of", dev, &mut names)?;
    let mut values = vec![0; 8 + room * 8];
    values[..4].copy_from_slice(&ETHTOOL_GSTATS.to_ne_bytes());
    values[4..8].copy_from_slice(&(count as u32).to_ne_bytes());
    call("read the statistics of", dev, &mut values)?;
    Ok(pair(&names, &values))
}

/// Pairs a `struct ethtool_gstrings` with a `struct ethtool_stats`.
pub fn pair(names: &[u8], values: &[u8]) -> Vec<(String, u64)> {
    let names_count = word32(names, 2).unwrap_or_default() as usize;
    let values_count = word32(values, 1).unwrap_or_default() as usize;
    let mut found: Vec<(String, u64)> = Vec::new();
    let mut seen = std::collections::HashMap::<String, u32>::new();
    for n in 0..names_count.min(values_count).min(STATS_MAX) {
        let name = names.get(12 + n * STRING..12 + (n + 1) * STRING).map(text);
        let (Some(name), Some(value)) = (name, word64(values, n + 1)) else { break };
        let repeats = seen.entry(name.clone()).or_default();
        *repeats += 1;
        found.push((if *repeats > 1 { format!("{name}#{repeats}") } else { name }, value));
    }
    found
}

#[cfg(test)]
mod tests {
    mod header;

    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_and_values_are_paired_up_to_the_shorter() {
        let mut names = [ETHTOOL_GSTRINGS, ETH_SS_STATS, 3].map(u32::to_ne_bytes).concat();
        for name in ["rx_drops", "rx_drops", "rx_more"] {
            let mut field = name.as_bytes().to_vec();
            field.resize(STRING, 0);
            names.extend(field);
        }
        let mut values = [ETHTOOL_GSTATS, 2].map(u32::to_ne_bytes).concat();
        values.extend([5u64, 6].map(u64::to_ne_bytes).concat());
        let expected = [("rx_drops".to_owned(), 5), ("rx_drops#2".to_owned(), 6)];
        assert_eq!(pair(&names, &values), expected);
    }

    #[test]
    fn a_device_that_is_not_there_is_an_error() {
        assert!(driver_info("rxp-none").is_err());
        assert!(driver_info("a-name-that-is-far-too-long").is_err());
    }

    proptest! {
        #[test]
        fn garbage_never_panics(
            names in proptest::collection::vec(any::<u8>(), 0..200),
            values in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            let _ = pair(&names, &values);
        }
    }
}
