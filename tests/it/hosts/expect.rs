//! What an expert would say of a host, and where a report differs from it.

use rxpath_host::Root;
use rxpath_tune::plan::from_findings;
use rxpath_tune::plan::make::ChangeRequest;
use rxpath_tune::{Ask, Finding, Goal, HostFacts, Report, Scope, check};

use super::harm::harms;
use super::tree::Host;

/// What must be said for one goal. Rules are named `id` or `id@device`; `one|other` is met by either.
#[derive(Clone, Copy)]
pub struct Expected {
    /// The first finding; without one nothing may be found.
    pub first: Option<&'static str>,
    /// What must be found as well.
    pub found: &'static [&'static str],
    /// What may be found, and need not be.
    pub also: &'static [&'static str],
    /// Found in this order.
    pub order: &'static [&'static str],
    /// What the host may not tell, as `id@device`: found or counted as unjudged, but neither fine nor silent.
    pub unjudged: &'static [&'static str],
    /// Whether anything else may be found, too.
    pub is_open: bool,
}

/// Nothing is to be found.
pub const NOTHING: Expected =
    Expected { first: None, found: &[], also: &[], order: &[], unjudged: &[], is_open: false };

/// This must come first.
pub const fn first(id: &'static str) -> Expected {
    Expected { first: Some(id), ..NOTHING }
}

impl Expected {
    pub const fn found(mut self, ids: &'static [&'static str]) -> Self {
        self.found = ids;
        self
    }

    pub const fn also(mut self, ids: &'static [&'static str]) -> Self {
        self.also = ids;
        self
    }

    pub const fn order(mut self, ids: &'static [&'static str]) -> Self {
        self.order = ids;
        self
    }

    pub const fn unjudged(mut self, ids: &'static [&'static str]) -> Self {
        self.unjudged = ids;
        self
    }

    pub const fn open(mut self) -> Self {
        self.is_open = true;
        self
    }
}

/// A host and what is to be said of it.
pub struct Case {
    pub name: &'static str,
    pub host: Host,
    pub none: Expected,
    pub latency: Expected,
    pub throughput: Expected,
}

fn is(finding: &Finding, wanted: &str) -> bool {
    wanted.split('|').any(|one| match one.split_once('@') {
        Some((id, device)) => finding.id == id && finding.device.as_deref() == Some(device),
        None => finding.id == one,
    })
}

fn named(finding: &Finding) -> String {
    match &finding.device {
        Some(device) => format!("{}@{device}", finding.id),
        None => finding.id.clone(),
    }
}

impl Expected {
    /// Where a report differs.
    fn faults(&self, report: &Report) -> Vec<String> {
        let findings = &report.findings;
        let mut faults = Vec::new();
        match (self.first, findings.first()) {
            (Some(wanted), Some(first)) if !is(first, wanted) => {
                faults.push(format!("first is {}, not {wanted}", named(first)));
            }
            _ => {}
        }
        let at = |id: &str| findings.iter().position(|finding| is(finding, id));
        let wanted = self.first.iter().chain(self.found);
        faults.extend(wanted.filter(|id| at(id).is_none()).map(|id| format!("misses {id}")));
        let allowed = [self.found, self.also, self.unjudged].concat();
        let is_allowed = |finding: &Finding| {
            self.is_open || self.first.iter().chain(&allowed).any(|id| is(finding, id))
        };
        let others = findings.iter().filter(|finding| !is_allowed(finding));
        faults.extend(others.map(|finding| format!("false {}", named(finding))));
        for pair in self.order.windows(2) {
            if at(pair[0]).zip(at(pair[1])).is_none_or(|(one, other)| one > other) {
                faults.push(format!("{} does not stand before {}", pair[0], pair[1]));
            }
        }
        let is_unknown = |wanted: &str| {
            let (id, device) = wanted.split_once('@').unwrap();
            let mut unjudged = report.unjudged.iter();
            unjudged.any(|one| one.id == id && one.device.as_deref() == Some(device))
        };
        let is_told = |id: &str| is_unknown(id) || at(id).is_some();
        let judged = self.unjudged.iter().filter(|id| !is_told(id));
        faults.extend(judged.map(|id| format!("neither finds {id} nor says that it is unknown")));
        faults
    }
}

impl Case {
    /// The facts, and the directory that rules read further files from.
    fn facts(&self) -> (tempfile::TempDir, HostFacts) {
        // In memory, where there is such a directory: many small files take seconds on a busy disk.
        let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        self.host.write(dir.path());
        let facts = HostFacts::collect(&Root::tree(dir.path()).unwrap(), &Scope::default());
        assert!(facts.lost_devices.is_empty(), "{}: {:?}", self.name, facts.lost_devices);
        (dir, facts)
    }

    /// What the rules say for a goal.
    pub fn report(&self, goal: Option<Goal>) -> Report {
        let (_dir, facts) = self.facts();
        check(&Ask { facts: &facts, goal })
    }

    /// Where the rules say something else than an expert, and what they would do that nobody may do.
    pub fn faults(&self) -> Vec<String> {
        let (_dir, facts) = self.facts();
        let mut faults = Vec::new();
        for goal in [None].into_iter().chain(Goal::ALL.map(Some)) {
            let word = goal.map_or("none", Goal::as_str);
            let report = check(&Ask { facts: &facts, goal });
            let expected = match goal {
                None => Some(&self.none),
                Some(Goal::Latency) => Some(&self.latency),
                Some(Goal::Throughput) => Some(&self.throughput),
                _ => None,
            };
            let said = expected.map_or_else(Vec::new, |expected| expected.faults(&report));
            let harms = harms(&self.host, goal, &report.findings);
            let refused = refused(&report.findings);
            let all = said.into_iter().chain(harms).chain(refused);
            faults.extend(all.map(|fault| format!("{} {word}: {fault}", self.name)));
        }
        faults
    }
}

/// Changes that no plan would take.
fn refused(findings: &[Finding]) -> Vec<String> {
    let changing: Vec<Finding> =
        findings.iter().filter(|finding| !finding.changes.is_empty()).cloned().collect();
    let (requests, left_out) = from_findings::requests(&changing, &[]);
    let refused = requests.iter().filter_map(|request| {
        let said = ChangeRequest::parse(&format!("{}={}", request.knob, request.value)).err()?;
        Some(format!("{} asks for what no plan takes: {said}", request.because))
    });
    let left = left_out.iter().map(|left| format!("{} cannot be planned: {}", left.what, left.why));
    left.chain(refused).collect()
}
