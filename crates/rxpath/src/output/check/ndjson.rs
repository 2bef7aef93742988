//! `rxpath check` as one line a host: a fleet's reports are one file then, which other programs read at once.

use rxpath_core::Envelope;
use rxpath_host::Root;
use rxpath_tune::HostFacts;
use serde::Serialize;

/// Whose report it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReportIdentity {
    /// Name of the host; none in a captured tree without it.
    host: Option<String>,
    /// This boot of it: counters since boot can be compared within one.
    boot_id: Option<String>,
    /// When the report was made, in UTC.
    time: String,
    /// Version of rxpath.
    version: &'static str,
    /// Fingerprint of the settings: hosts that are set alike have the same.
    fingerprint: String,
}

impl ReportIdentity {
    /// That of the host with these facts, below this root.
    pub fn of(root: &Root, facts: &HostFacts) -> Self {
        Self {
            host: root.value("/proc/sys/kernel/hostname").ok(),
            boot_id: root.value("/proc/sys/kernel/random/boot_id").ok(),
            time: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            version: env!("CARGO_PKG_VERSION"),
            fingerprint: facts.fingerprint().digest,
        }
    }
}

/// The object of `--json`, and whose it is.
#[derive(Debug, Serialize)]
pub struct ReportLine<S, R> {
    /// Whose report it is.
    #[serde(flatten)]
    pub identity: ReportIdentity,
    /// The report.
    #[serde(flatten)]
    pub report: Envelope<S, R>,
}
