//! `rxpath tune auto --live` on a real driver: a search that is killed while a setting of the card is on leaves the card as
//! it was; so does one that ends.

use crate::reading::json;
use crate::{Machine, root, run};

#[test]
fn a_search_that_is_killed_or_ends_leaves_the_card_as_it_was() {
    let script = format!("{}:/searching.sh", root().join("tests/rig/searching.sh").display());
    let machine = Machine {
        kernel: "6.12",
        nics: "igb e1000e",
        modules: "udp_diag tcp_diag",
        wire: true,
        adds: &[&script],
    };
    let Some(out) = run(machine, &["sh", "/searching.sh"]) else { return };
    for set in ["coalesce/rx-usecs=100", "rings/rx=512"] {
        assert!(out.contains(&format!("@@killed {set}\n")), "{out}");
    }
    // What helps is not up to an emulated card.
    assert!(
        ["0", "1", "4"].iter().any(|code| out.contains(&format!("@@status {code}\n"))),
        "{out}"
    );
    let answer = json(&out, "answer")["result"].clone();
    assert_eq!(answer["live"]["restored_count"], 1, "{answer}");
    assert!(answer["found"]["trials_count"].as_u64() > Some(8), "{answer}");
}
