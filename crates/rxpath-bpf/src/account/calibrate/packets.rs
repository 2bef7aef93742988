//! Packets at a rate, received on another CPU: what a receive interrupt costs with all that it brings.
//!
//! They go over the loopback device of a network namespace that has no name and ends with its thread. RPS (net/core/dev.c
//! `netif_rx_internal`, `enqueue_to_backlog`) takes each to the CPU that is measured, by an inter-processor interrupt.
//! The sender reads them now and then, so that each goes all the way into the socket's queue and is freed on another CPU, as
//! packets of applications are. What costs more than that in the softirq leaves the caches colder: `k` is a tenth larger where
//! each packet takes 3 us there instead of 1.5 to 2 (7.2 against 6.4 us at 20,000 a second).

use std::net::{Ipv4Addr, UdpSocket};

use rxpath_core::CpuList;
use rxpath_host::lab::netns;
use rxpath_host::write::sched;
use rxpath_host::write::setter::{HostSetter, Setter};
use rxpath_host::{HostError, Target};

use super::sender::Act;

/// A packet of many measurements: 32 bytes of payload.
const PAYLOAD: [u8; 32] = [0; 32];

/// The sender reads after so many.
const READ_EVERY: u64 = 16;

/// Sends to `cpu` from `other`, in a namespace that the calling thread moves into.
///
/// **Errors** `Denied` without the right to make a namespace, `Missing` on a kernel without RPS.
pub(super) fn prepare((cpu, other): (u32, u32)) -> Result<Act, HostError> {
    sched::pin(other)?;
    netns::move_apart()?;
    let steer = Target::Attr { dev: "lo".into(), attr: "queues/rx-0/rps_cpus".into() };
    HostSetter::default().write(&steer, &CpuList(vec![cpu]).to_mask())?;
    let socket = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|e| failed("open", &e));
    let (sink, sender) = (socket()?, socket()?);
    let to = sink.local_addr().map_err(|e| failed("name", &e))?;
    sender.connect(to).map_err(|e| failed("connect", &e))?;
    sink.set_nonblocking(true).map_err(|e| failed("read", &e))?;
    Ok(Box::new(move |nth: u64| {
        sender.send(&PAYLOAD).map_err(|e| failed("send on", &e))?;
        if nth.is_multiple_of(READ_EVERY) {
            while sink.recv(&mut [0; PAYLOAD.len()]).is_ok() {}
        }
        Ok(())
    }))
}

fn failed(what: &str, error: &std::io::Error) -> HostError {
    HostError::os(format!("{what} a calibration socket"), error)
}
