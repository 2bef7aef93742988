//! Shell patterns as files of settings use them: `*`, `?`, `[abc]`, `[a-z]`, `[!abc]`, `[[:alpha:]]`, `\x`.
//!
//! The question it answers: *does this pattern name this text?* systemd reads `.link` files by `fnmatch(3)` without flags,
//! and systemd-sysctl and udev read theirs by `glob(3)`, which asks it for each part of a path.

use std::ffi::CString;

/// Whether a text holds a sign that makes it a pattern (systemd: src/basic/glob-util.h `GLOB_CHARS`).
pub fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// Whether the pattern names the whole text.
pub fn is_match(pattern: &str, text: &str) -> bool {
    let (Ok(pattern), Ok(text)) = (CString::new(pattern), CString::new(text)) else { return false };
    // SAFETY: both are texts with a closing NUL that live beyond the call.
    unsafe { libc::fnmatch(pattern.as_ptr(), text.as_ptr(), 0) == 0 }
}

/// The paths that a pattern names, by the names in each directory; a part without a pattern need not be there.
pub fn expand(pattern: &str, list: impl Fn(&str) -> Vec<String>) -> Vec<String> {
    let mut found = vec![String::new()];
    for part in pattern.trim_start_matches('/').split('/') {
        let below = |dir: String| {
            let names = if is_pattern(part) {
                let mut names = list(if dir.is_empty() { "/" } else { &dir });
                names.retain(|name| is_match(part, name));
                names
            } else {
                vec![part.to_owned()]
            };
            names.into_iter().map(move |name| format!("{dir}/{name}")).collect::<Vec<_>>()
        };
        found = found.into_iter().flat_map(below).collect();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn patterns_name_whole_texts() {
        for (pattern, text, is_named) in [
            ("eth*", "eth0", true),
            ("eth?", "eth10", false),
            ("*a*b", "xaxxb", true),
            ("*a*b", "xaxxbc", false),
            ("*", "", true),
            ("", "a", false),
            ("eth[0-9]", "eth7", true),
            ("eth[!0-9]", "ethx", true),
            ("[]a]", "]", true),
            ("[[:digit:][:upper:]]x", "Bx", true),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("a", "a\0", false),
        ] {
            assert_eq!(is_match(pattern, text), is_named, "{pattern} {text}");
        }
        assert!(is_pattern("eth[01]") && !is_pattern("eth0.1!"));
    }

    /// A pattern of somebody else's capture must not take forever.
    #[test]
    fn many_stars_end() {
        assert!(!is_match(&"*a".repeat(50), &"a".repeat(49)));
        assert!(!is_match(&("a*".repeat(50) + "b"), &"a".repeat(5000)));
    }

    proptest! {
        #[test]
        fn garbage_never_panics(pattern in "[]\\[*?!^a:.=\\\\é-]{0,12}", text in "\\PC{0,12}") {
            let _ = is_match(&pattern, &text);
        }
    }
}
