//! Energy that processors and their memory used, as they count it themselves.
//!
//! **Source** `/sys/class/powercap/intel-rapl:*` (Documentation/power/powercap/powercap.rst, Linux 6.18;
//! drivers/powercap/intel_rapl_common.c, for Intel and AMD). Only root reads it (since 5.10). Virtual machines mostly have
//! none.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Instant;

use crate::{HostError, Root};

const ZONES: &str = "/sys/class/powercap";
/// More than a package draws.
const MOST_UJ_PER_S: f64 = 1e9;

/// The counters of a machine, held open.
///
/// **Cost** of a reading: a register of each package is read on one of its CPUs.
#[derive(Debug, Default)]
pub struct EnergyMeter {
    zones: Vec<Zone>,
}

/// A package, or the memory at it.
#[derive(Debug)]
struct Zone {
    name: String,
    path: String,
    file: File,
    /// The counter starts again at 0 behind this value. **Unit** uJ.
    most_uj: u64,
    last_uj: u64,
    read_at: Instant,
    /// What it counted before it started again.
    before_uj: u64,
}

impl EnergyMeter {
    /// Opens what this machine has; nothing where it does not count energy.
    ///
    /// # Errors
    /// A counter that is there and cannot be opened: without root, mostly.
    pub fn open(root: &Root) -> Result<Self, HostError> {
        if !root.is_dir(ZONES) {
            return Ok(Self::default());
        }
        let mut zones = Vec::new();
        // Packages have zones below them, `intel-rapl:0:1`. Under `intel-rapl-mmio` they are listed a second time.
        for entry in root.list(ZONES)?.iter().filter(|entry| entry.starts_with("intel-rapl:")) {
            let directory = format!("{ZONES}/{entry}");
            let own = root.value(&format!("{directory}/name"))?;
            // A package counts its cores; not the memory, and `psys` counts the package again.
            let name = match (own.as_str(), entry.rsplit_once(':')) {
                (name, _) if name.starts_with("package-") => own,
                ("dram", Some((package, _))) => {
                    format!("{}-dram", root.value(&format!("{ZONES}/{package}/name"))?)
                }
                _ => continue,
            };
            let path = format!("{directory}/energy_uj");
            zones.push(Zone {
                name,
                file: root.open(&path)?,
                path,
                most_uj: root.number(&format!("{directory}/max_energy_range_uj"))?,
                last_uj: 0,
                read_at: Instant::now(),
                before_uj: 0,
            });
        }
        Ok(Self { zones })
    }

    /// Whether this machine has such counters.
    pub fn counts(&self) -> bool {
        !self.zones.is_empty()
    }

    /// What each package and its memory used since some instant, by name: `package-0`, `package-0-dram`. **Unit** uJ.
    ///
    /// # Errors
    /// A counter that cannot be read or is no number, or that may have started again twice since the last reading.
    pub fn read(&mut self) -> Result<BTreeMap<String, u64>, HostError> {
        // All of them, whatever becomes of the first.
        let read = self.zones.iter_mut().map(|zone| (zone.name.clone(), zone.read()));
        let read: Vec<(String, Result<u64, HostError>)> = read.collect();
        read.into_iter().map(|(name, used)| Ok((name, used?))).collect()
    }
}

impl Zone {
    fn read(&mut self) -> Result<u64, HostError> {
        let mut buffer = [0; 32];
        let length = self.file.read_at(&mut buffer, 0).map_err(|source| HostError::Io {
            op: "read",
            path: self.path.clone().into(),
            source,
        })?;
        let text = String::from_utf8_lossy(&buffer[..length]);
        let now: u64 = text.trim().parse().map_err(|_| {
            HostError::malformed(&self.path, 1, format!("expected a number, not `{}`", text.trim()))
        })?;
        if now < self.last_uj {
            self.before_uj = self.before_uj.saturating_add(self.most_uj);
        }
        self.last_uj = now;
        let since = std::mem::replace(&mut self.read_at, Instant::now()).elapsed();
        if since.as_secs_f64() * MOST_UJ_PER_S > self.most_uj as f64 {
            let what = format!("tell how often {} started again in {since:.0?}", self.path);
            return Err(HostError::unsupported(what, "readings closer to each other"));
        }
        Ok(self.before_uj.saturating_add(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::time::Duration;

    /// Zones as Documentation/power/powercap/powercap.rst lists them, of a server with one package.
    fn machine() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (zone, name, uj) in [
            ("intel-rapl:0", "package-0", "1000"),
            ("intel-rapl:0:0", "core", "400"),
            ("intel-rapl:0:1", "dram", "70"),
            ("intel-rapl:1", "psys", "9000"),
            ("intel-rapl-mmio:0", "package-0", "1000"),
        ] {
            let zone = dir.path().join(&ZONES[1..]).join(zone);
            fs::create_dir_all(&zone).unwrap();
            fs::write(zone.join("name"), format!("{name}\n")).unwrap();
            fs::write(zone.join("energy_uj"), format!("{uj}\n")).unwrap();
            fs::write(zone.join("max_energy_range_uj"), "2000000000000\n").unwrap();
        }
        dir
    }

    fn named(values: &[(&str, u64)]) -> BTreeMap<String, u64> {
        values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
    }

    #[test]
    fn a_package_and_its_memory_count_once_and_go_on_behind_the_counters_end() {
        let dir = machine();
        let mut meter = EnergyMeter::open(&Root::tree(dir.path()).unwrap()).unwrap();
        assert_eq!(meter.read().unwrap(), named(&[("package-0", 1000), ("package-0-dram", 70)]));
        fs::write(dir.path().join("sys/class/powercap/intel-rapl:0/energy_uj"), "300\n").unwrap();
        assert_eq!(
            meter.read().unwrap(),
            named(&[("package-0", 2_000_000_000_300), ("package-0-dram", 70)])
        );
        fs::write(dir.path().join("sys/class/powercap/intel-rapl:0/energy_uj"), "much\n").unwrap();
        let error = meter.read().unwrap_err().to_string();
        assert!(error.contains("intel-rapl:0/energy_uj") && error.contains("much"), "{error}");
        fs::write(dir.path().join("sys/class/powercap/intel-rapl:0/energy_uj"), "400\n").unwrap();
        for zone in &mut meter.zones {
            zone.read_at = Instant::now().checked_sub(Duration::from_secs(3000)).unwrap();
        }
        assert!(meter.read().unwrap_err().to_string().contains("closer to each other"));
        assert_eq!(meter.read().unwrap()["package-0"], 2_000_000_000_400, "one reading fails");
    }

    #[test]
    fn a_machine_that_counts_no_energy_has_none() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("sys")).unwrap();
        let mut meter = EnergyMeter::open(&Root::tree(dir.path()).unwrap()).unwrap();
        assert_eq!(meter.read().unwrap(), BTreeMap::new());
    }
}
