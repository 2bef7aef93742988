//! AF_XDP sockets of a workload: what is asked of them, on which queues, and what a refusal means.

use std::io;

use clap::Args;
use rxpath_core::Bytes;
use rxpath_host::HostError;
use rxpath_host::netlink::Netlink;
use rxpath_host::read::netlink::NetworkLink;
use rxpath_host::read::netlink::netdev::QueueKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::LoadError;
use crate::engine::xsk::{Frame, Refusal, Shape, Side, Step, Xsk};

/// What an AF_XDP socket needs.
pub(crate) const NEEDS: &str = "CAP_NET_RAW and CAP_NET_ADMIN";
/// What frames past the stack and XDP programs need.
const HOST_NEEDS: &str = "CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF";
/// Frames of these sizes; a larger one would need several pages.
const FRAME_BYTES: [u32; 2] = [2048, MOST_FRAME_BYTES as u32];
/// The largest.
pub(crate) const MOST_FRAME_BYTES: usize = 4096;
/// More would take memory without use.
const MOST_ENTRIES: u32 = 1 << 16;

/// How frames get from the shared memory to the driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[derive(clap::ValueEnum)]
pub enum XskMode {
    /// In place where the driver can, else copied
    #[default]
    Auto,
    /// The driver reads and writes the frames in place
    ZeroCopy,
    /// The kernel copies each frame
    Copy,
}

/// What is asked for, and the options that ask for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Args)]
pub struct XdpOptions {
    /// How AF_XDP frames get to the driver (default: auto)
    #[arg(long = "xdp-mode", value_enum, value_name = "MODE", default_value = "auto")]
    #[arg(hide_default_value = true)]
    pub mode: XskMode,
    /// AF_XDP queue of the first thread; the other threads take the following ones (default: 0)
    #[arg(long = "xdp-queue", value_name = "N")]
    pub queue: Option<u32>,
    /// Entries of an AF_XDP ring, a power of two (default: 2048)
    #[arg(long = "xdp-ring", value_name = "N")]
    pub ring: Option<u32>,
    /// Frames in the memory of each AF_XDP socket (default: 4096)
    #[arg(long = "umem-frames", value_name = "N")]
    pub frames: Option<u32>,
}

/// What is in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct XdpSettings {
    /// The device.
    pub device: String,
    /// How frames get to its driver: `zero-copy` or `copy`.
    pub mode: XskMode,
    /// Queue of each thread.
    pub queues: Vec<u32>,
    /// Entries of the ring of each socket.
    pub ring_entries: u32,
    /// Frames of the memory of each socket.
    pub frames_count: u32,
    /// Bytes of each frame.
    pub frame_bytes: u32,
}

impl XdpOptions {
    /// Entries of a ring.
    pub(crate) fn ring(&self) -> u32 {
        self.ring.unwrap_or(2048)
    }

    /// Frames of a socket.
    pub(crate) fn frames(&self) -> u32 {
        self.frames.unwrap_or(4096)
    }

    /// Refuses what no socket can have, and options that mean nothing where `engine` uses no AF_XDP socket.
    pub(crate) fn check(&self, engine: &str, is_used: bool, batch: usize) -> Result<(), LoadError> {
        if !is_used {
            return if *self == Self::default() {
                Ok(())
            } else {
                let what = "--xdp-mode, --xdp-ring, --xdp-queue and --umem-frames are for AF_XDP";
                Err(LoadError::usage(format!("{what}, not for {engine}"), "add --engine xdp"))
            };
        }
        let ring = self.ring();
        if !ring.is_power_of_two() || ring > MOST_ENTRIES {
            let what = format!("--xdp-ring {ring}: a power of two up to {MOST_ENTRIES}");
            return Err(LoadError::usage(what, "for example 2048"));
        }
        let (frames, least) = (self.frames(), 2 * batch as u32);
        if !(least..=MOST_ENTRIES).contains(&frames) {
            let what =
                format!("--umem-frames {frames}: from twice the batch, {least}, to {MOST_ENTRIES}");
            return Err(LoadError::usage(what, "for example 4096"));
        }
        Ok(())
    }
}

