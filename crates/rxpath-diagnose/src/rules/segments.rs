//! Trials over TCP. TCP waits where UDP loses, so most limits are a thread or a CPU without time left.

use rxpath_core::PathSide;
use rxpath_record::ledger::PacketBounds;

use crate::rules::prelude::*;

/// The rules of a trial over TCP, in the order of [`super::ALL`]. A loss that is only possible comes after the limits that are
/// sure.
pub const ALL: &[super::DiagnosisRule] = &[lost, server, server_waits, client, softirq, maybe_lost];

fn lost(view: &View) -> Option<Claim> {
    let at = view.losses().filter(|drop| view.is_loss_at(drop.place, drop.packets));
    let most = at.max_by_key(|drop| drop.packets)?;
    let sentence = format!(
        "segments are lost at {}: {} of those that both sides sent",
        most.place.words().noun,
        percent(view.share_at(most.place, most.packets))
    );
    Some(
        Claim::new(Stage::TcpRetransmit, Confidence::Fair, &[Part::Ledger], sentence.clone())
            .losing(most.packets)
            .because(drops(view, most.place))
            .remedy(format!("find what dropped them: `{}` counted them", most.counter))
            .next(sentence),
    )
}

/// No loss is sure, and within the bounds of a counter there may be one: on shared hosts it has the segments of all programs.
fn maybe_lost(view: &View) -> Option<Claim> {
    if lost(view).is_some() {
        return None;
    }
    let (drop, most) = view.possible_losses().into_iter().next()?;
    let sentence = format!(
        "segments may be lost at {}: up to {} of {} that both sides sent",
        drop.place.words().noun,
        count(most.min(view.offered_packets())),
        count(view.offered_packets())
    );
    Some(
        Claim::new(Stage::TcpRetransmit, Confidence::Weak, &[Part::Ledger], sentence.clone())
            .because([drop_line(view, drop)])
            .remedy(format!(
                "find whose segments were dropped, and by what: `{}` counted them",
                drop.counter
            ))
            .next(sentence),
    )
}

/// The thread of this side that has least time left, in words.
fn busy(view: &View, side: &SideThreads) -> String {
    let ran = format!("its busiest thread ran {} of the window", percent(side.lead.running));
    match side.lead.at().and_then(|at| Some((at, view.busy_ratio(at)?))) {
        Some((at, busy)) => format!("{ran}, and {at} was {} busy", percent(busy)),
        None => ran,
    }
}

/// One end of the connections.
struct End<'v, 'a> {
    word: &'static str,
    side: &'v SideThreads<'a>,
    polls: bool,
}

/// The client and the server.
fn ends<'v, 'a>(view: &'v View<'a>) -> [End<'v, 'a>; 2] {
    let polls = |side: PathSide| view.raw.polling_sides.contains(&side);
    [
        End { word: "client", side: &view.sender, polls: polls(PathSide::Tx) },
        End { word: "server", side: &view.reader, polls: polls(PathSide::Rx) },
    ]
}

impl End<'_, '_> {
    /// Whether its CPU time shows that it has no time left.
    fn is_full(&self) -> bool {
        self.side.count > 0 && self.side.lead.pace() == ThreadSaturation::Full && !self.polls
    }

    /// What its busiest thread did.
    fn ran(&self) -> String {
        let running = percent(self.side.lead.running);
        let polls = if self.polls { ", because it polls instead of sleeping" } else { "" };
        format!("the {}'s busiest thread ran {running} of the window{polls}", self.word)
    }
}

fn full(
    view: &View,
    [end, other]: [&End; 2],
    stage: Stage,
    needs: &'static [Part],
) -> Option<Claim> {
    if !end.is_full() {
        return None;
    }
    let alone = other.side.count > 0 && !other.is_full();
    let (who, at) = (end.word, end.side.lead.at());
    let busy = busy(view, end.side);
    let sentence = format!("the {who} is the limit: {busy}");
    Some(
        Claim::new(stage, Confidence::strong_if(alone), needs, sentence)
            .on(end.side.lead.cpu_here())
            .because([lead(who, end.side)])
            .because(cpu_and_others(view, at))
            .next(format!("the {who}: {busy}")),
    )
}

