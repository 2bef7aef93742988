//! Settings so small that the receive path starves at any load.

use super::floor::{FLOORS, judge, read};
use crate::prelude::*;

/// The checks of the rules of this file.
pub const CHECKS: Checks = &[("starving-settings", Check::Host(floors))];

fn floors(ask: &Ask<'_>) -> Checked {
    let answer = judge(read(ask.facts, &FLOORS.starving), |count| {
        format!("{count} settings are large enough to work")
    })?;
    if matches!(answer, Answer::Fine(_)) {
        // An unread setting may be the one that is too small, and the version decides whether a setting applies.
        ask.facts.sysctl_numbers("net.ipv4.tcp_mem").known()?;
        (&ask.facts.kernel.version).known()?;
    }
    Ok(answer)
}