/// Opens one socket for each of `threads` threads, for frames of `longest` bytes; each with its frames, and what the
/// sockets have in common.
pub(crate) fn open(
    device: &NetworkLink,
    side: Side,
    options: &XdpOptions,
    threads: usize,
    longest: usize,
) -> Result<(Vec<(Xsk, Vec<Frame>)>, XdpSettings), LoadError> {
    let count = queue_count(device, side);
    let word = if side == Side::Send { "transmit" } else { "receive" };
    let has = format!("{} has {count} {word} queues", device.name);
    let queues = choose(&has, count, options.queue.unwrap_or(0), threads)?;
    let frame_bytes = frame_bytes(longest)?;
    let (frames, ring) = (options.frames(), options.ring());
    let mut shape = Shape { side, device: device.index, queue: 0, frames, frame_bytes, ring };
    let mut sockets = Vec::with_capacity(threads);
    let mut mode = options.mode;
    for queue in &queues {
        shape.queue = *queue;
        let opened = open_one(device, shape, mode)?;
        // All alike: what the first gets is asked of the others.
        mode = if opened.0.is_copying { XskMode::Copy } else { XskMode::ZeroCopy };
        sockets.push(opened);
    }
    let (device, ring_entries, frames_count) = (device.name.clone(), ring, frames);
    let settings = XdpSettings { device, mode, queues, ring_entries, frames_count, frame_bytes };
    Ok((sockets, settings))
}

fn open_one(
    device: &NetworkLink,
    shape: Shape,
    mode: XskMode,
) -> Result<(Xsk, Vec<Frame>), LoadError> {
    let refused = |refusal| refused(&device.name, shape, mode, refusal);
    if mode != XskMode::Copy {
        match Xsk::open(shape, false) {
            Ok(opened) => return Ok(opened),
            Err(refusal) if mode == XskMode::ZeroCopy || refusal.is_busy() => {
                return Err(refused(refusal));
            }
            // The driver cannot, or not now: what else is wrong shows in copy mode, too.
            Err(_) => {}
        }
    }
    Xsk::open(shape, true).map_err(refused)
}

/// Queues in use; older kernels tell only how many there can be.
pub(crate) fn queue_count(device: &NetworkLink, side: Side) -> u32 {
    let (kind, known) = match side {
        Side::Send => (QueueKind::Tx, device.tx_queues),
        Side::Receive => (QueueKind::Rx, device.rx_queues),
    };
    let used = Netlink::generic().and_then(|mut netlink| netlink.device_queues(device.index));
    let used = used.map_or(0, |all| all.iter().filter(|queue| queue.kind == kind).count() as u32);
    if used > 0 { used } else { known.max(1) }
}

/// The queue of each thread.
fn choose(has: &str, count: u32, first: u32, threads: usize) -> Result<Vec<u32>, LoadError> {
    if first >= count {
        return Err(LoadError::usage(format!("--xdp-queue {first}: {has}, from 0 on"), ""));
    }
    if threads as u64 > u64::from(count) {
        let what = format!("--threads {threads}: {has}, and a queue has one AF_XDP socket");
        let hint = format!("use --threads {count} or fewer, or more queues (`ethtool -L`)");
        return Err(LoadError::usage(what, hint));
    }
    Ok((0..threads as u32).map(|thread| (first + thread) % count).collect())
}

/// The frames of the memory for such long ones.
fn frame_bytes(longest: usize) -> Result<u32, LoadError> {
    let fits = FRAME_BYTES.into_iter().find(|bytes| longest <= *bytes as usize);
    fits.ok_or_else(|| {
        let what = format!(
            "--engine xdp: frames of {longest} bytes do not fit in one of AF_XDP, 4096 bytes"
        );
        LoadError::usage(what, "use a smaller --size")
    })
}

/// A refusal, by what can be done about it.
fn refused(device: &str, shape: Shape, mode: XskMode, refusal: Refusal) -> LoadError {
    let Refusal { step, source } = refusal;
    let errno = source.raw_os_error().unwrap_or(0);
    let queue = shape.queue;
    let of = format!("--engine xdp: queue {queue} of {device}");
    match (step, errno) {
        (_, libc::EPERM | libc::EACCES) => {
            LoadError::Denied { what: "--engine xdp (AF_XDP sockets)".into(), needs: NEEDS }
        }
        (Step::Socket, libc::EAFNOSUPPORT) => LoadError::Unsupported {
            what: "--engine xdp (AF_XDP sockets, CONFIG_XDP_SOCKETS)".into(),
            source,
        },
        (Step::Memory, libc::ENOBUFS | libc::ENOMEM) => {
            let bytes = Bytes(u64::from(shape.frames) * u64::from(shape.frame_bytes));
            let what = format!(
                "--engine xdp: {bytes} of frames for each thread may not be locked in memory \
                 (RLIMIT_MEMLOCK, `ulimit -l`): {source}"
            );
            LoadError::usage(what, "use fewer --umem-frames, or CAP_IPC_LOCK")
        }
        (Step::Bind, libc::EBUSY) => LoadError::usage(
            format!("{of} is in use by another AF_XDP socket"),
            "choose another with --xdp-queue, or end the other program",
        ),
        (Step::Bind | Step::Wake, libc::ENETDOWN) => {
            LoadError::io(format!("{of}: the device is down"), source)
        }
        (Step::Bind | Step::Wake, _) if mode == XskMode::ZeroCopy => LoadError::Unsupported {
            what: format!("--xdp-mode zero-copy (queue {queue} of {device}, its driver)"),
            source,
        },
        (Step::Bind, libc::EINVAL) => {
            LoadError::usage(format!("{of} is not there"), "see `ethtool -l` for the queues")
        }
        (Step::Bind, libc::EOPNOTSUPP | libc::ENODEV) => {
            LoadError::Unsupported { what: of, source }
        }
        (Step::Rings, libc::ENOMEM) => LoadError::io(
            format!("--engine xdp: memory for rings of {} entries", shape.ring),
            io::Error::from_raw_os_error(errno),
        ),
        _ => LoadError::io(format!("{of}: {}", call(step)), source),
    }
}

