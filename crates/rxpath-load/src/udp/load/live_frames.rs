//! The sender that the kernel runs: an XDP program makes each datagram, for a whole run in one call.
//!
//! It takes the place of the send loop (`worker`): schedule, sequence numbers and counters are the program's.

use std::sync::atomic::Ordering::Relaxed;

use rxpath_bpf::live_frames::{FrameCounts, FrameFlow as KernelFlow, FrameSender, LiveFrames};
use rxpath_host::HostError;
use rxpath_host::netlink::Netlink;
use rxpath_stats::Histogram;

use crate::LoadError;
use crate::engine::clock;
use crate::engine::thread::alarm_at;
use crate::pace::Pace;
use crate::pool::Start;
use crate::tally::Tally;
use crate::udp::header::{HEADER_BYTES, Stamp};
use crate::udp::load::options::LoadOptions;
use crate::udp::load::transmit::frames::{self, FrameFlow, refused};
use crate::udp::load::worker::{Plan, Report};
use crate::udp::result::{FramesLedger, ThreadResult};
use crate::usage::UsageMeter;

const ENGINE: &str = "--engine xdp-frames";
/// Frames that the kernel gives to the device at once. **Source** `TEST_XDP_MAX_BATCH`, net/bpf/test_run.c.
const MOST_AT_ONCE: usize = 256;
/// From the call to its first frame, an RCU grace period (`bpf_prog_change_xdp`): a start within it is put off by it.
const SET_UP_NS: u64 = 40_000_000;
/// The longest frame: a page, less headroom, tailroom and `struct xdp_page_head` (net/bpf/test_run.c, Linux 6.18).
const LONGEST: usize = 3_408;
/// Frames of one call, at most: hours.
const MOST_FRAMES: u64 = 1 << 30;

/// Runs until the count, the time or an order ends it.
pub(super) fn run(plan: Plan<FrameFlow>, start: &Start<'_>) -> Result<Report, LoadError> {
    let device = device(&plan.flows)?;
    check_frames(&plan.flows, plan.options.size)?;
    let sender = load(&plan, start, device).map_err(|error| refused(ENGINE, error))?;
    let read = sender.counter();
    let size = plan.options.size as u64;
    start.tally.set_source(move |tally| show(read(), size, tally));
    let mut usage = UsageMeter::new(start.cpu);
    start.ready();
    let mut calls = 0;
    if let Some(start_ns) = known_start(start) {
        usage.restart();
        usage.note_cpu(start.tally);
        calls = send(&plan, &sender, start, start_ns)?;
        usage.note_cpu(start.tally);
    }
    report(&plan, &sender, start, usage, calls)
}

/// The device of all flows, which takes frames of XDP programs.
fn device(flows: &[FrameFlow]) -> Result<u32, LoadError> {
    let first = frames::one_device(ENGINE, flows)?;
    let abilities = Netlink::generic().and_then(|mut netlink| netlink.xdp_abilities(first.index));
    // Before Linux 6.3 the kernel does not say; the result then shows that the device took none.
    if abilities.is_ok_and(|xdp| !xdp.features.iter().any(|feature| feature == "ndo-xmit")) {
        let what = format!("{ENGINE}: {} does not take frames of XDP programs now", first.name);
        let hint = "a veth takes them while its other end has GRO on (ethtool -K DEV gro on) or an XDP program; \
                    of NICs, those whose driver has ndo_xdp_xmit, some only with an XDP program of their own";
        return Err(LoadError::usage(what, hint));
    }
    Ok(first.index)
}

/// The program makes every frame of the first one: all have its length, and it lies in a page.
fn check_frames(flows: &[FrameFlow], size: usize) -> Result<(), LoadError> {
    let head_bytes = |flow: &FrameFlow| flow.frames.head_bytes;
    if flows.iter().any(|flow| head_bytes(flow) != head_bytes(&flows[0])) {
        let what = format!("{ENGINE}: all headers of a thread have one length");
        let hint = "run one sender for IPv4, one for IPv6, and one for each VLAN";
        return Err(LoadError::usage(what, hint));
    }
    let Some(excess) = flows[0].frames.frame.len().checked_sub(LONGEST).filter(|it| *it > 0) else {
        return Ok(());
    };
    let what = format!("--size {size}: {ENGINE} holds a frame in a page, at most {LONGEST} bytes");
    Err(LoadError::usage(what, format!("use --size {} or less", size - excess)))
}

