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

/// The line that tells most about a refusal since the last [`keep`].
pub fn reason() -> Option<String> {
    let lines = LINES.lock().ok()?;
    verdict_in(&lines).or_else(|| last_telling(&lines))
}

/// The verifier's own last word since the last [`keep`]; none when it was not what refused.
pub fn verdict() -> Option<String> {
    verdict_in(&LINES.lock().ok()?)
}

/// libbpf prints the verifier's log between two marks, and nothing between them when the verifier was never reached.
fn verdict_in(lines: &[String]) -> Option<String> {
    let end = lines.iter().rposition(|line| line.contains("END PROG LOAD LOG"))?;
    // A long log has pushed out its own beginning.
    let begin = lines[..end].iter().rposition(|line| line.contains("BEGIN PROG LOAD LOG"));
    last_telling(&lines[begin.map_or(0, |at| at + 1)..end])
}

/// libbpf adds a hint about `ulimit -l` to every EPERM; since memory is charged to cgroups (5.11) it misleads, and
/// is left out.
fn last_telling(lines: &[String]) -> Option<String> {
    let telling = |line: &&String| {
        !line.contains("ulimit")
            && !line.contains("BEGIN PROG LOAD LOG")
            && !line.contains("END PROG LOAD LOG")
            && !line.starts_with("processed ")
            && !line.trim().is_empty()
    };
    let last = lines.iter().rfind(telling)?;
    Some(last.trim().trim_start_matches("libbpf: ").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn the_verifiers_last_word_is_found_between_its_marks() {
        let log = lines(
            "libbpf: prog 'napi_poll': BPF program load failed: -EACCES\n\
             libbpf: prog 'napi_poll': -- BEGIN PROG LOAD LOG --\n\
             0: R1=ctx() R10=fp0\n\
             R1 invalid mem access 'scalar'\n\
             processed 12 insns (limit 1000000) max_states_per_insn 0\n\
             -- END PROG LOAD LOG --\n\
             libbpf: prog 'napi_poll': failed to load: -EACCES",
        );
        assert_eq!(verdict_in(&log).as_deref(), Some("R1 invalid mem access 'scalar'"));
        // Cut at its beginning.
        assert_eq!(verdict_in(&log[3..]).as_deref(), Some("R1 invalid mem access 'scalar'"));
    }

    #[test]
    fn a_refusal_before_the_verifier_has_no_verdict() {
        let log = lines(
            "libbpf: prog 'napi_poll': failed to load: -EPERM\n\
             libbpf: permission error while running as root; try raising 'ulimit -l'?",
        );
        assert_eq!(verdict_in(&log), None);
        assert_eq!(last_telling(&log).as_deref(), Some("prog 'napi_poll': failed to load: -EPERM"));
    }
}
