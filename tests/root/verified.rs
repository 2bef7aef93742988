//! How many instructions of each program the verifier looks at, over all paths: it refuses a program at a million, and takes
//! a second for half of them.

use crate::alone::probes::probe;
use crate::bed::Bed;

#[test]
fn no_program_takes_the_verifier_long() {
    let Some(_bed) = Bed::with_bpf() else { return };
    for words in [
        &["steal", "-d", "10m", "--irq-entry", "1"][..],
        &["trace", "-d", "10m"],
        &["trace", "-d", "10m", "--every-packet"],
    ] {
        let probe = probe(words);
        let verified = probe.verified();
        probe.end();
        assert!(verified.len() > 5, "{words:?}: {verified:?}");
        assert!(verified.iter().all(|count| *count < 100_000), "{words:?}: {verified:?}");
    }
}
