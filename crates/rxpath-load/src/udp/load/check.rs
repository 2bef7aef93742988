//! What cannot work is refused before anything is sent.

use std::net::{IpAddr, SocketAddr};

use rxpath_core::Warning;

use crate::LoadError;
use crate::engine::batch::MAX_BATCH;
use crate::engine::socket::Socket;
use crate::udp::load::options::{Engine, LoadOptions, Pacing};
use crate::udp::wire::header_bytes;

/// Segments of one send. **Source** `UDP_MAX_SEGMENTS`, include/linux/udp.h (64 before Linux 6.9).
const MAX_SEGMENTS: usize = 128;
/// Payload of the largest UDP datagram over IPv4 (65,535 less IP and UDP headers).
const MAX_PAYLOAD: usize = 65_507;
/// Flow numbers have 16 bits.
const MAX_FLOWS: usize = 65_536;

pub(super) fn check(options: &LoadOptions) -> Result<(), LoadError> {
    let bad = |what: String, hint: &str| Err(LoadError::usage(what, hint));
    if options.to.is_empty() {
        return bad("no destination".into(), "give IP:PORT or [v6]:PORT");
    }
    if let Some(to) = options.to.iter().find(|to| to.port() == 0) {
        return bad(format!("{to}: port 0 is not a destination"), "give the receiver's port");
    }
    if options.size > MAX_PAYLOAD {
        let what =
            format!("--size {}: a UDP datagram holds at most {MAX_PAYLOAD} bytes", options.size);
        return bad(what, "choose a smaller size");
    }
    if !(1..=MAX_BATCH).contains(&options.batch) {
        let what = format!("--batch {}: 1 to {MAX_BATCH} messages per call", options.batch);
        return bad(what, "the kernel accepts at most 1024");
    }
    // A socket at least.
    options.threads.check("send", 1)?;
    if options.rate_pps == Some(0) {
        let what = "--rate 0: nothing would be sent".into();
        return bad(what, "use --flood instead to send as fast as possible");
    }
    if options.engine.bypasses_udp() && (options.gso.is_some() || options.batch == 1) {
        let engine = options.engine.option();
        let what = format!("{engine} builds whole packets: it excludes --gso and --batch 1");
        return bad(what, "");
    }
    without_sockets(options)?;
    let engine = options.engine.option();
    options.xdp.check(engine, options.engine == Engine::Xdp, options.batch)?;
    permitted(options)?;
    check_flows(options)?;
    check_gso(options)
}

/// What only sockets have, or only a loop in user space.
fn without_sockets(options: &LoadOptions) -> Result<(), LoadError> {
    let by_kernel = options.engine == Engine::XdpFrames;
    let refused = [
        ("--unconnected", options.unconnected && options.engine.sends_frames()),
        ("--sndbuf", options.sndbuf.is_some() && by_kernel),
        ("--pacing sleep", options.pacing == Pacing::Sleep && by_kernel),
    ];
    let Some((option, _)) = refused.iter().find(|(_, is_set)| *is_set) else { return Ok(()) };
    let engine = options.engine.option();
    let why = if *option == "--pacing sleep" {
        "the kernel's loop spins until a frame is due"
    } else {
        "it sends without UDP sockets"
    };
    Err(LoadError::usage(format!("{engine} excludes {option}: {why}"), format!("omit {option}")))
}

/// Frames pass no route, firewall or queueing discipline: they go to a lab, or where the user says so.
fn permitted(options: &LoadOptions) -> Result<(), LoadError> {
    if !options.engine.sends_frames() {
        return Ok(());
    }
    let ips = || options.to.iter().map(SocketAddr::ip);
    let Some(other) = ips().find(|ip| !is_of_a_lab(*ip) && !options.permitted.contains(ip)) else {
        return Ok(());
    };
    let engine = options.engine.option();
    let what =
        format!("{engine} sends past this host's firewall and queues, and {other} is not in a lab");
    let hint = format!("if {other} may be flooded, say so: --yes-send-to {other}");
    Err(LoadError::usage(what, hint))
}

/// The addresses of benchmarks, which labs use and which no router passes on (RFC 2544, RFC 5180 with its erratum).
fn is_of_a_lab(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => matches!(ip.octets(), [198, 18 | 19, ..]),
        IpAddr::V6(ip) => matches!(ip.segments(), [0x2001, 2, 0, ..]),
    }
}

