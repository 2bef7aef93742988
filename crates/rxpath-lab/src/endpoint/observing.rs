//! Observers by BPF that an endpoint runs on its host for a trial.
//!
//! They live in a thread of their own from [`ObserveAsk::Start`] to [`ObserveAsk::End`]: a victim's command dies with the
//! thread that starts it, and the endpoint answers meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use rxpath_bpf::account::calibrate::IrqCalibration;
use rxpath_core::{Nanos, PathSide};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ahead::Ahead;
use super::faults;
use super::outlet::{Outlet, json};
use super::window::HostWindow;
use crate::clock::monotonic_ns;
use crate::error::LabError;
use crate::scenario::spec::{Background, Observe};
use crate::stoppable::Stoppable;
use crate::trial::observers::{self, Observed, Observers, Observing};
use crate::trial::phase;

/// What a coordinator may want of the observers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ObserveAsk {
    /// Whether these run here: null, or an error that says what is missing.
    Try {
        /// Which.
        wanted: Observe,
    },
    /// What an interrupt costs here: an [`IrqCalibration`], after six seconds.
    Calibrate {
        /// The CPU to measure.
        cpu: Option<u32>,
    },
    /// Starts those of a trial.
    Start(Box<ObserveStart>),
    /// Watches the window that lies ahead: an [`Observed`], once it is over.
    Window,
    /// Ends them: an [`Observed`], of what was watched over the whole trial.
    End,
}

/// The observers of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ObserveStart {
    /// Which.
    pub observe: Observe,
    /// With the victim.
    pub background: Background,
    /// What an interrupt costs here.
    pub calibration: Option<IrqCalibration>,
    /// Inode of the network namespace whose packets are followed.
    pub netns: Option<u32>,
    /// The side of each network namespace of the experiment.
    pub sides: Vec<(u32, PathSide)>,
}

/// The observers of an endpoint, if any run.
#[derive(Default)]
pub struct HostObservers {
    running: Option<Running>,
    /// The process of the victim, once it has one of its own; 0 before.
    pub(super) victim: Arc<AtomicI32>,
}

struct Running {
    /// Dropped first: without them the thread ends.
    orders: Sender<(u64, Order)>,
    thread: Stoppable<()>,
}

enum Order {
    Window(Arc<Ahead>),
    End,
}

impl HostObservers {
    /// Does what is wanted; each answer comes from a thread.
    pub fn answer(
        &mut self,
        id: u64,
        ask: ObserveAsk,
        window: &HostWindow,
        outlet: &Arc<Outlet>,
    ) -> Result<(), LabError> {
        match ask {
            ObserveAsk::Try { wanted } => outlet.later(id, move |_| observers::can_run(&wanted)),
            ObserveAsk::Calibrate { cpu } => outlet.later(id, move |_| observers::calibrate(cpu)),
            ObserveAsk::Start(start) => {
                // One trial at a time: what a trial that failed left ends first.
                self.running = None;
                self.victim.store(0, Ordering::Relaxed);
                self.running = Some(Running::start(id, *start, (outlet, Arc::clone(&self.victim))));
            }
            ObserveAsk::Window => self.order(id, Order::Window(Arc::clone(window.ahead()?)))?,
            ObserveAsk::End => {
                if let Some(running) = self.running.take() {
                    // A window that still lasts ends.
                    running.thread.stop();
                    let _ = running.orders.send((id, Order::End));
                } else {
                    outlet.answer(id, json(&Observed::default()));
                }
            }
        }
        Ok(())
    }

    fn order(&self, id: u64, order: Order) -> Result<(), LabError> {
        let running = self.running.as_ref();
        let taken = running.is_some_and(|running| running.orders.send((id, order)).is_ok());
        taken.then_some(()).ok_or_else(|| LabError::internal("nothing observes"))
    }
}

impl Running {
    fn start(
        id: u64,
        start: ObserveStart,
        (outlet, victim): (&Arc<Outlet>, Arc<AtomicI32>),
    ) -> Self {
        let (orders, taken) = channel();
        let outlet = Arc::clone(outlet);
        let thread = Stoppable::start(move |stop| {
            let ObserveStart { observe, background, calibration, netns, sides } = start;
            let started = Observers::start(&observe, &background, calibration, netns);
            match started.map_err(LabError::from) {
                Ok(observers) => {
                    outlet.answer(id, Ok(Value::Null));
                    let observers = Box::new(observers);
                    let watch = Watch { observers, sides, stop: Arc::clone(stop), victim };
                    watch.follow(&taken, &outlet);
                }
                Err(error) => {
                    outlet.answer(id, Err(error));
                    // The coordinator ends the trial, with a request that wants its answer.
                    for (id, _) in taken {
                        outlet.answer(id, json(&Observed::default()));
                    }
                }
            }
        });
        Self { orders, thread }
    }
}

