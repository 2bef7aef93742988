//! Compares the CPUs of pinned readers with those of the NIC's interrupts.

use std::collections::BTreeSet;

use rxpath_core::CpuList;
use rxpath_host::read::procfs::socket_owner;
use rxpath_host::read::topology::{CpuTopology, Distance};

use crate::facts::{PacketReader, Readers};
use crate::prelude::*;

/// At most this many programs are named; the rest is counted.
const NAMED: usize = 4;

/// The checks of the rules of this file.
pub const CHECKS: Checks = &[("reader-placement", Check::Host(placement))];

/// CPUs that receive interrupts of NICs go to.
fn interrupt_cpus(ask: &Ask<'_>) -> Vec<u32> {
    let mut cpus = BTreeSet::new();
    for device in ask.facts.nics().filter(|device| device.is_up()) {
        for irq in device.receiving_irqs().into_value().unwrap_or_default() {
            let at = irq.masks.effective_cpus.into_value();
            cpus.extend(at.iter().flat_map(|list| list.as_slice().iter().copied()));
        }
    }
    cpus.into_iter().collect()
}

/// A thread's best distance over its allowed CPUs; `None` if the host does not report it.
fn nearest(topology: &CpuTopology, allowed: &CpuList, interrupts: &[u32]) -> Option<Vec<Distance>> {
    allowed
        .as_slice()
        .iter()
        .map(|cpu| interrupts.iter().filter_map(|irq| topology.distance(*cpu, *irq)).min())
        .collect()
}

fn placement(ask: &Ask<'_>) -> Checked {
    let topology = (&ask.facts.topology).known()?;
    let interrupts = interrupt_cpus(ask);
    if interrupts.is_empty() {
        return Answer::silent("no NIC whose interrupts are known");
    }
    let readers = ask.facts.readers().known()?;
    // A container's CPUs are those of its first process: a thread allowed on all of them is not pinned.
    let free = ask.facts.readers_baseline().unwrap_or_else(|| topology.online.clone());
    let pinned: Vec<&PacketReader> = readers
        .seen
        .iter()
        .filter(|reader| reader.allowed_cpus.as_slice().len() < free.as_slice().len())
        .collect();
    let mut wrong = misplaced(topology, &pinned, &interrupts);
    if wrong.is_empty() {
        return content(pinned.len(), &readers);
    }
    let more = wrong.len().saturating_sub(NAMED);
    wrong.truncate(NAMED);
    wrong.extend((more > 0).then(|| format!("and {more} more")));
    Answer::observed(format!("{}; interrupts on CPUs {}", wrong.join("; "), CpuList(interrupts)))
        .advice("taskset -pc CPUS PID; move the interrupt where the program cannot move")
}

/// No fault among the visible programs; hidden programs are reported.
fn content(pinned: usize, readers: &Readers) -> Checked {
    match (pinned, readers.hidden_sockets) {
        (_, hidden) if hidden > 0 && readers.is_hidden_from_all => Err(Gap::Absent(format!(
            "the programs of {hidden} receiving sockets are not visible here: they belong to a parent user namespace, \
             or a security module hides them"
        ))),
        (_, hidden) if hidden > 0 => Err(Gap::Denied(format!(
            "{}, to see the programs of {hidden} receiving sockets of other users",
            socket_owner::NEEDED
        ))),
        (0, _) => Answer::silent("no program that reads is pinned to CPUs"),
        (count, _) => Answer::fine(format!("{count} pinned readers are near the interrupts")),
    }
}

/// Pinned readers on another node than the interrupts, or on their hyper-thread siblings.
fn misplaced(topology: &CpuTopology, pinned: &[&PacketReader], interrupts: &[u32]) -> Vec<String> {
    let mut wrong = Vec::new();
    for reader in pinned {
        let Some(near) = nearest(topology, &reader.allowed_cpus, interrupts) else { continue };
        let place = if near.iter().all(|at| *at == Distance::Remote) {
            "on another node than the interrupts"
        } else if near.iter().all(|at| *at == Distance::Sibling) {
            "on the hyper-thread sibling of an interrupt's CPU"
        } else {
            continue;
        };
        wrong.push(format!(
            "{} ({}) on CPU {}: {place}",
            reader.comm, reader.pid, reader.allowed_cpus
        ));
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_are_not_shown_are_told() {
        let hidden = |hidden_sockets, is_hidden_from_all| Readers {
            hidden_sockets,
            is_hidden_from_all,
            ..Readers::default()
        };
        match content(1, &hidden(3, false)) {
            Err(Gap::Denied(needs)) => assert!(needs.contains("3 receiving sockets"), "{needs}"),
            other => panic!("{other:?}"),
        }
        match content(1, &hidden(3, true)) {
            Err(Gap::Absent(why)) => assert!(why.contains("not visible here"), "{why}"),
            other => panic!("{other:?}"),
        }
        assert!(matches!(content(1, &hidden(0, false)), Ok(Answer::Fine(_))));
        assert!(matches!(content(0, &hidden(0, true)), Ok(Answer::Silent(_))));
    }
}
