//! Per-packet hooks: always attached while that costs little, duty-cycled where it would cost much.
//!
//! After a turn (the attached part of a cycle) the number of packets of the busiest CPU is known. The pause is then
//! made long enough that the hooks take a fixed share of that CPU's time, up to the longest pause: at a million
//! packets/s they take 2 % of that CPU.
//!
//! [`Turns`] is the arithmetic alone, for callers that know the cost of a turn of several probes. Programs are detached
//! in the reverse order of attaching: removing the first of several from a tracepoint makes the kernel wait for readers
//! (8 to 16 ms each, kernel/tracepoint.c `tracepoint_remove_func`), removing the last takes 0.1 ms.

use std::time::{Duration, Instant};

use rxpath_host::HostError;

use crate::object::Loaded;

/// A turn: long enough for thousands of packets where they come fast.
const TURN: Duration = Duration::from_millis(50);

/// For hooks that run for each packet: a share of the CPU that receives most.
const PACKETS: Rhythm = Rhythm {
    share: 0.005,
    shortest_turn: TURN,
    longest_turn: TURN,
    cycle: Duration::from_secs(1),
    longest_pause: Duration::from_secs(1),
};

/// Attaching and detaching cost too (code is patched on every CPU): not for less than this.
const SHORTEST_PAUSE: Duration = Duration::from_millis(25);

/// Which packets are traced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// Every packet, while that takes little of the CPU that receives most; above that, duty-cycled.
    #[default]
    ByTurns,
    /// In turns that the owner begins and ends.
    OnCall,
    /// Every packet, whatever it costs.
    Every,
}

/// The hooks of a probe that run for each packet.
#[derive(Debug)]
pub struct PacketHooks {
    /// The programs, in the order in which they are attached.
    names: &'static [&'static str],
    /// Approximate CPU time of all of them together for each packet.
    cost: Duration,
    around: Around,
    begun: Instant,
    /// None when every packet is traced.
    turns: Option<Turns>,
    /// Turns do not depend on their cost.
    on_call: bool,
    /// Packets of each CPU when this turn began.
    received: Vec<u64>,
}

/// What the hooks of a probe need in addition to being attached.
#[derive(Clone, Copy, Debug)]
pub struct Around {
    /// Before each turn but that of [`PacketHooks::attach`].
    pub begin: fn(&Loaded) -> Result<(), HostError>,
    /// Packets of each of these CPUs since the start.
    pub received: fn(&Loaded, &[u32]) -> Result<Vec<u64>, HostError>,
}

