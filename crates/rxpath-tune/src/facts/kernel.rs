//! The kernel's version, tick and boot parameters: what its own defaults depend on.

use std::fmt;

use rxpath_core::Fact;
use rxpath_host::Root;
use rxpath_host::error::fact;
use rxpath_host::read::environment::is_known_parameter;
use rxpath_host::read::kernel_config::{self, KernelConfig};

/// A kernel version, as far as defaults depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

impl Version {
    /// Reads a release such as `6.18.44-cloud`.
    pub fn parse(release: &str) -> Option<Self> {
        let mut parts = release.split(|c: char| !c.is_ascii_digit());
        Some(Self(parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    }
}

/// The kernel.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// `uname -r`.
    pub release: Fact<String>,
    /// Its version. **Caveat** distributions carry later code back into old versions.
    pub version: Fact<Version>,
    /// Ticks a second.
    pub hz: Fact<u32>,
    /// Boot parameters, in order.
    pub cmdline: Fact<Vec<String>>,
}

impl Kernel {
    /// The last value of boot parameter `name`; an empty text for a bare word, `None` when it is not given.
    ///
    /// **Caveat** a capture must keep the parameter ([`rxpath_host::read::environment::is_known_parameter`]).
    pub fn parameter(&self, name: &str) -> Option<&str> {
        debug_assert!(is_known_parameter(name), "captures drop the boot parameter {name}");
        self.cmdline.value()?.iter().rev().find_map(|word| {
            let rest = word.strip_prefix(name)?;
            if rest.is_empty() { Some("") } else { rest.strip_prefix('=') }
        })
    }

    /// Whether the kernel is known to be at least this version.
    pub(crate) fn is_since(&self, major: u32, minor: u32) -> bool {
        self.version.value().is_some_and(|version| *version >= Version(major, minor))
    }

    /// Whether the kernel is known to be older than this version.
    pub(crate) fn is_before(&self, major: u32, minor: u32) -> bool {
        self.version.value().is_some_and(|version| *version < Version(major, minor))
    }
}

pub(super) fn read(root: &Root, config: Option<&KernelConfig>) -> Kernel {
    let release = fact(root.value("/proc/sys/kernel/osrelease"));
    let without = "the kernel's release does not start with a version";
    let version = release.as_ref().and_then(|text| Fact::of(Version::parse(text), without));
    let cmdline = fact(root.value("/proc/cmdline")).map(|text| {
        // What follows ` -- ` goes to init.
        let kernel = text.split(" -- ").next().unwrap_or_default();
        kernel.split_ascii_whitespace().map(str::to_owned).collect()
    });
    Kernel { release, version, hz: kernel_config::tick(root, config).map(|tick| tick.hz), cmdline }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_versions() {
        assert_eq!(Version::parse("6.18.44-fc"), Some(Version(6, 18)));
        assert_eq!(Version::parse("4.18.0-425.el8.x86_64"), Some(Version(4, 18)));
        assert_eq!(Version::parse("6.1-rc3"), Some(Version(6, 1)));
        assert_eq!(Version::parse("next"), None);
        assert!(Version(6, 9) < Version(6, 18));
    }

    #[test]
    fn the_last_parameter_wins() {
        let kernel = Kernel {
            release: Fact::absent("test"),
            version: Fact::absent("test"),
            hz: Fact::absent("test"),
            cmdline: Fact::ok(vec!["iommu=off".into(), "threadirqs".into(), "iommu=pt".into()]),
        };
        assert_eq!(kernel.parameter("iommu"), Some("pt"));
        assert_eq!(kernel.parameter("threadirqs"), Some(""));
        assert_eq!(kernel.parameter("pci"), None);
        assert!(!kernel.is_since(4, 0) && !kernel.is_before(9, 0), "an unknown version is neither");
    }
}
