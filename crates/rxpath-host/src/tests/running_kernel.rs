//! What the running kernel's own types say, for tests that compare our numbers with them.

use std::collections::BTreeMap;

/// Enumerators of the running kernel whose name begins with `prefix`; `None`, and the test is named as skipped, where the
/// kernel carries no types (`CONFIG_DEBUG_INFO_BTF`).
///
/// # Panics
/// When the types are there and cannot be read.
pub(crate) fn enumerators(prefix: &str) -> Option<BTreeMap<String, u32>> {
    let path = "/sys/kernel/btf/vmlinux";
    match std::fs::read(path) {
        Ok(btf) => Some(parse(&btf, prefix).expect("types that end where they say")),
        Err(error) => {
            crate::skip::skip("kernel_types", &format!("{path}: {error}"));
            None
        }
    }
}

/// Enumerators in a kernel's BTF (Documentation/bpf/btf.rst).
fn parse(btf: &[u8], prefix: &str) -> Option<BTreeMap<String, u32>> {
    const ENUM: u32 = 6;
    let word = |at: usize| Some(u32::from_ne_bytes(*btf.get(at..)?.first_chunk()?));
    let header = word(4)? as usize;
    let (types, types_end) = (header + word(8)? as usize, header + (word(8)? + word(12)?) as usize);
    let strings = header + word(16)? as usize;
    let name = |at: u32| {
        let text = btf.get(strings + at as usize..)?.split(|byte| *byte == 0).next()?;
        str::from_utf8(text).ok()
    };
    let (mut found, mut at) = (BTreeMap::new(), types);
    while at < types_end {
        let info = word(at + 4)?;
        let (kind, count) = (info >> 24 & 0x1f, (info & 0xffff) as usize);
        at += 12;
        if kind == ENUM {
            for one in 0..count {
                let text = name(word(at + one * 8)?)?;
                if text.starts_with(prefix) {
                    found.insert(text.to_owned(), word(at + one * 8 + 4)?);
                }
            }
        }
        at += match kind {
            // int, variable, declaration tag
            1 | 14 | 17 => 4,
            // array
            3 => 12,
            // struct, union, data section, 64-bit enumeration
            4 | 5 | 15 | 19 => count * 12,
            // enumeration, parameters
            ENUM | 13 => count * 8,
            _ => 0,
        };
    }
    Some(found)
}