impl PacketHooks {
    /// Not attached yet.
    pub fn new(names: &'static [&'static str], cost: Duration, pace: Pace, around: Around) -> Self {
        let turns = (pace != Pace::Every).then(|| Turns::new(PACKETS));
        let (begun, on_call) = (Instant::now(), pace == Pace::OnCall);
        Self { names, cost, around, begun, turns, on_call, received: Vec::new() }
    }

    /// The first turn begins, without [`Around::begin`].
    pub fn attach(&mut self, loaded: &mut Loaded, cpus: &[u32]) -> Result<(), HostError> {
        self.received = (self.around.received)(loaded, cpus)?;
        self.begun = Instant::now();
        attach(loaded, self.names)
    }

    /// The first turn begins again: the attached programs stay.
    pub fn begin(&mut self, loaded: &Loaded, cpus: &[u32]) -> Result<(), HostError> {
        self.received = (self.around.received)(loaded, cpus)?;
        self.turns = self.turns.take().map(|_| Turns::new(PACKETS));
        self.begun = Instant::now();
        (self.around.begin)(loaded)
    }

    /// Takes the step that is [due](PacketHooks::due), about 50 times a second. After an error no turn follows.
    pub fn take(
        &mut self,
        step: TurnStep,
        loaded: &mut Loaded,
        cpus: &[u32],
    ) -> Result<(), HostError> {
        let stepped = self.step(step, loaded, cpus);
        if stepped.is_err() {
            let now = self.begun.elapsed();
            self.turns.get_or_insert_with(|| Turns::new(PACKETS)).stop(now);
            loaded.detach_some(self.names);
        }
        stepped
    }

    fn step(&mut self, step: TurnStep, loaded: &mut Loaded, cpus: &[u32]) -> Result<(), HostError> {
        let Some(turns) = &mut self.turns else { return Ok(()) };
        match step {
            TurnStep::End => {
                let now = self.begun.elapsed();
                let received = (self.around.received)(loaded, cpus)?;
                let gains = received.iter().zip(&self.received);
                let most = gains.map(|(now, old)| now.saturating_sub(*old)).max().unwrap_or(0);
                self.received = received;
                let programs = Duration::from_secs_f64(most as f64 * self.cost.as_secs_f64());
                if self.on_call {
                    turns.stop(now);
                } else {
                    turns.end(now, Spent { programs, ..Spent::default() });
                }
                if !turns.is_looking() {
                    let last_first: Vec<&str> = self.names.iter().rev().copied().collect();
                    loaded.detach_some(&last_first);
                }
            }
            TurnStep::Begin => {
                (self.around.begin)(loaded)?;
                attach(loaded, self.names)?;
                turns.begin(self.begun.elapsed());
            }
            TurnStep::Stay => {}
        }
        Ok(())
    }

    /// What is to be done now.
    pub fn due(&self) -> TurnStep {
        let turns = self.turns.as_ref().filter(|_| !self.on_call);
        turns.map_or(TurnStep::Stay, |turns| turns.step(self.begun.elapsed()))
    }

    /// Whether packets are traced now.
    pub fn is_looking(&self) -> bool {
        self.turns.as_ref().is_none_or(Turns::is_looking)
    }

    /// How long packets were traced, since the start.
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
        let what = format!("trace each packet with {name}");
        Err(HostError::unsupported(what, "a kernel that attaches it"))
    })
}

/// How turns and pauses follow each other.
#[derive(Clone, Copy, Debug)]
pub struct Rhythm {
    /// Share of one CPU that the programs and their attaching take.
    pub share: f64,
    /// Length of the first turn, and of turns at high event rates.
    pub shortest_turn: Duration,
    /// Length of turns at low event rates; without a pause, the decision whether one follows is made this often.
    pub longest_turn: Duration,
    /// A turn and its pause together, as long as the lengths of turns allow it.
    pub cycle: Duration,
    /// The longest cycle: events are traced at least this often, at any rate.
    pub longest_pause: Duration,
}

/// What a turn took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    /// Time of the programs in the turn.
    pub programs: Duration,
    /// CPU time of attaching and detaching them; not spent without a pause.
    pub switching: Duration,
}

/// Turns and pauses so far. Times are since the first turn began.
#[derive(Debug)]
pub struct Turns {
    rhythm: Rhythm,
    looking: bool,
    /// When this turn or pause began.
    begun: Duration,
    /// How long this turn, or the next one, lasts.
    turn: Duration,
    pause: Duration,
    /// What the turns since the last pause took beyond their share.
    debt_s: f64,
    /// In the turns that are over.
    looked: Duration,
}

/// What is to be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnStep {
    /// Nothing.
    Stay,
    /// The time of a turn has passed: it ends, or the next one begins at once.
    End,
    /// The time of a pause has passed: a turn begins.
    Begin,
}

impl Turns {
    /// The first turn begins.
    pub fn new(rhythm: Rhythm) -> Self {
        let zero = Duration::ZERO;
        let turn = rhythm.shortest_turn;
        Self { rhythm, looking: true, begun: zero, turn, pause: zero, debt_s: 0.0, looked: zero }
    }

    /// What turns take from now on.
    pub fn set_share(&mut self, share: f64) {
        self.rhythm.share = share;
    }

    /// None follows any more, unless one is begun.
    pub fn stop(&mut self, now: Duration) {
        self.looked = self.looked(now);
        (self.looking, self.begun, self.pause) = (false, Duration::ZERO, Duration::MAX);
    }

    /// Whether a turn lasts.
    pub fn is_looking(&self) -> bool {
        self.looking
    }

