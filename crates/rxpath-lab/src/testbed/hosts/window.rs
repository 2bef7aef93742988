//! All hosts get the latest instants of the measured window before the load begins, and each reads it by itself. Once the load has
//! settled they get earlier ones, which hold only if all hosts take them.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rxpath_core::{Nanos, PathSide, Warning};
use rxpath_live::observe::Between;
use serde::de::DeserializeOwned;

use super::{AFTER_WINDOW, HostsTestbed};
use crate::clock::{HostClock, monotonic_ns};
use crate::endpoint::client::PendingAnswer;
use crate::endpoint::window::{AheadAsk, MeasuredWindow, WindowAsk};
use crate::endpoint::wire::HostAsk;
use crate::error::LabError;
use crate::hosts::{ConnectedHost, Hosts};
use crate::testbed::Testbed;
use crate::testbed::seat::Seat;
use crate::testbed::window::{Measured, Window, Windowed, seconds};

/// A window whose instants all hosts have.
pub(super) struct RemoteWindow<'a> {
    testbed: &'a HostsTestbed<'a>,
    from_ns: u64,
    length: Nanos,
    /// Of the senders, then of the receivers.
    answers: Vec<PendingAnswer>,
    /// When hosts that were slow are asked again, and the pause before it.
    next_try_ns: u64,
    pause: Duration,
}

impl<'a> RemoteWindow<'a> {
    /// Sends the latest instants to all hosts.
    pub(super) fn arm(
        testbed: &'a HostsTestbed<'a>,
        measured: &Measured,
        from_ns: u64,
    ) -> Result<Self, LabError> {
        let shared = testbed.hosts.share_a_clock;
        let processes = processes(testbed.hosts, measured);
        let ask = |(host, Seat { side, index }, clock): (&ConnectedHost, Seat, HostClock)| {
            // On one machine the first receiver's endpoint reads the CPU time of both sides.
            let leaders = match side {
                PathSide::Rx if shared && index == 0 => measured.leaders(),
                _ => own(measured, side).get(index).cloned().unwrap_or_default(),
            };
            let on_machine = processes.iter().filter(|(machine, _)| *machine == host.machine);
            let ask = WindowAsk {
                from_ns: clock.to_host_ns(from_ns),
                to_ns: clock.to_host_ns(from_ns + measured.length.0),
                leaders,
                others: on_machine.map(|(_, pid)| *pid).collect(),
                device: host.device.name.clone(),
                speeds: testbed.speeds_of(host),
            };
            host.client.begin(HostAsk::Window(ask))
        };
        let answers = testbed.seats().map(ask).collect::<Result<_, _>>()?;
        let (length, next_try_ns, pause) = (measured.length, 0, Duration::ZERO);
        Ok(Self { testbed, from_ns, length, answers, next_try_ns, pause })
    }

    /// Asks all hosts.
    fn ask_all(
        &self,
        what: impl Fn(HostClock) -> AheadAsk,
    ) -> Vec<Result<PendingAnswer, LabError>> {
        let ask = |(host, _, clock): (&ConnectedHost, Seat, HostClock)| {
            host.client.begin(HostAsk::Ahead { what: what(clock) })
        };
        self.testbed.seats().map(ask).collect()
    }

    /// Whether all hosts answer so soon. An order that reaches one of them late leaves it with a window of its own, so none is
    /// given while a load takes the link or the CPU of a control connection. Asks for what holds already.
    fn answers_within(&self, limit: Duration, stop: &AtomicBool) -> Result<bool, LabError> {
        let until_ns = monotonic_ns() + limit.as_nanos() as u64;
        agree(self.ask_all(|_| AheadAsk::AsArmed), until_ns, stop, |(): &()| true)
    }
}