fn check_flows(options: &LoadOptions) -> Result<(), LoadError> {
    let Some(flows) = options.flows else { return Ok(()) };
    let all = flows.saturating_mul(options.to.len());
    let threads = options.threads.count;
    if flows == 0 || all < threads {
        let what = format!(
            "--flows {flows}: {all} flows are fewer than one for each of {threads} threads"
        );
        let hint = "each thread sends on its own sockets: raise --flows or lower --threads";
        return Err(LoadError::usage(what, hint));
    }
    if all > MAX_FLOWS {
        return Err(LoadError::usage(format!("--flows {flows}: at most {MAX_FLOWS} flows"), ""));
    }
    if let Some(port) = options.source_port
        && usize::from(port) + flows > 65_536
    {
        let what = format!("--source-port {port} --flows {flows}: ports end at 65535");
        return Err(LoadError::usage(what, "start at a lower port"));
    }
    Ok(())
}

fn check_gso(options: &LoadOptions) -> Result<(), LoadError> {
    let Some(segments) = options.gso else { return Ok(()) };
    let bad = |what: String, hint: &str| Err(LoadError::usage(what, hint));
    if !(1..=MAX_SEGMENTS).contains(&segments) {
        let what = format!("--gso {segments}: 1 to {MAX_SEGMENTS} datagrams per send");
        return bad(what, "the kernel's limit is UDP_MAX_SEGMENTS (128; 64 before Linux 6.9)");
    }
    if options.size == 0 {
        let what = "--gso needs a payload to segment, not --size 0".into();
        return bad(what, "give --size 1 or more");
    }
    let bytes = segments * options.size;
    if bytes > MAX_PAYLOAD {
        let what = format!(
            "--gso {segments} --size {}: {bytes} bytes per send, a UDP send holds at most {MAX_PAYLOAD}",
            options.size
        );
        return bad(what, &format!("use --gso {} or fewer", MAX_PAYLOAD / options.size));
    }
    if let Some(count) = options.count
        && count % segments as u64 != 0
    {
        let what = format!(
            "--count {count} is not a multiple of --gso {segments}: every send is a full batch"
        );
        let hint = format!("use --count {}", count.div_ceil(segments as u64) * segments as u64);
        return bad(what, &hint);
    }
    Ok(())
}

/// Path MTU and IP packets per datagram; larger than the MTU is an error for GSO and a warning otherwise.
pub(super) fn mtu(
    options: &LoadOptions,
    warnings: &mut Vec<Warning>,
) -> Result<(Option<u32>, u32), LoadError> {
    let (mut least, mut most_fragments) = (u32::MAX, 1);
    for to in &options.to {
        let probe = Socket::udp(*to).map_err(|e| LoadError::io("socket", e))?;
        if probe.connect(*to).is_err() {
            // Unconnected senders find out by the send itself.
            continue;
        }
        let mtu = probe.mtu(*to).map_err(|e| LoadError::io("read the path MTU", e))?;
        least = least.min(mtu);
        let room = (u64::from(mtu)).saturating_sub(header_bytes(*to)) as usize;
        if options.size <= room {
            continue;
        }
        if options.gso.is_some() || options.engine.bypasses_udp() {
            let why = if options.gso.is_some() { "--gso" } else { options.engine.option() };
            let what = format!(
                "--size {}: {why} cannot fragment, and the path to {to} has an MTU of {mtu}",
                options.size
            );
            return Err(LoadError::usage(what, format!("use --size {room} or less")));
        }
        // Fragments carry multiples of 8 bytes; the UDP header is in the first.
        let ip_bytes = header_bytes(*to) as usize - 8;
        let each = (mtu as usize - ip_bytes) / 8 * 8;
        most_fragments = most_fragments.max((options.size + 8).div_ceil(each) as u32);
    }
    if most_fragments > 1 {
        let text = format!(
            "each datagram of {} bytes leaves as {most_fragments} IP fragments",
            options.size
        );
        warnings.push(
            Warning::new("fragments", text)
                .because(format!(
                    "it exceeds the path MTU of {least}; one lost fragment loses the whole datagram"
                ))
                .cure("use a size that fits, or --gso"),
        );
    }
    Ok(((least != u32::MAX).then_some(least), most_fragments))
}
