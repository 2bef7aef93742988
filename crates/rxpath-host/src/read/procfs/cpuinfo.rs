//! `/proc/cpuinfo`: model and features. What it holds depends on the architecture.
//!
//! **Source** fs/proc/cpuinfo.c with arch/x86/kernel/cpu/proc.c and arch/arm64/kernel/cpuinfo.c.

use std::collections::BTreeMap;

use crate::parse::{ParseError, shorten};

/// Path of the file.
pub const PATH: &str = "/proc/cpuinfo";

/// What is read of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuInfo {
    /// Number of CPUs listed.
    pub cpus: usize,
    /// Fields of the first CPU, as the kernel names them.
    pub first: BTreeMap<String, String>,
}

impl CpuInfo {
    /// The model in words: x86 `model name`, arm64 implementer and part number.
    pub fn model(&self) -> Option<String> {
        let field = |name: &str| self.first.get(name);
        field("model name").or_else(|| field("cpu model")).cloned().or_else(|| {
            let part = field("CPU part")?;
            Some(format!("implementer {} part {part}", field("CPU implementer")?))
        })
    }

    /// Whether the CPU has `flag` (x86 `flags`, arm64 `Features`).
    pub fn has(&self, flag: &str) -> bool {
        let flags = self.first.get("flags").or_else(|| self.first.get("Features"));
        flags.is_some_and(|flags| flags.split_ascii_whitespace().any(|f| f == flag))
    }
}

/// Reads the file's text.
///
/// **Errors** a line that is no `name : value`, no CPU at all.
pub fn parse(text: &str) -> Result<CpuInfo, ParseError> {
    let mut info = CpuInfo::default();
    for (at, line) in text.lines().enumerate().map(|(at, line)| (at + 1, line)) {
        if line.trim().is_empty() {
            continue;
        }
        let Some((name, value)) = line.split_once(':') else {
            return Err(ParseError::new(at, format!("`{}` is not `name : value`", shorten(line))));
        };
        let (name, value) = (name.trim(), value.trim());
        if name == "processor" {
            info.cpus += 1;
        }
        if info.cpus <= 1 {
            info.first.entry(name.to_owned()).or_insert_with(|| value.to_owned());
        }
    }
    if info.cpus == 0 { Err(ParseError::new(0, "lists no processor")) } else { Ok(info) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_architectures_name_their_model() {
        let x86 = parse(
            "processor\t: 0\nmodel name\t: AMD EPYC\nflags\t\t: fpu hypervisor\n\nprocessor\t: 1\n",
        )
        .unwrap();
        assert_eq!((x86.cpus, x86.model().as_deref()), (2, Some("AMD EPYC")));
        assert!(x86.has("hypervisor") && !x86.has("hyper"));
        let arm = parse("processor : 0\nCPU implementer : 0x41\nCPU part : 0xd0c\n").unwrap();
        assert_eq!(arm.model().as_deref(), Some("implementer 0x41 part 0xd0c"));
    }

    #[test]
    fn what_is_no_cpuinfo_is_refused() {
        assert!(parse("").is_err());
        assert_eq!(parse("processor : 0\ngarbage\n").unwrap_err().line, 2);
    }
}
