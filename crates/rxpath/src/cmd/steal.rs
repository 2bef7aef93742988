//! `rxpath steal`: CPU time that network processing takes from work, by task and by cause.

mod command;
mod wanted;

use std::time::Instant;

use rxpath_bpf::account::Account;
use rxpath_bpf::account::calibrate::{self, IrqCalibration};
use rxpath_bpf::cost::{PartMeter, own_cpu};
use rxpath_bpf::steal::{Steal, StealInputs, answer, probe};
use rxpath_bpf::{Probe, ProbeCost};
use rxpath_core::CpuList;
use rxpath_core::plain_time::irq_entry;
use rxpath_host::read::{installed, procfs, thread};
use rxpath_host::{HostError, Root};

use crate::cmd::on_host::OnHost;
use crate::cmd::prelude::*;
use crate::cmd::scope::ScopeArgs;
use crate::cmd::values::{Wait, seconds};

use wanted::Wanted;

/// `rxpath steal`
#[derive(Debug, clap::Args)]
pub struct StealCommand {
    /// Length of the window and of the built-in victim's run (default 5s, at least 10ms)
    #[arg(short, long, value_name = "TIME", value_parser = seconds, conflicts_with = "command")]
    duration: Option<Nanos>,
    /// Run the built-in victim: a loop of known work that measures its own loss
    #[arg(long, conflicts_with = "command")]
    probe: bool,
    /// CPU for the victim and for calibrating the cost of an interrupt (default: the last CPU that this process may
    /// use; a command is pinned only with this option)
    #[arg(long, value_name = "N")]
    cpu: Option<u32>,
    /// Rows of the table of tasks
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Cost of an interrupt outside all tracepoints, in us or with a unit (500ns); otherwise it is calibrated, which
    /// spins on two CPUs for 6 s
    #[arg(long, value_name = "US", value_parser = irq_entry)]
    irq_entry: Option<f64>,
    #[command(flatten)]
    scope: ScopeArgs,
    #[command(flatten)]
    format: FormatArgs,
    /// The victim: a command to run while everything is counted; its exit status is passed on
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    #[command(flatten)]
    pub on: OnHost,
}

/// The options in force.
#[derive(Debug, Serialize)]
struct Settings {
    duration_s: Option<f64>,
    victim: Option<String>,
    cpu: Option<u32>,
    irq_entry_us: Option<f64>,
    #[serde(flatten)]
    scope: ScopeArgs,
}

/// The account during its window: its cost, and the flows of its packets.
struct Counting<'a> {
    account: &'a mut Account,
    begun: Instant,
    meter: PartMeter,
    /// How long flows had been sampled when the meter stopped.
    metered: Option<Duration>,
    wanted: &'a mut Wanted,
}

impl<'a> Counting<'a> {
    fn start(account: &'a mut Account, window: Duration, wanted: &'a mut Wanted) -> Self {
        let meter = PartMeter::start(&[account.loaded()], window);
        // Without the flow program, time has no flows; the program's state says why.
        let _ = account.look_at_flows();
        Self { account, begun: Instant::now(), meter, metered: None, wanted }
    }

    /// Must be called about fifty times per second.
    fn note(&mut self) {
        if self.metered.is_none() && self.meter.note() {
            self.metered = Some(self.account.flows_looked());
        }
        // Flows sampled for less time have fewer packets counted, and no wrong ones.
        let _ = self.account.note();
        self.wanted.note();
    }

    /// The cost of the programs over the window; the cost of the flow program is scaled to the time in which it ran.
    fn cost(mut self) -> ProbeCost {
        let (looked, window) = (self.account.flows_looked(), self.begun.elapsed());
        let metered = self.metered.unwrap_or(looked).as_secs_f64();
        let cost = self.meter.stop();
        let always = window.as_secs_f64() / cost.measured_s.max(1e-9);
        let in_turns = looked.as_secs_f64() / metered.max(1e-9);
        let by_turns = |program: &str| Account::is_by_turns(program);
        let cost = cost.scaled(|program| if by_turns(program) { in_turns } else { always });
        ProbeCost { map_bytes: self.account.loaded().map_bytes(), ..cost }
    }
}

impl StealCommand {
    /// Counts and prints.
    pub fn run(self) -> Outcome {
        let window = Duration::from_nanos(self.duration.map_or(5_000_000_000, |d| d.0));
        if window < Duration::from_millis(10) {
            return Err(Failure::usage("--duration must be at least 10ms"));
        }
        if let Some(cpu) = self.cpu {
            thread::check_cpus(&CpuList(vec![cpu])).or_usage(|| format!("--cpu {cpu}"))?;
        }
        if let Some(program) = self.command.first()
            && !installed::found(program)
        {
            return Err(Failure::usage(format!(
                "cannot start {program}: there is no executable program of this name"
            )));
        }
        let mut wanted = Wanted::of(&self.scope)?;
        let is_victim_ours = self.probe || !self.command.is_empty();
        if is_victim_ours && wanted.only.is_some() {
            return Err(Failure::usage(
                "--pid and --cgroup name the victims: leave out --probe and the command",
            ));
        }
        // The probes identify tasks by the pids of the host.
        if (is_victim_ours || wanted.only.is_some())
            && !procfs::is_first_pid_namespace(&Root::host())
        {
            let why =
                "the probes identify the victim by its host pid, but this is another pid namespace";
            return Err(Failure::cannot(why)
                .hint("run rxpath outside the container, or without a victim to count all tasks"));
        }
        let interrupt = Interrupt::catch()?;
        let mut account = Account::start().map_err(|error| {
            Failure::new(Exit::Cannot, error).hint("rxpath doctor says what can be measured here")
        })?;
        let (mut steal, mut warnings, signal) =
            self.watch(&mut account, window, &interrupt, &mut wanted)?;
        drop(account);
        wanted.narrow(&mut steal);
        warnings.extend(wanted.warnings(&self.scope));
        if signal.is_some() {
            warnings.push(Warning::new("interrupted", "a signal ended the window early"));
        }
        self.print(&steal, warnings, window)?;
        let passed_on = || steal.victim.as_ref().map_or(Exit::Done, status_of);
        Ok(signal.map_or_else(passed_on, Exit::Signal))
    }

