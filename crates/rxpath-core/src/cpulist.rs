//! CPU lists as the kernel writes them: `0-3,8,10-11`.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::ParseUnitError;

/// CPUs in the order given. Repeats are kept: `--cpu 1,1` means two threads on CPU 1.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct CpuList(pub Vec<u32>);

/// More CPUs than any kernel has (`NR_CPUS` is at most 8192); a list above it is a typing error.
const MAX_CPU: u32 = 16_383;

impl CpuList {
    /// The CPUs, in order.
    pub fn as_slice(&self) -> &[u32] {
        &self.0
    }

    /// Whether the list names no CPU.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The bitmap in the form of sysfs masks (`rps_cpus`, `smp_affinity`): 32-bit groups of hex, comma between.
    pub fn to_mask(&self) -> String {
        let groups = self.0.iter().max().map_or(1, |cpu| cpu / 32 + 1);
        let mut words = vec![0u32; groups as usize];
        for cpu in &self.0 {
            words[(cpu / 32) as usize] |= 1 << (cpu % 32);
        }
        words.iter().rev().map(|word| format!("{word:08x}")).collect::<Vec<_>>().join(",")
    }
}

impl FromStr for CpuList {
    type Err = ParseUnitError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = |why: &str| ParseUnitError::new(text, "a CPU list", why, "0,2-3");
        let mut cpus = Vec::new();
        for part in text.trim().split(',').filter(|part| !part.trim().is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let number = |s: &str| s.trim().parse::<u32>().map_err(|_| bad("not a CPU number"));
            let (first, last) = (number(first)?, number(last)?);
            if last < first {
                return Err(bad("the range runs backwards"));
            }
            if last > MAX_CPU {
                return Err(bad("no kernel has that many CPUs"));
            }
            // Ranges may overlap: a short text could name more CPUs than there is memory for.
            if cpus.len() + (last - first) as usize > MAX_CPU as usize {
                return Err(bad("it names more CPUs than any kernel has"));
            }
            cpus.extend(first..=last);
        }
        Ok(Self(cpus))
    }
}

impl fmt::Display for CpuList {
    /// Runs of three and more are folded: `0-3,8,9`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut at = 0;
        while at < self.0.len() {
            let mut end = at;
            while end + 1 < self.0.len() && self.0[end + 1] == self.0[end] + 1 {
                end += 1;
            }
            if at > 0 {
                f.write_str(",")?;
            }
            if end >= at + 2 {
                write!(f, "{}-{}", self.0[at], self.0[end])?;
                at = end + 1;
            } else {
                write!(f, "{}", self.0[at])?;
                at += 1;
            }
        }
        Ok(())
    }
}

crate::as_text!(CpuList);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_the_kernels_form() {
        assert_eq!("0-3,8".parse::<CpuList>().unwrap().0, [0, 1, 2, 3, 8]);
        assert_eq!("\n".parse::<CpuList>().unwrap().0, Vec::<u32>::new());
    }

    #[test]
    fn refuses_what_is_not_a_list() {
        for text in ["3-1", "a", "1-", "-1", "0-99999999", "1;2"] {
            assert!(text.parse::<CpuList>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_list_is_as_long_as_the_largest_kernels_at_most() {
        assert_eq!("0-16383".parse::<CpuList>().unwrap().0.len(), 16_384);
        for text in ["0-16383,0", "0-9999,0-9999", &"0-16383,".repeat(100_000)] {
            let error = text.parse::<CpuList>().unwrap_err();
            assert!(error.to_string().contains("more CPUs than any kernel has"), "{error}");
        }
    }

    #[test]
    fn masks_are_sysfs_masks() {
        assert_eq!(CpuList(vec![0, 1]).to_mask(), "00000003");
        assert_eq!(CpuList(vec![33]).to_mask(), "00000002,00000000");
        assert_eq!(CpuList(vec![]).to_mask(), "00000000");
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(cpus in proptest::collection::vec(0u32..400, 0..40)) {
            let list = CpuList(cpus);
            prop_assert_eq!(list.to_string().parse::<CpuList>().unwrap(), list);
        }

        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _ = text.parse::<CpuList>();
        }
    }
}
