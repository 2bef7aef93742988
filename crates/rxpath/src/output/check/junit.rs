//! `rxpath check` as JUnit XML: a test case for each answer.
//!
//! **Source** the format of the Ant task `junitreport` as Jenkins and GitLab read it: `testsuites`, `testsuite` by
//! area, `testcase` with `failure` or `skipped`.

use std::collections::BTreeMap;

use rxpath_tune::check::Note;
use rxpath_tune::rule::Area;
use rxpath_tune::{Finding, Report, Severity, rules};

/// The outcome of a test case.
enum Verdict<'a> {
    Passed,
    Failed(&'a Finding),
    Skipped(String),
}

/// A rule's answer on one device or on the host.
struct Case<'a> {
    name: String,
    verdict: Verdict<'a>,
}

/// The whole report; a finding at or above `limit` fails its case, and one below `limit` skips it.
pub fn render(report: &Report, limit: Severity) -> String {
    let (mut total, mut failed, mut out) = (0, 0, String::new());
    for (area, cases) in suites(report, limit) {
        let count =
            |is: fn(&Verdict<'_>) -> bool| cases.iter().filter(|case| is(&case.verdict)).count();
        let tests = cases.len();
        let failures = count(|verdict| matches!(verdict, Verdict::Failed(_)));
        let skipped = count(|verdict| matches!(verdict, Verdict::Skipped(_)));
        (total, failed) = (total + tests, failed + failures);
        out += &format!(
            "  <testsuite name=\"{}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"0\" skipped=\"{skipped}\">\n",
            escaped(area.title())
        );
        out.extend(cases.iter().map(|case| one(case, area)));
        out += "  </testsuite>\n";
    }
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"rxpath check\" tests=\"{total}\" failures=\"{failed}\" errors=\"0\">\n{out}</testsuites>\n"
    )
}

fn suites(report: &Report, limit: Severity) -> BTreeMap<Area, Vec<Case<'_>>> {
    let mut suites: BTreeMap<Area, Vec<Case<'_>>> = BTreeMap::new();
    let mut add = |id: &str, device: Option<&str>, verdict| {
        let Some(rule) = rules::find(id) else { return };
        let name = device.map_or_else(|| id.to_owned(), |device| format!("{id} ({device})"));
        suites.entry(rule.area).or_default().push(Case { name, verdict });
    };
    for finding in &report.findings {
        let verdict = if finding.severity >= limit {
            Verdict::Failed(finding)
        } else {
            Verdict::Skipped(format!("{}: {}", finding.severity.as_str(), finding.observed))
        };
        add(&finding.id, finding.device.as_deref(), verdict);
    }
    for one in &report.suppressed {
        let why = format!("suppressed until {}: {}", one.until, one.reason);
        add(&one.finding.id, one.finding.device.as_deref(), Verdict::Skipped(why));
    }
    let notes: [(&[Note], bool); 5] = [
        (&report.fine, true),
        (&report.records, true),
        (&report.cautions, false),
        (&report.unseen, false),
        (&report.silent, false),
    ];
    for (list, passed) in notes {
        for note in list {
            let verdict =
                if passed { Verdict::Passed } else { Verdict::Skipped(note.text.clone()) };
            add(&note.id, note.device.as_deref(), verdict);
        }
    }
    for one in &report.unjudged {
        let verdict = Verdict::Skipped(format!("could not be judged: {}", one.text));
        add(&one.id, one.device.as_deref(), verdict);
    }
    suites
}

fn one(case: &Case<'_>, area: Area) -> String {
    let class = format!("rxpath.{area:?}").to_lowercase();
    let open = format!("    <testcase classname=\"{class}\" name=\"{}\"", escaped(&case.name));
    match &case.verdict {
        Verdict::Passed => format!("{open}/>\n"),
        Verdict::Skipped(why) => {
            format!("{open}>\n      <skipped message=\"{}\"/>\n    </testcase>\n", escaped(why))
        }
        Verdict::Failed(finding) => format!(
            "{open}>\n      <failure type=\"{}\" message=\"{}\">{}</failure>\n    </testcase>\n",
            finding.severity.as_str(),
            escaped(&finding.observed),
            escaped(&format!(
                "expected: {}\nwhy: {}\neffect: {}\nmore: {}",
                finding.expected, finding.why, finding.effect, finding.more
            ))
        ),
    }
}

/// Text inside an element or attribute; characters that XML 1.0 does not allow become `?` (section 2.2).
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\n' | '\t' => out.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('?'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn nothing_breaks_out_of_an_attribute() {
        assert_eq!(super::escaped("a<b>&\"c\"\u{1}"), "a&lt;b&gt;&amp;&quot;c&quot;?");
    }
}