    /// The CPU of the victim.
    fn victim_cpu(&self) -> Result<u32, HostError> {
        match self.cpu {
            Some(cpu) => Ok(cpu),
            None => Ok(thread::allowed_cpus()?.0.last().copied().unwrap_or(0)),
        }
    }

    fn calibrate(&self, account: &mut Account) -> Result<IrqCalibration, HostError> {
        if let Some(us) = self.irq_entry {
            return Ok(IrqCalibration::given(us));
        }
        let cpu = self.victim_cpu()?;
        let takes_s = calibrate::TAKES.as_secs();
        crate::note!("calibrating the cost of an interrupt: {takes_s} s on CPU {cpu}");
        calibrate::measure(account, cpu)
    }

    /// Counts over the window, while the victim runs.
    fn watch(
        &self,
        account: &mut Account,
        window: Duration,
        interrupt: &Interrupt,
        wanted: &mut Wanted,
    ) -> Result<(Steal, Vec<Warning>, Option<i32>), Failure> {
        let calibration = self.calibrate(account)?;
        let before = account.read()?;
        let cpu_before = own_cpu();
        let mut counting = Counting::start(account, window, wanted);
        crate::note!("counting on every CPU");
        let mut wait = Wait::new(interrupt);
        let victim = self.victim(window, &mut wait, &mut counting)?;
        let mut cost = counting.cost();
        let after = account.read()?;
        cost.reader_cpu_s = own_cpu().saturating_sub(cpu_before).as_secs_f64();
        let evidence = StealInputs {
            before: &before,
            after: &after,
            calibration,
            cost,
            probes: account.programs(),
            flows_looked: account.flows_looked(),
        };
        let (mut steal, warnings) = answer(evidence);
        steal.victim = victim.map(|victim| match victim {
            Victim::BuiltIn(ran) => probe::StealVictim::built_in(&ran, &steal.tasks),
            Victim::Command(ended) => ended.victim(&steal.tasks),
        });
        steal.name_queues();
        Ok((steal, warnings, wait.signal()))
    }

    /// Runs the victim to its end; without a victim, waits for the end of the window.
    fn victim(
        &self,
        window: Duration,
        wait: &mut Wait<'_>,
        counting: &mut Counting<'_>,
    ) -> Result<Option<Victim>, Failure> {
        let mut until = |over: &mut dyn FnMut(Duration) -> bool| {
            wait.until(|passed| {
                counting.note();
                over(passed)
            })
        };
        if self.probe {
            let cpu = self.victim_cpu()?;
            let ran = std::thread::spawn(move || probe::run(cpu, window));
            until(&mut |_| ran.is_finished())?;
            // A signal ended the wait: the loop ends with the process.
            let joined = if ran.is_finished() { ran.join().ok() } else { None };
            return Ok(joined.transpose()?.map(Victim::BuiltIn));
        }
        if self.command.is_empty() {
            until(&mut |passed| passed >= window)?;
            return Ok(None);
        }
        let mut child = command::Child::start(&self.command, self.cpu)?;
        until(&mut |_| child.is_over())?;
        Ok(Some(Victim::Command(child.end(wait.signal())?)))
    }

    fn print(&self, steal: &Steal, warnings: Vec<Warning>, window: Duration) -> anyhow::Result<()> {
        let settings = Settings {
            duration_s: self.command.is_empty().then_some(window.as_secs_f64()),
            victim: steal.victim.as_ref().map(|victim| victim.what.clone()),
            cpu: self.cpu,
            irq_entry_us: self.irq_entry,
            scope: self.scope.clone(),
        };
        let answer = Envelope::new("steal", settings, steal, warnings);
        output::answer(self.format.is_json(), &answer, |it| output::steal::text(it, self.top))
    }
}

/// The victim's exit status, as `time` and shells report it: 128 plus the number for a signal.
fn status_of(victim: &probe::StealVictim) -> Exit {
    match (victim.exit_code, victim.ended_by_signal) {
        (_, Some(number)) => Exit::Signal(number),
        (Some(status), None) => Exit::Command(status as u8),
        (None, None) => Exit::Done,
    }
}

/// A victim that ran.
enum Victim {
    BuiltIn(probe::Ran),
    Command(command::Ended),
}
