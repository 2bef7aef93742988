//! libbpf's own words, kept for the reason of a refusal instead of printed.

use std::sync::{Mutex, Once};

use libbpf_rs::{PrintLevel, set_print};

/// The last lines; more than a verifier's verdict needs.
const KEPT_LINES: usize = 40;

static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());
static ONCE: Once = Once::new();

/// Keeps what libbpf says from now on.
pub fn keep() {
    ONCE.call_once(|| {
        set_print(Some((PrintLevel::Info, note)));
    });
    if let Ok(mut lines) = LINES.lock() {
        lines.clear();
    }
}

// libbpf-rs hands the text over.
#[expect(clippy::needless_pass_by_value)]
fn note(_: PrintLevel, text: String) {
    if let Ok(mut lines) = LINES.lock() {
        lines.extend(text.lines().map(str::to_owned));
        let extra = lines.len().saturating_sub(KEPT_LINES);
        lines.drain(..extra);
    }
}

/// The line that tells most about a refusal since the last [`keep`]: the verifier's own verdict where there is one.
///
/// libbpf adds a hint about `ulimit -l` to every EPERM; since memory is charged to cgroups (5.11) it misleads, and
/// is left out.
pub fn reason() -> Option<String> {
    let lines = LINES.lock().ok()?;
    let telling = |line: &&String| {
        !line.contains("ulimit")
            && !line.contains("BEGIN PROG LOAD LOG")
            && !line.contains("END PROG LOAD LOG")
            && !line.starts_with("processed ")
            && !line.trim().is_empty()
    };
    let verdict = lines
        .iter()
        .rposition(|line| line.contains("END PROG LOAD LOG"))
        .and_then(|end| lines[..end].iter().rfind(telling));
    verdict
        .or_else(|| lines.iter().rfind(telling))
        .map(|line| line.trim().trim_start_matches("libbpf: ").to_owned())
}