    /// Whether a turn lasts that is short because it costs much.
    pub fn is_short(&self) -> bool {
        self.looking && self.turn < self.rhythm.longest_turn
    }

    /// When the turn or pause is over.
    pub fn due(&self) -> Duration {
        self.begun.saturating_add(if self.looking { self.turn } else { self.pause })
    }

    /// What is to be done at this time.
    pub fn step(&self, now: Duration) -> TurnStep {
        match self.looking {
            _ if now < self.due() => TurnStep::Stay,
            true => TurnStep::End,
            false => TurnStep::Begin,
        }
    }

    /// A turn's time has passed, and this was spent on it. Gives whether a pause follows; otherwise the next turn has
    /// begun.
    pub fn end(&mut self, now: Duration, spent: Spent) -> bool {
        let turn = now.saturating_sub(self.begun);
        self.looked += turn;
        self.begun = now;
        let own_s = self.rhythm.share * turn.as_secs_f64();
        self.debt_s = (self.debt_s + spent.programs.as_secs_f64() - own_s).max(0.0);
        self.pause = self.rhythm.pause(self.debt_s, spent.switching);
        if !self.pause.is_zero() {
            self.debt_s = 0.0;
        }
        self.turn = self.rhythm.turn(turn, spent);
        self.looking = self.pause.is_zero();
        !self.looking
    }

    /// A turn begins.
    pub fn begin(&mut self, now: Duration) {
        self.begun = now;
        self.looking = true;
    }

    /// How long events were traced, up to this time.
    pub fn looked(&self, now: Duration) -> Duration {
        let current = if self.looking { now.saturating_sub(self.begun) } else { Duration::ZERO };
        self.looked + current
    }
}

impl Rhythm {
    /// The pause that compensates what turns took beyond their share, and its own cost; below that cost there is no
    /// pause.
    fn pause(&self, debt_s: f64, switching: Duration) -> Duration {
        let switching_s = switching.as_secs_f64();
        if debt_s <= switching_s {
            return Duration::ZERO;
        }
        let pause_s = ((debt_s + switching_s) / self.share).min(self.longest_pause.as_secs_f64());
        let pause = Duration::from_secs_f64(pause_s);
        if pause < SHORTEST_PAUSE { Duration::ZERO } else { pause }
    }

