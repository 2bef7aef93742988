//! Hooks that run for each packet: attached all the time while that costs little, by turns where it would cost much.
//!
//! After a turn it is known how many packets the busiest CPU received in it, and the pause is made so long that the hooks
//! take [`SHARE`] of that CPU's time, as far as [`LONGEST_PAUSE`] allows: of a CPU that receives a million packets a second
//! they take 2 %.

use std::time::{Duration, Instant};

use rxpath_host::HostError;

use crate::object::Loaded;

/// A turn: long enough for thousands of packets where they come fast.
const TURN: Duration = Duration::from_millis(50);

/// What the hooks may take of the time of the CPU that receives most.
const SHARE: f64 = 0.005;

/// However much comes, it is looked at this often.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Attaching and detaching cost too (code is patched on every CPU): not for less than this.
const SHORTEST_PAUSE: Duration = Duration::from_millis(25);

/// Which packets are looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// Every packet, as long as that takes little of the CPU that receives most; above that by turns.
    #[default]
    ByTurns,
    /// Every packet, whatever it takes.
    Every,
}

/// The hooks of a probe that run for each packet.
#[derive(Debug)]
pub struct PacketHooks {
    /// The programs, in the order in which they are attached.
    names: &'static [&'static str],
    /// What all of them together take of a CPU for each packet, about.
    cost: Duration,
    begun: Instant,
    /// None when every packet is looked at.
    turns: Option<Turns>,
    /// Packets of each CPU when this turn began.
    received: Vec<u64>,
}

/// What the hooks of a probe need beside being attached.
pub struct Around<'a> {
    /// Before each turn.
    pub begin: &'a dyn Fn(&Loaded) -> Result<(), HostError>,
    /// Packets of each CPU since the start.
    pub received: &'a dyn Fn(&Loaded) -> Result<Vec<u64>, HostError>,
}

impl PacketHooks {
    /// Not attached yet.
    pub fn new(names: &'static [&'static str], cost: Duration, pace: Pace) -> Self {
        let turns = (pace == Pace::ByTurns).then(Turns::new);
        Self { names, cost, begun: Instant::now(), turns, received: Vec::new() }
    }

    /// The first turn begins.
    pub fn attach(&mut self, loaded: &mut Loaded, around: &Around<'_>) -> Result<(), HostError> {
        self.received = (around.received)(loaded)?;
        self.begun = Instant::now();
        (around.begin)(loaded)?;
        attach(loaded, self.names)
    }

    /// The first turn begins anew: what was attached for it stays.
    pub fn begin(&mut self, loaded: &Loaded, around: &Around<'_>) -> Result<(), HostError> {
        self.received = (around.received)(loaded)?;
        self.turns = self.turns.take().map(|_| Turns::new());
        self.begun = Instant::now();
        (around.begin)(loaded)
    }

    /// To be called some fifty times a second: begins and ends turns. After an error no turn follows.
    pub fn note(&mut self, loaded: &mut Loaded, around: &Around<'_>) -> Result<(), HostError> {
        self.take(self.due(), loaded, around)
    }

    /// Takes the step that is [due](PacketHooks::due).
    pub fn take(
        &mut self,
        step: Step,
        loaded: &mut Loaded,
        around: &Around<'_>,
    ) -> Result<(), HostError> {
        let stepped = self.step(step, loaded, around);
        if stepped.is_err() {
            self.turns = Some(Turns::ended(self.looked()));
            loaded.detach_some(self.names);
        }
        stepped
    }

    fn step(
        &mut self,
        step: Step,
        loaded: &mut Loaded,
        around: &Around<'_>,
    ) -> Result<(), HostError> {
        let Some(turns) = &mut self.turns else { return Ok(()) };
        match step {
            Step::End => {
                let now = self.begun.elapsed();
                let received = (around.received)(loaded)?;
                let gains = received.iter().zip(&self.received);
                let most = gains.map(|(now, old)| now.saturating_sub(*old)).max().unwrap_or(0);
                self.received = received;
                if turns.end(now, most, self.cost) {
                    let last_first: Vec<&str> = self.names.iter().rev().copied().collect();
                    loaded.detach_some(&last_first);
                }
            }
            Step::Begin => {
                (around.begin)(loaded)?;
                attach(loaded, self.names)?;
                turns.begin(self.begun.elapsed());
            }
            Step::Stay => {}
        }
        Ok(())
    }

    /// What is to be done now.
    pub fn due(&self) -> Step {
        self.turns.as_ref().map_or(Step::Stay, |turns| turns.step(self.begun.elapsed()))
    }

    /// Whether packets are looked at now.
    pub fn is_looking(&self) -> bool {
        self.turns.as_ref().is_none_or(|turns| turns.looking)
    }

    /// For how long packets were looked at, since the start.
    pub fn looked(&self) -> Duration {
        let now = self.begun.elapsed();
        self.turns.as_ref().map_or(now, |turns| turns.looked(now))
    }
}

