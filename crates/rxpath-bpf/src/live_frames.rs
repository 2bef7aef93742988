//! A sender of UDP datagrams that runs in the kernel: no socket, no system call for each datagram.
//!
//! `BPF_PROG_TEST_RUN` with `BPF_F_TEST_XDP_LIVE_FRAMES` runs the program once for each frame; the frame leaves by a
//! device's `ndo_xdp_xmit`. **Source** net/bpf/test_run.c `bpf_test_run_xdp_live` (5.18).
//!
//! One call sends for as long as possible: to begin and to end one the kernel waits for an RCU grace period
//! (`bpf_prog_change_xdp`), some 30 ms. So schedule, sequence numbers and counters are the program's.

use std::sync::Arc;

use rxpath_host::{HostError, Root};

use crate::object::{Loaded, ObjectSpec, Words, compiled, map, program, unhooked};

/// Bytes of a flow's value (`struct flow`), of its headers, and of the thread's words (`struct sender`).
const FLOW: usize = 88;
const HEAD: usize = 68;
const SENDER: u32 = 104;
const LATE_BITS: u32 = 5;
const LATE_BUCKETS: u32 = 1024;

pub(crate) static SPEC: ObjectSpec = ObjectSpec {
    maps: &[map("flows", 4, FLOW as u32), map("sender", 4, SENDER), map("late", 4, 8)],
    programs: &[
        unhooked("live_frame", "the sender", true),
        program("xdp/xdp_devmap_xmit", "what the device takes and refuses", false),
    ],
    ..compiled!("live_frames")
};

/// Places in the thread's words (`struct sender`).
#[derive(Clone, Copy)]
enum Place {
    Start = 0,
    Span = 1,
    Limit = 2,
    Began = 3,
    Offered = 6,
    First = 7,
    Last = 8,
    Taken = 9,
    Refused = 10,
    LateMax = 11,
}

/// The frames of one flow.
#[derive(Clone, Copy, Debug)]
pub struct FrameFlow<'a> {
    /// All in front of the payload.
    pub head: &'a [u8],
    /// Sum of what the checksum covers, less the payload's header.
    pub sum: u32,
    /// The constant part of the first word of the payload's header.
    pub stream: u64,
}

/// When frames are due: frame k at `first + k step` behind the start. **Unit** ns, with fractions over `rate`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameSchedule {
    /// From a frame to the next.
    pub step_ns: u64,
    /// What is left of a ns.
    pub step_fraction: u64,
    /// The denominator of fractions; 0: as fast as possible.
    pub rate: u64,
    /// The first frame's distance from the start.
    pub first_ns: u64,
    /// What is left of a ns.
    pub first_fraction: u64,
}

/// What one thread sends.
#[derive(Clone, Copy, Debug)]
pub struct FrameSender<'a> {
    /// The device.
    pub ifindex: u32,
    /// Its flows; all their heads are equally long.
    pub flows: &'a [FrameFlow<'a>],
    /// Frames of a flow in a row.
    pub batch: u32,
    /// Whether payloads begin with a header.
    pub has_header: bool,
    /// When frames are due.
    pub schedule: FrameSchedule,
}

/// What was sent so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameCounts {
    /// Given to the device.
    pub offered: u64,
    /// Of these, taken by its driver; `None` where the kernel has no tracepoint for it.
    pub taken: Option<u64>,
    /// And refused.
    pub refused: Option<u64>,
    /// `CLOCK_MONOTONIC` of the first one; 0 = none yet.
    pub first_ns: u64,
    /// And of the last one.
    pub last_ns: u64,
    /// The latest by its schedule. **Unit** ns.
    pub late_max_ns: u64,
}

/// The loaded program of one thread. Nothing is attached to a device: it ends with its process.
#[derive(Debug)]
pub struct LiveFrames {
    loaded: Loaded,
    words: Arc<Words>,
    ifindex: u32,
    batch: u32,
    sees_device: bool,
}