    /// The next turn, when this one spent that. At least as much time goes into tracing as into switching.
    fn turn(&self, turn: Duration, spent: Spent) -> Duration {
        let switching = spent.switching.as_secs_f64();
        let programs = (self.share * self.cycle.as_secs_f64() - switching).max(switching);
        let each = spent.programs.as_secs_f64() / turn.as_secs_f64().max(1e-9);
        let longest = self.longest_turn.as_secs_f64();
        let next = (programs / each.max(1e-9)).clamp(self.shortest_turn.as_secs_f64(), longest);
        Duration::from_secs_f64(next)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;
    const US: fn(u64) -> Duration = Duration::from_micros;

    const WATCH: Rhythm = Rhythm {
        share: 0.005,
        shortest_turn: Duration::from_millis(10),
        longest_turn: Duration::from_millis(100),
        cycle: Duration::from_secs(2),
        longest_pause: Duration::from_secs(30),
    };

    fn spent(programs: Duration) -> Spent {
        Spent { programs, ..Spent::default() }
    }

    #[test]
    fn few_packets_are_all_looked_at() {
        let mut turns = Turns::new(PACKETS);
        assert_eq!(turns.step(MS(49)), TurnStep::Stay);
        assert_eq!(turns.step(MS(60)), TurnStep::End);
        // 300 us are half a percent of 60 ms.
        assert!(!turns.end(MS(60), spent(US(300))));
        assert_eq!(turns.step(MS(100)), TurnStep::Stay);
        assert_eq!(turns.looked(MS(100)), MS(100));
    }

    #[test]
    fn many_are_looked_at_by_turns() {
        let mut turns = Turns::new(PACKETS);
        // 5 ms are half a percent of a second.
        assert!(turns.end(MS(50), spent(MS(5))));
        assert_eq!((turns.step(MS(999)), turns.step(MS(1000))), (TurnStep::Stay, TurnStep::Begin));
        assert_eq!(turns.looked(MS(999)), MS(50));
        turns.begin(MS(1001));
        assert_eq!(turns.looked(MS(1011)), MS(60));
        assert!(!turns.end(MS(1051), Spent::default()), "nothing came: nothing to spare");
        turns.stop(MS(1060));
        assert_eq!((turns.step(MS(1 << 40)), turns.looked(MS(2000))), (TurnStep::Stay, MS(109)));
    }

    #[test]
    fn a_turn_is_as_long_as_its_cost_allows_in_a_cycle() {
        let mut turns = Turns::new(WATCH);
        assert_eq!(turns.due(), MS(10));
        let cost = |programs| Spent { programs, switching: MS(4) };
        // A fifth of a CPU: a pause would cost more than was spent.
        assert!(!turns.end(MS(10), cost(MS(2))));
        // 10 ms in two seconds are 4 for switching and 6 for the programs, in a turn of 30 ms.
        assert_eq!((turns.due(), turns.is_short()), (MS(40), true));
        assert!(turns.end(MS(40), cost(MS(6))));
        assert_eq!(turns.due(), MS(2400), "12 ms of 2400");
        turns.begin(MS(2400));
        assert_eq!(turns.due(), MS(2430));
        assert!(turns.end(MS(2430), cost(MS(6))));
        assert_eq!(turns.due(), MS(4400), "10 ms of 2000");
        // Twenty times that: turns get short, the pause is longer.
        turns.begin(MS(4400));
        assert!(turns.end(MS(4430), cost(MS(120))));
        assert_eq!(turns.due(), MS(4400 + 24_800));
        turns.begin(MS(29_200));
        assert_eq!(turns.due(), MS(29_210));
        // Little happens: no pause, and nothing is spent on switching.
        assert!(!turns.end(MS(29_210), cost(US(40))));
        assert_eq!((turns.due(), turns.is_short()), (MS(29_310), false));
    }

    #[test]
    fn a_little_too_much_is_paid_for_once_it_is_as_much_as_a_pause_costs() {
        let mut turns = Turns::new(WATCH);
        // 0.1 ms of each 100 ms beyond the share; a pause costs 4 ms.
        let spent = Spent { programs: US(600), switching: MS(4) };
        let pauses = (1..=41).filter(|turn| turns.end(MS(100 * turn), spent)).count();
        assert_eq!((pauses, turns.is_looking()), (1, false));
        let whole = turns.due();
        let taken = 41.0 * 0.000_6 + 0.004;
        assert!((taken / whole.as_secs_f64() - WATCH.share).abs() < 1e-6, "{taken} of {whole:?}");
    }

    proptest! {
        #[test]
        fn a_pause_keeps_the_share_or_is_the_longest(
            turn in 1u64..500, programs in 0u64..50_000_000, switching in 0u64..50_000,
        ) {
            let spent = Spent { programs: US(programs), switching: US(switching) };
            for rhythm in [PACKETS, WATCH] {
                let mut turns = Turns::new(rhythm);
                let pauses = turns.end(MS(turn), spent);
                let whole = if pauses { turns.due() } else { MS(turn) };
                let switching = if pauses { spent.switching } else { Duration::ZERO };
                let taken = (spent.programs + switching).as_secs_f64();
                // Owed still: less than a pause costs, or than the shortest one pays.
                let least = rhythm.share * SHORTEST_PAUSE.as_secs_f64();
                let most = rhythm.share * whole.as_secs_f64() + spent.switching.as_secs_f64().max(least);
                prop_assert!(turns.pause == rhythm.longest_pause || taken <= most + 1e-9);
                prop_assert!(!pauses || turns.pause >= SHORTEST_PAUSE);
                let next = rhythm.turn(MS(turn), spent);
                prop_assert!((rhythm.shortest_turn..=rhythm.longest_turn).contains(&next));
            }
        }
    }
}
