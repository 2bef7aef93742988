//! What a check of the settings found.

use crate::families::{
    CHECKED_AT, FINDING, FINDINGS, FINGERPRINT, Families, LIMITED_SERIES, TUNED, UNJUDGED,
};

/// Bits of the fingerprint that a number of the text format holds exactly.
const FINGERPRINT_DIGITS: usize = 12;

/// The part of `rxpath check`'s answer that is exported.
#[derive(Clone, Debug, Default)]
pub struct ExportedCheck {
    /// Rule, severity and device (empty where the rule is about the host) of each finding.
    pub findings: Vec<(String, &'static str, String)>,
    /// Rules that could not be judged, by each reason.
    pub unjudged: Vec<(&'static str, usize)>,
    /// Changes that `rxpath tune` made and did not undo, by each way in which they may stand now.
    pub tuned: Vec<(&'static str, usize)>,
    /// Fingerprint of the settings, hexadecimal.
    pub fingerprint: String,
    /// When it was made, Unix time.
    pub at_unix_s: f64,
}

impl Families {
    /// Replaces what the check before found.
    pub fn check(&self, checked: &ExportedCheck) {
        self.clear(FINDING);
        for severity in ["info", "warn", "fail"] {
            let count = checked.findings.iter().filter(|(_, of, _)| *of == severity).count();
            self.set(FINDINGS, &[severity], count as f64);
        }
        for (rule, severity, object) in checked.findings.iter().take(self.findings_most) {
            self.set(FINDING, &[rule, severity, object], 1.0);
        }
        let refused = checked.findings.len().saturating_sub(self.findings_most);
        self.add(LIMITED_SERIES, &[FINDING], refused as f64);
        for (family, counts) in [(UNJUDGED, &checked.unjudged), (TUNED, &checked.tuned)] {
            for (label, count) in counts {
                self.set(family, &[label], *count as f64);
            }
        }
        self.set(CHECKED_AT, &[], checked.at_unix_s);
        let digits = checked.fingerprint.get(..FINGERPRINT_DIGITS);
        if let Some(number) = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok()) {
            self.set(FINGERPRINT, &[], number as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::families::FINDINGS_MOST;

    #[test]
    fn a_later_check_replaces_an_earlier_one() {
        let families = Families::new("1", 1).unwrap();
        let finding = ("ring-size".to_owned(), "warn", "eth0".to_owned());
        let first = ExportedCheck {
            findings: vec![finding],
            unjudged: vec![("privilege", 2), ("not-there", 0)],
            tuned: vec![("holds", 3)],
            fingerprint: "ffffffffffff0123".into(),
            at_unix_s: 1e9,
        };
        families.check(&first);
        let text = families.text().unwrap();
        assert!(text.contains("rule=\"ring-size\"") && text.contains("severity=\"warn\"} 1"));
        assert!(text.contains("rxpath_config_fingerprint 281474976710655\n"), "{text}");
        for line in [
            "rxpath_check_unjudged{why=\"privilege\"} 2",
            "rxpath_check_unjudged{why=\"not-there\"} 0",
            "rxpath_tune_settings{state=\"holds\"} 3",
        ] {
            assert!(text.lines().any(|one| one == line), "{line} in {text}");
        }
        families.check(&ExportedCheck::default());
        let text = families.text().unwrap();
        assert!(!text.contains("ring-size") && text.contains("findings{severity=\"warn\"} 0"));
    }

    #[test]
    fn findings_beyond_the_bound_are_counted_and_have_no_series() {
        let families = Families::new("1", 1).unwrap();
        let of = |n: usize| ("ring-size".to_owned(), "warn", format!("eth{n}"));
        let findings = (0..FINDINGS_MOST + 3).map(of).collect();
        families.check(&ExportedCheck { findings, ..ExportedCheck::default() });
        let text = families.text().unwrap();
        let series = text.lines().filter(|line| line.starts_with("rxpath_check_finding_info{"));
        assert_eq!(series.count(), FINDINGS_MOST);
        let refused = "rxpath_series_limited_total{family=\"rxpath_check_finding_info\"} 3";
        assert!(text.lines().any(|line| line == refused), "{text}");
    }
}
