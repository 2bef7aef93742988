//! A victim with a known load: the time it asked for, the time it got by its work, and the stolen time that the probe
//! reports.

use std::time::Duration;

use rxpath_core::measured::{TakenBy, VictimTime};
use rxpath_host::HostError;
use rxpath_host::read::thread;
use rxpath_host::write::sched;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{TakenFor, TaskTaken};
use crate::account::spin::{self, Gaps, Prepared};

/// Multiplications in one iteration of the built-in victim: about a microsecond.
const ROUNDS: u32 = 800;

/// A victim, with what a run must not keep of it: a flow names an address.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StealVictim {
    /// `built-in` or the command.
    pub what: String,
    /// Its process.
    pub tgid: u32,
    /// What it asked for and what it got.
    #[serde(flatten)]
    pub row: VictimTime,
    /// Its exit status, for a command.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub exit_code: Option<i32>,
    /// The signal that ended it, for a command ended by a signal.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ended_by_signal: Option<i32>,
    /// For which flows, the most packets first.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub taken_for: Vec<TakenFor>,
}

/// What the built-in victim saw.
#[derive(Clone, Debug)]
pub struct Ran {
    /// Its thread.
    pub tid: u32,
    /// Its loop.
    pub gaps: Gaps,
    /// An undisturbed iteration, in ns, by the fastest rows before it began and the mean while it ran.
    pub turn_ns: f64,
}

/// Runs the built-in victim on a CPU for this long: on a thread that does nothing else, so that all its time on the CPU
/// is the victim's.
pub fn run(cpu: u32, time: Duration) -> Result<Ran, HostError> {
    let (prepared, before) = on_thread("rxpath-prepare", move || {
        sched::pin(cpu)?;
        Ok((Prepared::new(time, ROUNDS), spin::undisturbed_turn_ns(ROUNDS)))
    })?;
    let (tid, gaps) = on_thread("rxpath-victim", move || {
        sched::pin(cpu)?;
        Ok((thread::current_tid() as u32, prepared.look()))
    })?;
    // A CPU that raises its clock during the run makes iterations shorter than before.
    let turn_ns = before.min(gaps.turn_ns);
    Ok(Ran { tid, gaps, turn_ns })
}

fn on_thread<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> Result<T, HostError> + Send + 'static,
) -> Result<T, HostError> {
    let begun = std::thread::Builder::new().name(name.into()).spawn(work);
    let begun = begun.map_err(|e| HostError::os("start the victim's thread", &e))?;
    begun.join().map_err(|_| HostError::kernel("run the victim's thread", libc::EINTR))?
}

impl StealVictim {
    /// The built-in victim, with its row of the answer.
    pub fn built_in(ran: &Ran, tasks: &[TaskTaken]) -> Self {
        let of: Vec<&TaskTaken> = tasks.iter().filter(|task| task.row.pid == ran.tid).collect();
        let gaps = &ran.gaps;
        let mut victim = Self::of("built-in", std::process::id(), gaps.wall_ns / 1e9, &of);
        victim.row.got_by_work_s = Some(gaps.turns as f64 * ran.turn_ns / 1e9);
        victim.row.gaps_s = Some(gaps.gaps_ns / 1e9);
        victim.row.turn_ns = Some(ran.turn_ns);
        victim
    }

    /// A command, with the rows of its process and descendants.
    pub fn command(what: &str, tgid: u32, wall: Duration, tasks: &[TaskTaken]) -> Self {
        let family = super::family(tasks, tgid);
        let of: Vec<&TaskTaken> =
            tasks.iter().filter(|task| family.contains(&task.row.tgid)).collect();
        Self::of(what, tgid, wall.as_secs_f64(), &of)
    }

    fn of(what: &str, tgid: u32, asked_s: f64, tasks: &[&TaskTaken]) -> Self {
        let time = tasks.iter().map(|task| task.row.time).sum();
        let mut taken_by: Vec<TakenBy> =
            tasks.iter().flat_map(|task| task.row.taken_by.iter().cloned()).collect();
        super::rows::merge(&mut taken_by);
        let mut taken_for: Vec<TakenFor> =
            tasks.iter().flat_map(|task| task.taken_for.iter().cloned()).collect();
        super::rows::merge_flows(&mut taken_for, &time);
        let row = VictimTime { asked_s, time, taken_by, ..VictimTime::default() };
        Self { what: what.into(), tgid, row, taken_for, ..Self::default() }
    }

    /// Time taken from the victim while it was on the CPU, measured by its own loop, in seconds.
    pub fn truly_taken_s(&self) -> Option<f64> {
        let off_cpu = (self.row.asked_s - self.row.time.on_cpu_s).max(0.0);
        Some((self.row.gaps_s? - off_cpu).max(0.0))
    }
}