fn load(plan: &Plan<FrameFlow>, start: &Start<'_>, ifindex: u32) -> Result<LiveFrames, HostError> {
    let options = &plan.options;
    let flows = plan.flows.iter().zip(&plan.streams).map(|(flow, (stream, _))| KernelFlow {
        head: &flow.frames.frame[..flow.frames.head_bytes],
        sum: flow.frames.sum,
        stream: Stamp::new(*stream, options.clock(), 0).first_word(),
    });
    LiveFrames::load(&FrameSender {
        ifindex,
        flows: &flows.collect::<Vec<_>>(),
        batch: options.batch.min(MOST_AT_ONCE) as u32,
        has_header: options.size >= HEADER_BYTES,
        schedule: pace(options, start, 0).map(|pace| pace.schedule()).unwrap_or_default(),
    })
}

fn pace(options: &LoadOptions, start: &Start<'_>, start_ns: u64) -> Option<Pace> {
    options.rate_pps.map(|rate| Pace::new(start_ns, start.share(rate, 1), options.pacing))
}

/// Waits until the start is known: a call takes a while to begin, so it is made before.
fn known_start(start: &Start<'_>) -> Option<u64> {
    while !start.shared.is_stopped() {
        match start.shared.start_ns.load(Relaxed) {
            0 => clock::sleep_until(clock::now_ns() + 200_000),
            at => {
                let now = clock::now_ns();
                let begins = if at < now + SET_UP_NS { at + SET_UP_NS } else { at };
                start.shared.begin(begins.max(now));
                return Some(begins);
            }
        }
    }
    None
}

/// Sends until the count, the time or an order ends it; returns the number of calls.
fn send(
    plan: &Plan<FrameFlow>,
    sender: &LiveFrames,
    start: &Start<'_>,
    start_ns: u64,
) -> Result<u64, LoadError> {
    let options = &plan.options;
    let span_ns = options.duration_ns.unwrap_or(u64::MAX);
    sender.start(start_ns, span_ns, plan.messages);
    let read = sender.counter();
    let frame = &plan.flows[0].frames.frame;
    let mut calls = 0;
    loop {
        let left = plan.messages - read().offered;
        let began_ns = sender.began_ns().unwrap_or(start_ns);
        let end_ns = began_ns.saturating_add(span_ns);
        if left == 0 || start.shared.is_stopped() || clock::now_ns() >= end_ns {
            return Ok(calls);
        }
        // Without a schedule each run of the program is a frame; with one most of them wait.
        let last_ns =
            pace(options, start, began_ns).map_or(u64::MAX, |pace| pace.instant_of(plan.messages));
        let _alarm = match last_ns.max(clock::now_ns()).min(end_ns) {
            u64::MAX => None,
            at => Some(alarm_at(at).map_err(|e| LoadError::io("timer_create", e))?),
        };
        let frames = if options.rate_pps.is_some() { MOST_FRAMES } else { left.min(MOST_FRAMES) };
        calls += 1;
        sender.send(frame, frames as u32).map_err(|error| refused(ENGINE, error))?;
    }
}

/// The program's counters in the place where those of other workers are.
fn show(counts: FrameCounts, size: u64, tally: &Tally) {
    tally.offered.set(counts.offered);
    tally.units.set(counts.offered);
    tally.sent_bytes.set(counts.offered * size);
    tally.first_ns.set(counts.first_ns);
    tally.last_ns.set(counts.last_ns);
}

fn report(
    plan: &Plan<FrameFlow>,
    sender: &LiveFrames,
    start: &Start<'_>,
    usage: UsageMeter,
    calls: u64,
) -> Result<Report, LoadError> {
    let counts = sender.counter()();
    show(counts, plan.options.size as u64, start.tally);
    let mut lateness = Histogram::of_times();
    for (late_ns, frames) in sender.late().map_err(|error| refused(ENGINE, error))? {
        lateness.record_n(late_ns.min(counts.late_max_ns), frames);
    }
    let target = sender.began_ns().zip(plan.options.rate_pps).map(|(began, _)| {
        let end = plan.options.duration_ns.map_or(u64::MAX, |span| began.saturating_add(span));
        let due = pace(&plan.options, start, began)
            .map_or(0, |pace| pace.due_before(clock::now_ns().min(end)));
        if counts.offered == plan.messages { counts.offered } else { due.min(plan.messages) }
    });
    Ok(Report {
        thread: ThreadResult {
            usage: usage.end(start.tally).0,
            packets: counts.offered,
            calls_count: calls,
            ..ThreadResult::default()
        },
        target: target.unwrap_or(counts.offered),
        lateness,
        frames: Some(FramesLedger {
            offered_packets: counts.offered,
            taken_packets: counts.taken,
            refused_packets: counts.refused,
        }),
        ..Report::default()
    })
}
