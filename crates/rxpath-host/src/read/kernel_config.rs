//! How the running kernel was built: `CONFIG_*` from `/proc/config.gz` or `/boot/config-RELEASE`.

use std::collections::BTreeMap;
use std::io::Read;

use rxpath_core::Fact;
use serde::Serialize;

use crate::parse::{ParseError, shorten};
use crate::{HostError, Root};

/// The largest config after unpacking; Debian's has 280 kB.
const MAX_CONFIG_BYTES: u64 = 16 << 20;

/// A kernel's options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelConfig {
    /// The file it was read from.
    pub source: String,
    /// Value by name without `CONFIG_`.
    pub options: BTreeMap<String, String>,
}

impl KernelConfig {
    /// The option's value (`y`, `m`, `250`, a text without its quotes); `None` when it is not set.
    ///
    /// `name` is without `CONFIG_`.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.options.get(name).map(String::as_str)
    }

    /// Whether the option is built in or a module.
    pub fn has(&self, name: &str) -> bool {
        matches!(self.get(name), Some("y" | "m"))
    }

    /// The tick: `CONFIG_HZ`.
    pub fn hz(&self) -> Option<u32> {
        self.get("HZ")?.parse().ok()
    }
}

/// Reads the text of a config; options "is not set" are left out.
///
/// **Errors** a line that is neither a comment nor `CONFIG_NAME=value`, no option at all.
pub fn parse(text: &str) -> Result<KernelConfig, ParseError> {
    let mut config = KernelConfig::default();
    for (at, line) in text.lines().enumerate().map(|(at, line)| (at + 1, line.trim())) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, value) =
            line.strip_prefix("CONFIG_").and_then(|option| option.split_once('=')).ok_or_else(
                || ParseError::new(at, format!("`{}` is not CONFIG_NAME=value", shorten(line))),
            )?;
        let value = value.strip_prefix('"').and_then(|v| v.strip_suffix('"')).unwrap_or(value);
        config.options.insert(name.to_owned(), value.to_owned());
    }
    if config.options.is_empty() { Err(ParseError::new(0, "sets no option")) } else { Ok(config) }
}

/// Unpacks and reads a `config.gz`.
///
/// **Errors** what is no gzip or too large when unpacked, and as [`parse`].
pub fn parse_gz(bytes: &[u8]) -> Result<KernelConfig, ParseError> {
    let mut text = String::new();
    let read = flate2::read::MultiGzDecoder::new(bytes)
        .take(MAX_CONFIG_BYTES + 1)
        .read_to_string(&mut text);
    match read {
        Ok(size) if size as u64 > MAX_CONFIG_BYTES => {
            Err(ParseError::new(0, format!("unpacks to more than {} MiB", MAX_CONFIG_BYTES >> 20)))
        }
        Ok(_) => parse(&text),
        Err(error) => Err(ParseError::new(0, format!("cannot be unpacked: {error}"))),
    }
}

/// Reads the running kernel's config: `/proc/config.gz` first, then the files that distributions install.
///
/// **Errors** [`HostError::Missing`] when there is none; a broken one is reported, not skipped.
pub fn read(root: &Root) -> Result<KernelConfig, HostError> {
    const GZ: &str = "/proc/config.gz";
    const RELEASE: &str = "/proc/sys/kernel/osrelease";
    let packed = root.bytes(GZ);
    match packed.and_then(|bytes| parse_gz(&bytes).map_err(|e| e.at(root.path(GZ)))) {
        Ok(config) => return Ok(KernelConfig { source: GZ.into(), ..config }),
        Err(HostError::Missing { .. }) => {}
        Err(other) => return Err(other),
    }
    let release = root.value(RELEASE)?;
    if release.contains('/') {
        return Err(HostError::malformed(RELEASE, 1, "a release with a slash"));
    }
    let candidates = [
        format!("/boot/config-{release}"),
        format!("/usr/lib/modules/{release}/config"),
        format!("/lib/modules/{release}/config"),
    ];
    for path in candidates {
        match root.parsed(&path, parse) {
            Ok(config) => return Ok(KernelConfig { source: path, ..config }),
            Err(HostError::Missing { .. }) => {}
            Err(other) => return Err(other),
        }
    }
    Err(HostError::Missing { path: format!("/proc/config.gz or /boot/config-{release}").into() })
}

/// Ticks a second, and how that is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Tick {
    /// `CONFIG_HZ`.
    pub hz: u32,
    /// `config`, or the clock that told.
    pub source: &'static str,
}

/// The tick by the config, else by the clock: `CLOCK_MONOTONIC_COARSE` advances once a tick, and its
/// resolution is the tick's length (kernel/time/posix-timers.c, `posix_get_coarse_res`).
pub fn tick(root: &Root, config: Option<&KernelConfig>) -> Fact<Tick> {
    if let Some(hz) = config.and_then(KernelConfig::hz) {
        return Fact::ok(Tick { hz, source: "config" });
    }
    if !root.is_live() {
        return Fact::absent("not in a captured tree");
    }
    match nix::time::clock_getres(nix::time::ClockId::CLOCK_MONOTONIC_COARSE) {
        Ok(length) => {
            let length_ns = length.tv_nsec().max(1);
            let hz = ((1_000_000_000 + length_ns / 2) / length_ns) as u32;
            Fact::ok(Tick { hz, source: "resolution of CLOCK_MONOTONIC_COARSE" })
        }
        Err(errno) => {
            HostError::kernel("ask for the coarse clock's resolution", errno as i32).into_gap()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;

    const TEXT: &str = "# Linux/x86 6.18 Kernel Configuration\nCONFIG_HZ=250\n# CONFIG_IRQ_TIME_ACCOUNTING is not set\nCONFIG_NF_TABLES=m\nCONFIG_LOCALVERSION=\"-x\"\n";

    #[test]
    fn options_are_read() {
        let config = parse(TEXT).unwrap();
        assert_eq!(
            (config.hz(), config.get("LOCALVERSION"), config.options.len()),
            (Some(250), Some("-x"), 3)
        );
        assert!(config.has("NF_TABLES") && !config.has("IRQ_TIME_ACCOUNTING") && !config.has("HZ"));
    }

    #[test]
    fn a_packed_config_is_bounded() {
        let pack = |text: &[u8]| {
            let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            gz.write_all(text).unwrap();
            gz.finish().unwrap()
        };
        assert_eq!(parse_gz(&pack(TEXT.as_bytes())).unwrap().hz(), Some(250));
        let bomb = pack(&vec![b'#'; MAX_CONFIG_BYTES as usize + 1]);
        assert!(parse_gz(&bomb).unwrap_err().why.contains("more than 16 MiB"));
        assert!(parse_gz(b"not gzip").is_err());
        assert!(parse("echo hello\n").is_err());
    }

    #[test]
    fn boot_is_the_second_choice_and_none_is_missing() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("proc/sys/kernel")).unwrap();
        fs::create_dir_all(dir.path().join("boot")).unwrap();
        fs::write(dir.path().join("proc/sys/kernel/osrelease"), "4.18.0-x\n").unwrap();
        let root = Root::tree(dir.path()).unwrap();
        assert!(matches!(read(&root), Err(HostError::Missing { .. })));
        fs::write(dir.path().join("boot/config-4.18.0-x"), TEXT).unwrap();
        assert_eq!(read(&root).unwrap().source, "/boot/config-4.18.0-x");
        fs::write(dir.path().join("proc/config.gz"), "broken").unwrap();
        assert!(matches!(read(&root), Err(HostError::Malformed { .. })));
    }
}