/// Whether all hosts give the wanted answer until then. One that is lost is found out when its results are wanted.
fn agree<T: DeserializeOwned>(
    asked: Vec<Result<PendingAnswer, LabError>>,
    until_ns: u64,
    stop: &AtomicBool,
    is_wanted: impl Fn(&T) -> bool,
) -> Result<bool, LabError> {
    for asked in asked {
        let left = Duration::from_nanos(until_ns.saturating_sub(monotonic_ns()));
        match asked.and_then(|answer| answer.wait_or_stop::<T>(left, stop)) {
            Ok(answer) if is_wanted(&answer) => {}
            Err(LabError::Interrupted) => return Err(LabError::Interrupted),
            _ => return Ok(false),
        }
    }
    Ok(true)
}

impl Window for RemoteWindow<'_> {
    fn start_ns(&self) -> u64 {
        self.from_ns
    }

    fn settled(&mut self, stop: &AtomicBool) -> Result<bool, LabError> {
        let lead = self.testbed.window_lead();
        let lead_ns = lead.as_nanos() as u64;
        let begin_ns =
            || Some(monotonic_ns() + lead_ns).filter(|begin_ns| *begin_ns < self.from_ns);
        if begin_ns().is_none() {
            return Ok(true);
        }
        if monotonic_ns() < self.next_try_ns {
            return Ok(false);
        }
        // Twice: where each second answer is lost, one says little.
        if !(self.answers_within(lead / 4, stop)? && self.answers_within(lead / 4, stop)?) {
            // Twice as long each time: questions to a silent host pile up.
            self.pause = (2 * self.pause).max(lead / 8);
            self.next_try_ns = monotonic_ns() + self.pause.as_nanos() as u64;
            return Ok(false);
        }
        let Some(from_ns) = begin_ns() else { return Ok(true) };
        let to_ns = from_ns + self.length.0;
        // A quarter of the lead for the order, one for its answer, and a half for undoing it.
        let by_ns = from_ns - 3 * (lead_ns / 4);
        let earlier = |clock: HostClock| AheadAsk::Earlier {
            from_ns: clock.to_host_ns(from_ns),
            to_ns: clock.to_host_ns(to_ns),
            by_ns: clock.to_host_ns(by_ns),
        };
        let until_ns = from_ns - lead_ns / 2;
        if agree(self.ask_all(earlier), until_ns, stop, |is_taken: &bool| *is_taken)? {
            self.from_ns = from_ns;
            return Ok(true);
        }
        // Also those that were silent: the order may reach them yet. Nobody waits for their answers: each host says afterwards
        // which window it measured.
        drop(self.ask_all(|_| AheadAsk::AsArmed));
        Ok(true)
    }

    fn include(&mut self, _: i32) {}

    fn close(self: Box<Self>, _: &dyn Testbed) -> Result<Windowed, LabError> {
        let (mut betweens, mut first, mut last) = (Vec::new(), Vec::new(), Vec::new());
        let mut all = Windowed::default();
        for (answer, (host, seat, clock)) in self.answers.into_iter().zip(self.testbed.seats()) {
            let measured: MeasuredWindow = answer.wait(AFTER_WINDOW)?;
            let to_ns = self.from_ns + self.length.0;
            let wanted_ns = [self.from_ns, to_ns].map(|at| clock.to_host_ns(at));
            all.faults.extend(other_window(host.client.alias(), measured.window_ns, wanted_ns));
            betweens.push(here(measured.between, clock));
            let worst = &mut all.uneven_ns[usize::from(seat.side == PathSide::Rx)];
            *worst = measured.uneven_ns.max(*worst);
            let alias = host.client.alias();
            all.costs.extend(measured.cost.map(|cost| (alias.to_owned(), cost)));
            all.faults.extend(measured.faults.iter().map(|fault| format!("{alias}: {fault}")));
            let named = |said: Warning| Warning { text: format!("{alias}: {}", said.text), ..said };
            all.warnings.extend(measured.warnings.into_iter().map(named));
            let [begin, end] = measured.counters;
            first.push(begin);
            last.push(end);
        }
        let hosts = self.testbed.hosts;
        let receiver = hosts.senders.len();
        let ends = first.get(receiver).zip(last.get(receiver));
        all.moved_s = ends.map_or(0.0, |(a, b)| seconds(a, b));
        let first = self.testbed.named(first, self.from_ns);
        let last = self.testbed.named(last, self.from_ns + self.length.0);
        let mut of_receivers = betweens.split_off(receiver);
        let between = of_receivers.first().cloned().unwrap_or_default();
        if hosts.share_a_clock {
            betweens.clear();
        }
        let apart = if hosts.share_a_clock { Vec::new() } else { hosts.apart() };
        if hosts.share_a_clock || of_receivers.len() < 2 {
            of_receivers.clear();
        }
        let distinct = 0..of_receivers.len();
        let distinct = distinct.filter(|at| hosts.is_first_on_machine(PathSide::Rx, *at));
        all.distinct_receivers = distinct.collect();
        let (of_senders, moved) = (betweens, last.since(&first));
        Ok(Windowed { between, of_receivers, of_senders, apart, moved, ..all })
    }
}