fn server(view: &View) -> Option<Claim> {
    let [client, server] = ends(view);
    let needs = &[Part::Window, Part::Cpus, Part::Readers];
    Some(
        full(view, [&server, &client], Stage::Application, needs)?
            .remedy("more threads of the server, each on a CPU of its own (`--threads`)")
            .remedy(
                "less work per request in the server (`--work`), or more bytes per system call",
            ),
    )
}

/// Whether other threads were on the server's CPU for a good part of the time in which it waited. A thread that is woken
/// is ready before its CPU switches to it: tens of thousands of requests a second add up to as much.
fn others_took_it(view: &View) -> bool {
    let lead = &view.reader.lead;
    let usage = lead.cpu.and_then(|cpu| view.cpu(cpu));
    let foreign = usage.and_then(|usage| usage.foreign_ratio).map_or(0.0, sound_ratio);
    foreign >= lead.waiting / 2.0 || view.sender_on_reader().is_some() || lead.cpu.is_none()
}

fn server_waits(view: &View) -> Option<Claim> {
    let side = &view.reader;
    if side.count == 0 || side.lead.pace() != ThreadSaturation::KeptWaiting || !others_took_it(view)
    {
        return None;
    }
    let sentence = format!(
        "the server waits for its CPU: its busiest thread ran {} of the window and was ready to run for another {}",
        percent(side.lead.running),
        percent(side.lead.waiting)
    );
    Some(
        Claim::new(
            Stage::ApplicationDescheduled,
            Confidence::Fair,
            &[Part::Window, Part::Cpus, Part::Readers],
            sentence,
        )
        .on(side.lead.cpu)
        .because([lead("server", side)])
        .because(cpu_and_others(view, side.lead.cpu))
        .remedy("give the server a CPU of its own (`--cpu`), apart from the client's and from other programs")
        .next("the server waits for its CPU"),
    )
}

fn client(view: &View) -> Option<Claim> {
    let [client, server] = ends(view);
    let needs = &[Part::Window, Part::Cpus, Part::Senders];
    let softirq = view.softirq_on_sender().then(|| {
        let text = "the receive softirq of its segments runs in its own calls";
        line(text, "the lab's device and RPS mask")
    });
    Some(
        full(view, [&client, &server], Stage::Sender, needs)?
            .because(softirq)
            .remedy("more threads of the client, each on a CPU of its own (`--threads`): the server can take more"),
    )
}

fn softirq(view: &View) -> Option<Claim> {
    let cpu = view.saturated_softirq()?;
    let sentence = format!(
        "receive softirq processing on CPU {cpu} is the limit: CPU {cpu} is {} busy, most of it in softirqs",
        percent(view.busy_ratio(cpu)?)
    );
    Some(
        Claim::new(Stage::Softirq, Confidence::Fair, &[Part::Window, Part::Cpus], sentence)
            .on(Some(cpu))
            .because(cpu_and_others(view, Some(cpu)))
            .remedy(format!("take work off CPU {cpu}: fewer netfilter rules and hooks on the way in, programs on other CPUs"))
            .remedy("let segments share their cost: GRO on the receiving device, TSO on the sending one")
            .next(format!("the receive softirq on CPU {cpu}")),
    )
}

/// No thread is full: requests wait.
pub fn rest(view: &View) -> Claim {
    if view.offered_packets() == 0 {
        let sentence = "the client sent nothing: there is nothing to explain".into();
        return Claim::new(Stage::Unknown, Confidence::Weak, &[Part::Window], sentence)
            .remedy("look at the client's own output: it may have failed to connect");
    }
    let [client, server] = ends(view).map(|end| end.ran());
    let sentence = format!(
        "no thread is full: {server}; {client}; requests wait for replies, for wake-ups or for their scheduled time"
    );
    let (lost, offered) = (view.lost_packets(), view.offered_packets());
    let none = PacketBounds { least_packets: 0, most_packets: Some(0) };
    let range = view.losses().fold(none, |sum, drop| sum.plus(drop.range()));
    let lost = range.between(offered).unwrap_or_else(|| range.around(lost, offered));
    let lost = format!("{lost} of {} segments were lost", count(offered));
    Claim::new(
        Stage::Nothing,
        Confidence::Fair,
        &[Part::Window, Part::Cpus, Part::Senders, Part::Readers],
        sentence,
    )
    .because([lead("server", &view.reader), lead("client", &view.sender), line(lost, "ledger")])
    .remedy("more connections or a higher rate on the client, to find the limit")
    .remedy("less delay per request: busy polling, CPUs that stay awake, no interrupt moderation")
}