fn call(step: Step) -> &'static str {
    match step {
        Step::Socket => "socket(AF_XDP)",
        Step::Memory => "XDP_UMEM_REG",
        Step::Rings => "rings",
        Step::Bind => "bind",
        Step::Wake => "sendto",
    }
}

/// What the host refuses to an engine.
pub(crate) fn refused_by_host(engine: &str, error: HostError) -> LoadError {
    match error {
        HostError::Denied { what, .. } => {
            LoadError::Denied { what: format!("{engine}: {what}"), needs: HOST_NEEDS }
        }
        HostError::Kernel { op, errno: libc::EPERM | libc::EACCES, .. } => {
            LoadError::Denied { what: format!("{engine}: {op}"), needs: HOST_NEEDS }
        }
        HostError::Kernel { op, errno, .. } => {
            LoadError::io(format!("{engine}: {op}"), io::Error::from_raw_os_error(errno))
        }
        other => LoadError::Host { what: engine.into(), source: other },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_take_the_queues_in_turn_and_each_has_its_own() {
        assert_eq!(choose("d has 4 queues", 4, 0, 2).unwrap(), [0, 1]);
        assert_eq!(choose("d has 4 queues", 4, 3, 3).unwrap(), [3, 0, 1]);
        let error = choose("d has 2 queues", 2, 0, 3).unwrap_err().to_string();
        assert_eq!(error, "--threads 3: d has 2 queues, and a queue has one AF_XDP socket");
        let error = choose("d has 2 queues", 2, 2, 1).unwrap_err().to_string();
        assert_eq!(error, "--xdp-queue 2: d has 2 queues, from 0 on");
    }

    #[test]
    fn what_no_socket_can_have_is_refused() {
        let with = |ring, frames| XdpOptions { ring, frames, ..XdpOptions::default() };
        let check = |options: XdpOptions| options.check("--engine xdp", true, 64);
        check(XdpOptions::default()).unwrap();
        check(with(Some(64), Some(128))).unwrap();
        for wrong in [with(Some(0), None), with(Some(100), None), with(None, Some(127))] {
            assert!(check(wrong).unwrap_err().is_usage(), "{wrong:?}");
        }
        let other = with(Some(64), None).check("--engine socket", false, 64).unwrap_err();
        assert!(other.to_string().ends_with("for AF_XDP, not for --engine socket"), "{other}");
        XdpOptions::default().check("--engine socket", false, 64).unwrap();
    }

    #[test]
    fn long_frames_get_whole_pages_and_longer_ones_are_refused() {
        assert_eq!(frame_bytes(2048).unwrap(), 2048);
        assert_eq!(frame_bytes(2049).unwrap(), 4096);
        assert!(frame_bytes(9000).unwrap_err().to_string().contains("9000 bytes"));
    }

    #[test]
    fn each_refusal_is_one_line_that_says_what_to_do() {
        let shape = Shape {
            side: Side::Send,
            device: 2,
            queue: 7,
            frames: 4096,
            frame_bytes: 2048,
            ring: 2048,
        };
        let said = |step, errno, mode| {
            let source = io::Error::from_raw_os_error(errno);
            refused("eth0", shape, mode, Refusal { step, source }).to_string()
        };
        let auto = XskMode::Auto;
        for (text, words) in [
            (said(Step::Socket, libc::EPERM, auto), "CAP_NET_RAW"),
            (said(Step::Socket, libc::EAFNOSUPPORT, auto), "CONFIG_XDP_SOCKETS"),
            (said(Step::Memory, libc::ENOBUFS, auto), "8 MiB of frames"),
            (said(Step::Bind, libc::EBUSY, auto), "queue 7 of eth0 is in use by another AF_XDP"),
            (said(Step::Bind, libc::EINVAL, auto), "queue 7 of eth0 is not there"),
            (
                said(Step::Bind, libc::EOPNOTSUPP, XskMode::ZeroCopy),
                "--xdp-mode zero-copy (queue 7",
            ),
            (said(Step::Bind, libc::ENETDOWN, auto), "the device is down"),
        ] {
            assert!(text.contains(words) && !text.contains('\n'), "{text}");
        }
    }
}
