//! Shell patterns as files of settings use them: `*`, `?`, `[abc]`, `[a-z]`, `[!abc]`, `[[:alpha:]]`, `\x`.
//!
//! The question it answers: *does this pattern name this text?* It is what `fnmatch(3)` answers without flags in the C
//! locale, by which systemd reads `.link` files, and for one part of a path `glob(3)`, by which systemd-sysctl and udev
//! read theirs. Collating symbols (`[[.x.]]`) and equivalence classes (`[[=x=]]`) name nothing here.

/// Whether a text holds a sign that makes it a pattern (systemd: src/basic/glob-util.h `GLOB_CHARS`).
pub fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// Whether the pattern names the whole text. Quadratic at worst: a star that failed is taken up once more at the next byte.
pub fn is_match(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        if pattern.get(p) == Some(&b'*') {
            star = Some((p, t));
            p += 1;
        } else if let Some(next) = one(pattern, p, text[t]) {
            p = next;
            t += 1;
        } else if let Some((at, from)) = star {
            p = at + 1;
            t = from + 1;
            star = Some((at, from + 1));
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

/// Where the pattern goes on behind the sign at `at`, when that names `byte`.
fn one(pattern: &[u8], at: usize, byte: u8) -> Option<usize> {
    match pattern.get(at)? {
        b'?' => Some(at + 1),
        b'[' => match class(pattern, at + 1, byte) {
            Some((end, names)) => names.then_some(end),
            // Without its end a bracket is a bracket.
            None => (byte == b'[').then_some(at + 1),
        },
        b'\\' => (*pattern.get(at + 1)? == byte).then_some(at + 2),
        sign => (*sign == byte).then_some(at + 1),
    }
}

/// Where the class that begins behind its bracket at `at` ends, and whether it names `byte`; `None` without an end.
fn class(pattern: &[u8], at: usize, byte: u8) -> Option<(usize, bool)> {
    let is_inverted = matches!(pattern.get(at)?, b'!' | b'^');
    let first = at + usize::from(is_inverted);
    let (mut at, mut names) = (first, false);
    loop {
        let sign = *pattern.get(at)?;
        // A closing bracket that comes first is a member.
        if sign == b']' && at > first {
            return Some((at + 1, names != is_inverted));
        }
        if sign == b'[' && matches!(pattern.get(at + 1), Some(b':' | b'.' | b'=')) {
            let (end, is_named) = named(pattern, at + 1, byte)?;
            names |= is_named;
            at = end;
            continue;
        }
        let (low, next) = member(pattern, at)?;
        let is_range = pattern.get(next) == Some(&b'-') && *pattern.get(next + 1)? != b']';
        let (high, next) = if is_range { member(pattern, next + 1)? } else { (low, next) };
        names |= (low..=high).contains(&byte);
        at = next;
    }
}

/// A member of a class and where it ends.
fn member(pattern: &[u8], at: usize) -> Option<(u8, usize)> {
    match pattern.get(at)? {
        b'\\' => Some((*pattern.get(at + 1)?, at + 2)),
        sign => Some((*sign, at + 1)),
    }
}

/// Where `:alpha:]` and the like end, and whether it names `byte`; `at` is the sign behind the bracket.
fn named(pattern: &[u8], at: usize, byte: u8) -> Option<(usize, bool)> {
    let sign = *pattern.get(at)?;
    let rest = pattern.get(at + 1..)?;
    let length = rest.windows(2).position(|two| two == [sign, b']'])?;
    let is_named = sign == b':'
        && match &rest[..length] {
            b"alnum" => byte.is_ascii_alphanumeric(),
            b"alpha" => byte.is_ascii_alphabetic(),
            b"blank" => matches!(byte, b' ' | b'\t'),
            b"cntrl" => byte.is_ascii_control(),
            b"digit" => byte.is_ascii_digit(),
            b"graph" => byte.is_ascii_graphic(),
            b"lower" => byte.is_ascii_lowercase(),
            b"print" => byte.is_ascii_graphic() || byte == b' ',
            b"punct" => byte.is_ascii_punctuation(),
            b"space" => byte.is_ascii_whitespace() || byte == 0x0b,
            b"upper" => byte.is_ascii_uppercase(),
            b"xdigit" => byte.is_ascii_hexdigit(),
            _ => false,
        };
    Some((at + 1 + length + 2, is_named))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::ffi::CString;

    /// What the C library says.
    fn fnmatch(pattern: &str, text: &str) -> bool {
        let (pattern, text) = (CString::new(pattern).unwrap(), CString::new(text).unwrap());
        // SAFETY: both are texts with a closing NUL that live beyond the call.
        unsafe { libc::fnmatch(pattern.as_ptr(), text.as_ptr(), 0) == 0 }
    }

    #[test]
    fn patterns_name_what_the_c_library_says() {
        for (pattern, text) in [
            ("eth*", "eth0"),
            ("eth?", "eth10"),
            ("*a*b", "xaxxb"),
            ("*a*b", "xaxxbc"),
            ("*", ""),
            ("", ""),
            ("", "a"),
            ("eth[0-9]", "eth7"),
            ("eth[0-9]", "ethx"),
            ("eth[!0-9]", "ethx"),
            ("eth[^0-9]", "eth7"),
            ("e[mnt]p*[!0]", "enp3s1"),
            ("[]a]", "]"),
            ("[!]a]", "]"),
            ("[a-]", "-"),
            ("[-a]", "-"),
            ("[c-a]", "b"),
            ("[[:digit:][:upper:]]x", "Bx"),
            ("[[:alpha:]-]", "-"),
            ("[[:nothing:]]", "n"),
            ("[a\\]b]", "]"),
            ("[\\a-\\c]", "b"),
            ("\\*", "*"),
            ("\\*", "a"),
            ("a[", "a["),
            ("[abc", "[abc"),
            ("[!", "[!"),
            ("a\\", "a"),
            ("[[]", "["),
        ] {
            assert_eq!(is_match(pattern, text), fnmatch(pattern, text), "{pattern} {text}");
        }
        assert!(is_pattern("eth[01]") && !is_pattern("eth0.1!"));
    }

    /// Patterns whose brackets end: those without an end are read in several ways.
    fn pattern() -> impl Strategy<Value = String> {
        let member = prop_oneof!["[a-d]", "[a-d]-[a-d]", Just("\\\\]".to_owned())];
        let class = (
            prop_oneof![Just(""), Just("!"), Just("^")],
            "]?",
            "-?",
            prop::collection::vec(member, 1..4),
        )
            .prop_map(|(sign, first, dash, members)| {
                format!("[{sign}{first}{}{dash}]", members.concat())
            });
        let part = prop_oneof![
            4 => "[a-d]",
            2 => Just("*".to_owned()),
            1 => Just("?".to_owned()),
            1 => "\\\\[*?a]",
            3 => class,
            1 => Just("[[:lower:]]".to_owned()),
        ];
        prop::collection::vec(part, 0..6).prop_map(|parts| parts.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]
        #[test]
        fn as_the_c_library(pattern in pattern(), text in "[a-d*?\\]!-]{0,6}") {
            prop_assert_eq!(is_match(&pattern, &text), fnmatch(&pattern, &text), "{} {}", pattern, text);
        }

        #[test]
        fn garbage_never_panics(pattern in "[]\\[*?!^a:.=\\\\é-]{0,12}", text in "\\PC{0,12}") {
            let _ = is_match(&pattern, &text);
        }
    }
}
