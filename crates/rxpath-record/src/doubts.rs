//! What a run says against its own figures.

use rxpath_core::Warning;

use crate::run::RunReader;

/// Code of the warning of a run that gave up.
pub const GAVE_UP: &str = "too-noisy";
/// Code of the warning about disturbed trials that count.
pub const COUNTED: &str = "noisy-trials";

/// Other load on the machine, an early end. Each names the run's directory.
pub fn doubts(run: &RunReader) -> Vec<Warning> {
    let says = |warning: &&Warning| [COUNTED, GAVE_UP].contains(&warning.code.as_str());
    let noise = run.manifest.warnings.iter().filter(says).cloned();
    let partial = run.partial().map(|why| Warning::new("run-partial", why));
    let named = |warning: Warning| Warning {
        text: format!("{}: {}", run.directory.display(), warning.text),
        ..warning
    };
    noise.chain(partial).map(named).collect()
}