impl LiveFrames {
    /// Loads the program for the calling thread.
    ///
    /// **Errors** as every probe; `Unsupported` before Linux 5.18.
    pub fn load(sender: &FrameSender<'_>) -> Result<Self, HostError> {
        crate::can_run(&Root::host()).require("send by an XDP program")?;
        let head_bytes = sender.flows.first().map_or(0, |flow| flow.head.len());
        let FrameSchedule { step_ns, step_fraction, rate, first_ns, first_fraction } =
            sender.schedule;
        let times = [step_ns, step_fraction, rate, first_ns, first_fraction];
        let mut constants: Vec<u8> = times.into_iter().flat_map(u64::to_ne_bytes).collect();
        let flows = sender.flows.len() as u32;
        let has_header = u32::from(sender.has_header);
        let tid = nix::unistd::gettid().as_raw() as u32;
        let numbers = [sender.ifindex, flows, sender.batch, head_bytes as u32, has_header, tid];
        constants.extend(numbers.into_iter().flat_map(u32::to_ne_bytes));
        let mut loaded = Loaded::load(&SPEC, &constants, &[("flows", flows.max(1))])?;
        loaded.attach()?;
        for (index, flow) in (0u32..).zip(sender.flows) {
            let mut value = flow.head.to_vec();
            value.resize(HEAD, 0);
            value.extend(flow.sum.to_ne_bytes());
            value.extend(flow.stream.to_ne_bytes());
            value.extend(0u64.to_ne_bytes());
            loaded.put("flows", &index.to_ne_bytes(), &value)?;
        }
        let words = Arc::new(loaded.words("sender")?);
        let sees_device = loaded.is_attached("xdp_devmap_xmit");
        let (ifindex, batch) = (sender.ifindex, sender.batch);
        Ok(Self { loaded, words, ifindex, batch, sees_device })
    }

    /// From when (`CLOCK_MONOTONIC`), how long and how many frames it sends. **Unit** ns.
    pub fn start(&self, start_ns: u64, span_ns: u64, limit: u64) {
        self.words.set(Place::Span as usize, span_ns);
        self.words.set(Place::Limit as usize, limit);
        self.words.set(Place::Start as usize, start_ns);
    }

    /// Runs the program for `frames` frames, or until a signal comes; a frame that is not due is one, too.
    pub fn send(&self, frame: &[u8], frames: u32) -> Result<(), HostError> {
        match self.loaded.run_live("live_frame", frame, (self.ifindex, frames, self.batch)) {
            Ok(()) | Err(HostError::Kernel { errno: libc::EINTR, .. }) => Ok(()),
            Err(HostError::Kernel { op, errno: libc::EINVAL | libc::EOPNOTSUPP, .. }) => {
                let needs = "Linux 5.18, and a frame that fits into a page with its headroom";
                Err(HostError::unsupported(op, needs))
            }
            Err(error) => Err(error),
        }
    }

    /// What was sent so far, for any thread.
    pub fn counter(&self) -> impl Fn() -> FrameCounts + Send + Sync + 'static {
        let (words, sees_device) = (Arc::clone(&self.words), self.sees_device);
        move || {
            let word = |place: Place| words.get(place as usize);
            let device = |place| sees_device.then(|| word(place));
            FrameCounts {
                offered: word(Place::Offered),
                taken: device(Place::Taken),
                refused: device(Place::Refused),
                first_ns: word(Place::First),
                last_ns: word(Place::Last),
                late_max_ns: word(Place::LateMax),
            }
        }
    }

    /// The instant from which the span and the schedule ran: later than the start where that had passed.
    pub fn began_ns(&self) -> Option<u64> {
        Some(self.words.get(Place::Began as usize)).filter(|began| *began > 0)
    }

    /// How late frames were: the middle of a bucket, at most 3 % off, and its frames. **Unit** ns.
    pub fn late(&self) -> Result<Vec<(u64, u64)>, HostError> {
        let mut found = Vec::new();
        for bucket in 0..LATE_BUCKETS {
            let value = self.loaded.value("late", bucket)?;
            let count = value.try_into().map_or(0, u64::from_ne_bytes);
            if count > 0 {
                found.push((middle(bucket), count));
            }
        }
        Ok(found)
    }
}

/// The middle of a bucket of `step_bucket` (bpf/log2.h).
fn middle(bucket: u32) -> u64 {
    let (row, step) = (bucket >> LATE_BITS, u64::from(bucket & ((1 << LATE_BITS) - 1)));
    if row == 0 {
        return step;
    }
    let width = 1u64 << (row - 1).min(58);
    ((1 << LATE_BITS) + step) * width + width / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// `step_bucket` of bpf/log2.h.
    fn bucket(value: u64) -> u32 {
        let power = 64 - value.leading_zeros();
        if power <= LATE_BITS {
            return value as u32;
        }
        let step = (value >> (power - 1 - LATE_BITS)) as u32 & ((1 << LATE_BITS) - 1);
        ((power - LATE_BITS) << LATE_BITS | step).min(LATE_BUCKETS - 1)
    }

    proptest! {
        #[test]
        fn the_middle_of_a_bucket_is_near_each_value_in_it(value in 0u64..1 << 36) {
            let near = middle(bucket(value));
            prop_assert!(near.abs_diff(value) <= value / 32, "{value}: {near}");
        }
    }

    #[test]
    fn every_bucket_has_a_middle_in_it() {
        for b in 0..LATE_BUCKETS {
            assert_eq!(bucket(middle(b)), b);
        }
    }
}