/// Attaches all of them or none: with one missing nothing would be seen.
fn attach(loaded: &mut Loaded, names: &[&str]) -> Result<(), HostError> {
    let attached = loaded.attach_some(names);
    let missing = names.iter().find(|name| !loaded.is_attached(name));
    if attached.is_err() || missing.is_some() {
        loaded.detach_some(names);
    }
    attached?;
    missing.map_or(Ok(()), |name| {
        Err(HostError::Unsupported {
            what: format!("look at each packet with {name}"),
            needs: "a kernel that attaches it".into(),
        })
    })
}

/// Turns and pauses so far. Times are since the first turn began.
#[derive(Debug)]
struct Turns {
    looking: bool,
    /// When this turn or pause began.
    begun: Duration,
    pause: Duration,
    /// In the turns that are over.
    looked: Duration,
}

/// What is to be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing.
    Stay,
    /// The time of a turn has passed: it ends, or the next one begins at once.
    End,
    /// The time of a pause has passed: a turn begins.
    Begin,
}

impl Turns {
    /// The first turn begins.
    fn new() -> Self {
        let zero = Duration::ZERO;
        Self { looking: true, begun: zero, pause: zero, looked: zero }
    }

    /// None follows any more.
    fn ended(looked: Duration) -> Self {
        Self { looking: false, begun: Duration::ZERO, pause: Duration::MAX, looked }
    }

    /// What is to be done at this time.
    fn step(&self, now: Duration) -> Step {
        let passed = now.saturating_sub(self.begun);
        match self.looking {
            true if passed >= TURN => Step::End,
            false if passed >= self.pause => Step::Begin,
            _ => Step::Stay,
        }
    }

    /// A turn's time has passed, in which the busiest CPU received this many packets, each of which costs so much. Gives
    /// whether a pause follows; otherwise the next turn has begun.
    fn end(&mut self, now: Duration, packets: u64, cost: Duration) -> bool {
        let turn = now.saturating_sub(self.begun);
        self.looked += turn;
        self.begun = now;
        self.pause = pause(turn, packets, cost);
        self.looking = self.pause.is_zero();
        !self.looking
    }

    /// A turn begins.
    fn begin(&mut self, now: Duration) {
        self.begun = now;
        self.looking = true;
    }

    /// For how long was looked, up to this time.
    fn looked(&self, now: Duration) -> Duration {
        let current = if self.looking { now.saturating_sub(self.begun) } else { Duration::ZERO };
        self.looked + current
    }
}

/// The pause after a turn: with it, what the hooks took in the turn is [`SHARE`] of the time.
fn pause(turn: Duration, packets: u64, cost: Duration) -> Duration {
    let whole = packets as f64 * cost.as_secs_f64() / SHARE;
    let pause = (whole - turn.as_secs_f64()).clamp(0.0, LONGEST_PAUSE.as_secs_f64());
    let pause = Duration::from_secs_f64(pause);
    if pause < SHORTEST_PAUSE { Duration::ZERO } else { pause }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;
    const NS: fn(u64) -> Duration = Duration::from_nanos;

    #[test]
    fn few_packets_are_all_looked_at() {
        let mut turns = Turns::new();
        assert_eq!(turns.step(MS(49)), Step::Stay);
        assert_eq!(turns.step(MS(60)), Step::End);
        // 600 packets of 500 ns are half a percent of 60 ms.
        assert!(!turns.end(MS(60), 600, NS(500)));
        assert_eq!(turns.step(MS(100)), Step::Stay);
        assert_eq!(turns.looked(MS(100)), MS(100));
    }

    #[test]
    fn many_are_looked_at_by_turns() {
        let mut turns = Turns::new();
        // 10,000 of 500 ns are 5 ms: half a percent of a second.
        assert!(turns.end(MS(50), 10_000, NS(500)));
        assert_eq!((turns.step(MS(999)), turns.step(MS(1000))), (Step::Stay, Step::Begin));
        assert_eq!(turns.looked(MS(999)), MS(50));
        turns.begin(MS(1001));
        assert_eq!(turns.looked(MS(1011)), MS(60));
        assert!(!turns.end(MS(1051), 0, NS(500)), "nothing came: nothing to spare");
    }

    proptest! {
        #[test]
        fn a_pause_keeps_the_share_or_is_the_longest(
            turn in 1u64..500, packets in 0u64..10_000_000, cost in 10u64..5_000,
        ) {
            let pause = pause(MS(turn), packets, NS(cost));
            let whole = (MS(turn) + pause).as_secs_f64();
            let taken = packets as f64 * cost as f64 * 1e-9 / whole;
            let least = SHORTEST_PAUSE.as_secs_f64();
            prop_assert!(pause == LONGEST_PAUSE || taken <= SHARE * (whole + least) / whole + 1e-9);
            prop_assert!(pause.is_zero() || pause >= SHORTEST_PAUSE);
        }
    }
}
