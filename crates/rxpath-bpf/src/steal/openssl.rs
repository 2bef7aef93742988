//! What `openssl speed` prints while it runs, as the published experiment read it.
//!
//! Lines such as `Doing sha256 for 3s on 16384 size blocks: 90123 sha256's in 2.98s` and, for public keys,
//! `Doing 2048 bits private rsa's for 10s: 15331 2048 bits private RSA's in 9.96s`. **Source** OpenSSL apps/speed.c,
//! `print_message`, `pkey_print_message` and `print_result`; versions 1.0 to 3.5.

use rxpath_core::ReportedTime;

/// The figures in its output (stderr and stdout), in order. Lines of another form are left out.
pub fn claims(text: &str) -> Vec<ReportedTime> {
    text.lines().filter_map(claim).collect()
}

fn claim(line: &str) -> Option<ReportedTime> {
    let (asked, got) = line.trim().strip_prefix("Doing ")?.split_once(": ")?;
    let (name, rest) = asked.rsplit_once(" for ")?;
    let (seconds, block) = rest.split_once('s')?;
    let (work, took) = got.rsplit_once(" in ")?;
    let work_count = work.split_whitespace().next()?.parse().ok()?;
    let got_s: f64 = took.trim().strip_suffix('s')?.parse().ok()?;
    let asked_s: f64 = seconds.trim().parse().ok()?;
    if !asked_s.is_finite() || !got_s.is_finite() || asked_s < 0.0 || got_s < 0.0 {
        return None;
    }
    let size = block.trim().strip_prefix("on ").and_then(|b| b.split_whitespace().next());
    let what = match size {
        Some(size) => format!("{name}, {size} bytes"),
        None => name.to_owned(),
    };
    Some(ReportedTime { what, asked_s, got_s, work_count })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_forms_are_read() {
        let text = "Doing sha256 for 3s on 16384 size blocks: 90123 sha256's in 2.98s\n\
                    Doing sha256 ops for 2s on 64 size blocks: 5 sha256 ops's in 0.71s\n\
                    Doing 2048 bits private rsa's for 10s: 15331 2048 bits private RSA's in 9.96s\n\
                    version: 3.0.11\n";
        let claims = claims(text);
        assert_eq!(claims.len(), 3);
        assert_eq!(
            (claims[0].what.as_str(), claims[0].work_count),
            ("sha256, 16384 bytes", 90_123)
        );
        assert!((claims[0].asked_s - 3.0).abs() < 1e-9 && (claims[0].got_s - 2.98).abs() < 1e-9);
        assert_eq!(claims[2].what, "2048 bits private rsa's");
        assert!((claims[2].got_s - 9.96).abs() < 1e-9);
    }

    #[test]
    fn a_line_that_is_cut_or_odd_is_no_claim() {
        for line in [
            "Doing sha256 for 3s on 16384 size blocks: ",
            "Doing x for s: 1 x in 1s",
            "Doing x for 3s: y in 1s",
            "Doing x for 3s: 1 x in nans",
        ] {
            assert!(claims(line).is_empty(), "{line}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in "(Doing |for |in |: |s|[0-9.]{0,4}|\\PC){0,40}") {
            for claim in claims(&text) {
                prop_assert!(claim.got_s >= 0.0 && claim.asked_s.is_finite());
            }
        }
    }
}
