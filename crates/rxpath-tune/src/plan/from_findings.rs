//! From findings of rules to requests.

use super::LeftOut;
use super::make::ChangeRequest;
use crate::finding::Finding;

/// What the findings ask for, and what of it is no setting that can be changed at runtime.
///
/// `ids` keeps to these rules; empty takes all.
pub fn requests(findings: &[Finding], ids: &[String]) -> (Vec<ChangeRequest>, Vec<LeftOut>) {
    let (mut requests, mut left) = (Vec::new(), Vec::new());
    for finding in findings.iter().filter(|f| ids.is_empty() || ids.contains(&f.id)) {
        if finding.changes.is_empty() {
            let why = finding.advice.clone();
            let why = why.unwrap_or_else(|| "nothing that can be changed at runtime".into());
            left.push(LeftOut::new(finding.subject(), why));
        }
        requests.extend(finding.changes.iter().map(|set| ChangeRequest {
            knob: set.knob.clone(),
            value: set.value.clone(),
            because: finding.id.clone(),
        }));
    }
    (requests, left)
}