/// What two hosts measured between different instants is never one window.
fn other_window(alias: &str, window_ns: [u64; 2], wanted_ns: [u64; 2]) -> Option<String> {
    let is_other = window_ns != wanted_ns;
    is_other.then(|| format!("{alias}: it measured another window than it was to"))
}

/// The processes of a side's programs, of each of its hosts.
fn own(measured: &Measured, side: PathSide) -> &[Vec<i32>] {
    if side == PathSide::Tx { &measured.loads } else { &measured.serves }
}

/// CPU time with its instants on the clock of the testbed.
fn here(between: Between, clock: HostClock) -> Between {
    Between { window_ns: between.window_ns.map(|at| clock.from_host_ns(at)), ..between }
}

/// The experiment's processes with their machines: none of them is foreign load there.
fn processes(hosts: &Hosts, measured: &Measured) -> Vec<(usize, i32)> {
    let mut all = Vec::new();
    for (Seat { side, index }, host) in hosts.seats() {
        let workloads = own(measured, side).get(index).into_iter().flatten().copied();
        all.extend(std::iter::once(host.hello.pid).chain(workloads).map(|pid| (host.machine, pid)));
    }
    let machine = |seat: Seat| hosts.of(seat.side).get(seat.index).map(|host| host.machine);
    all.extend(measured.others.iter().filter_map(|(seat, pid)| Some((machine(*seat)?, *pid))));
    let here = hosts.coordinator.map(|machine| (machine, std::process::id() as i32));
    all.into_iter().chain(here).collect()
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::atomic::Ordering;

    use super::*;
    use crate::endpoint::client::{Client, PROMPT};
    use crate::endpoint::wire::MARKER;

    /// Its host does not answer.
    #[test]
    fn a_signal_ends_the_wait_for_hosts_to_take_an_earlier_window() {
        let mut transport = Command::new("sh");
        transport.args(["-c", &format!("echo '{MARKER}'; exec cat 3>&1 >/dev/null")]);
        let silent = Client::start("gen1", transport, PROMPT).unwrap().unwrap();
        let agreed = |limit: Duration, stop: &AtomicBool| {
            let asked = vec![silent.begin(HostAsk::Ahead { what: AheadAsk::AsArmed })];
            agree(asked, monotonic_ns() + limit.as_nanos() as u64, stop, |(): &()| true)
        };
        let stop = AtomicBool::new(false);
        assert!(!agreed(Duration::from_millis(50), &stop).unwrap());
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| agreed(PROMPT, &stop));
            stop.store(true, Ordering::Relaxed);
            assert!(matches!(waits.join().unwrap(), Err(LabError::Interrupted)));
        });
        assert!(matches!(agreed(PROMPT, &stop), Err(LabError::Interrupted)));
    }

    #[test]
    fn a_host_that_measured_between_other_instants_is_a_fault() {
        assert_eq!(other_window("sut", [105, 205], [105, 205]), None);
        let told = other_window("sut", [55, 155], [105, 205]).unwrap();
        assert_eq!(told, "sut: it measured another window than it was to");
        assert!(other_window("sut", [105, 204], [105, 205]).is_some());
    }
}