/// The observers in their thread.
struct Watch {
    observers: Box<dyn Observing>,
    sides: Vec<(u32, PathSide)>,
    stop: Arc<AtomicBool>,
    victim: Arc<AtomicI32>,
}

impl Watch {
    fn follow(mut self, orders: &Receiver<(u64, Order)>, outlet: &Outlet) {
        for (id, order) in orders {
            let mut seen = Observed::default();
            let done = match order {
                Order::Window(ahead) => self.window(&ahead, &mut seen),
                Order::End => {
                    let Self { observers, sides, .. } = &mut self;
                    observers.end(&|netns| side_of(sides, netns), &mut seen)
                }
            };
            outlet.answer(id, done.and_then(|()| json(&seen)));
        }
    }

    fn window(&mut self, ahead: &Ahead, seen: &mut Observed) -> Result<(), LabError> {
        let window_ns = ahead.wait(Duration::ZERO, &self.stop)?;
        let [from_ns, to_ns] = window_ns;
        self.observers.open(Nanos(to_ns.saturating_sub(from_ns)), None)?;
        // After that: they may take long to be attached. Reasons of drops are of the whole trial.
        let late = faults::late("its observers", window_ns, monotonic_ns());
        seen.faults.extend(late.filter(|_| self.observers.watches_window()));
        self.victim.store(self.observers.victim_pid().unwrap_or(0), Ordering::Relaxed);
        let Self { observers, sides, stop, .. } = self;
        phase::until(to_ns, stop, || {
            observers.note();
            Ok(false)
        })?;
        observers.close(&|netns| side_of(sides, netns), seen)
    }
}

fn side_of(sides: &[(u32, PathSide)], netns: u32) -> Option<PathSide> {
    sides.iter().find(|(own, _)| *own == netns).map(|(_, side)| *side)
}

#[cfg(test)]
mod tests {
    use rxpath_host::lab::owner::Owner;

    use super::*;
    use crate::trial::sides::Sides;

    const MS: u64 = 1_000_000;

    /// Observers of the window that are attached after this time.
    struct Slow(Duration);

    impl Observing for Slow {
        fn open(&mut self, _: Nanos, _: Option<&Owner>) -> Result<(), LabError> {
            // why: the time that attaching takes is what is tested.
            std::thread::sleep(self.0);
            Ok(())
        }

        fn watches_window(&self) -> bool {
            true
        }

        fn close(&mut self, _: Sides<'_>, _: &mut Observed) -> Result<(), LabError> {
            Ok(())
        }

        fn end(&mut self, _: Sides<'_>, _: &mut Observed) -> Result<(), LabError> {
            Ok(())
        }
    }

    /// What these say of a window that began so long ago.
    fn faults(observers: Box<dyn Observing>, ago_ns: u64, length_ns: u64) -> Vec<String> {
        let (stop, victim) = (Arc::default(), Arc::default());
        let mut watch = Watch { observers, sides: Vec::new(), stop, victim };
        let from_ns = monotonic_ns().saturating_sub(ago_ns);
        let mut seen = Observed::default();
        watch.window(&Ahead::armed([from_ns, from_ns + length_ns]), &mut seen).unwrap();
        seen.faults
    }

    #[test]
    fn observers_that_begin_after_the_begin_of_the_window_say_how_late_they_were() {
        let missed = "its observers missed the begin of its window by ";
        // The order came late.
        let [fault]: [String; 1] =
            faults(Box::new(Slow(Duration::ZERO)), 1_000 * MS, 500 * MS).try_into().unwrap();
        assert!(fault.starts_with(missed), "{fault}");
        // It came in time, and they were attached late.
        let slow = Slow(Duration::from_millis(30));
        let [fault]: [String; 1] = faults(Box::new(slow), 0, 100 * MS).try_into().unwrap();
        assert!(fault.starts_with(missed), "{fault}");
    }

    #[test]
    fn observers_of_the_whole_trial_miss_no_window() {
        let none = faults(Box::new(Observers::default()), 1_000 * MS, 500 * MS);
        assert_eq!(none, Vec::<String>::new());
    }
}
