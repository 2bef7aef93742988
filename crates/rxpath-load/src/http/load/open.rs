//! Opening a load: checks, the address, threads.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use crate::LoadError;
use crate::engine::thread::CpuTime;
use crate::http::load::message::Message;
use crate::http::load::meter::Desk;
use crate::http::load::options::{LoadOptions, LoadSettings, Loop};
use crate::http::load::{Load, message, ports, signs, target, worker};
use crate::pace;
use crate::workload::{check_cpus, start_worker};

/// The deepest pipeline.
const MAX_PIPELINE: usize = 1024;

pub(super) fn open(options: LoadOptions) -> Result<Load, LoadError> {
    check(&options)?;
    check_cpus(&options.cpus)?;
    let message = Arc::new(message::write(&options)?);
    let descriptors = ports::make_room(options.connections, options.threads)?;
    let resolved = target::resolve(&options.url)?;
    let to = target::reach(&resolved, options.source)?;
    let settings = settle(&options, &message, (to, resolved), descriptors);
    let mut load = Load {
        desk: Arc::new(Desk::new(options.threads)),
        options: Arc::new(options),
        settings,
        warnings: Vec::new(),
        workers: Vec::new(),
        cpu_before: CpuTime::default(),
        ended_ns: None,
        read_before: Mutex::default(),
        sockets: Vec::new(),
    };
    start_workers(&mut load, &message, to)?;
    Ok(load)
}

fn check(options: &LoadOptions) -> Result<(), LoadError> {
    let bad = |what: String, hint: &str| Err(LoadError::usage(what, hint));
    let (connections, threads) = (options.connections, options.threads);
    if threads == 0 {
        return bad("--threads 0: no thread would send requests".into(), "give at least 1");
    }
    if connections < threads {
        let what = format!("-c {connections}: fewer connections than threads ({threads})");
        return bad(what, "each thread has connections of its own: raise -c or lower -t");
    }
    if !(1..=MAX_PIPELINE).contains(&options.pipeline) {
        let what = format!("--pipeline {}: 1 to {MAX_PIPELINE}", options.pipeline);
        return bad(what, "1 means no pipelining");
    }
    if options.pipeline > 1 && !options.keepalive {
        let what = "--pipeline needs persistent connections: it excludes --no-keepalive".into();
        return bad(what, "use one of the two");
    }
    if options.rate_rps == Some(0) {
        return bad("--rate 0: no request would be sent".into(), "leave it out for a closed loop");
    }
    if options.requests == Some(0) {
        return bad("--requests 0: no request would be sent".into(), "give at least 1");
    }
    if options.timeout_ns < 1_000_000 {
        return bad("--timeout: under 1 ms".into(), "give at least 1ms");
    }
    if options.duration_ns == Some(0) {
        return bad("--duration 0: no request would be sent".into(), "give for example 10s");
    }
    Ok(())
}

fn settle(
    options: &LoadOptions,
    message: &Message,
    (to, resolved): (SocketAddr, Vec<SocketAddr>),
    descriptors_limit: u64,
) -> LoadSettings {
    let share = pace::Share {
        rate_per_s: options.rate_rps.unwrap_or(1),
        each: 1,
        thread: 0,
        threads: options.threads as u64,
    };
    LoadSettings {
        url: options.url.to_string(),
        to,
        resolved,
        source: options.source,
        connections_count: options.connections,
        threads_count: options.threads,
        cpus: options.cpus.clone(),
        nice: options.nice,
        r#loop: if options.rate_rps.is_some() { Loop::Open } else { Loop::Closed },
        target_rps: options.rate_rps,
        pacing: options.rate_rps.map(|_| pace::describe(options.pacing, share)),
        pipeline: options.pipeline,
        keepalive: options.keepalive,
        request: message.head.clone(),
        request_bytes: message.len,
        timeout_s: options.timeout_ns as f64 / 1e9,
        duration_s: options.duration_ns.map(|ns| ns as f64 / 1e9),
        requests: options.requests,
        engine: options.engine,
        descriptors_limit,
        tick_hz: signs::tick_hz(),
    }
}

fn start_workers(load: &mut Load, message: &Arc<Message>, to: SocketAddr) -> Result<(), LoadError> {
    let (threads, connections) = (load.options.threads, load.options.connections);
    for index in 0..threads {
        let plan = worker::Plan {
            index,
            connections: share_of(connections as u64, index, threads) as usize,
            requests: load.options.requests.map_or(u64::MAX, |n| share_of(n, index, threads)),
            to,
            options: Arc::clone(&load.options),
            message: Arc::clone(message),
            desk: Arc::clone(&load.desk),
        };
        let (name, tally) = (format!("rx-http-{index}"), &load.desk.shared.tallies[index]);
        load.workers.push(start_worker(&name, tally, move |ready| worker::run(&plan, ready))?);
    }
    Ok(())
}

/// This thread's part; the first threads take what does not divide.
fn share_of(all: u64, index: usize, threads: usize) -> u64 {
    let (index, threads) = (index as u64, threads as u64);
    all / threads + u64::from(index < all % threads)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up() {
        for (all, threads) in [(10, 3), (3, 3), (100, 7)] {
            let shares: Vec<u64> =
                (0..threads).map(|index| share_of(all, index, threads)).collect();
            assert_eq!(shares.iter().sum::<u64>(), all);
            assert!(shares.iter().max().unwrap() - shares.iter().min().unwrap() <= 1);
        }
    }
}
