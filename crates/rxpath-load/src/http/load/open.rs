//! Opening a load: checks, the address, threads.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::LoadError;
use crate::engine::listen::descriptors_for;
use crate::http::load::message::Message;
use crate::http::load::meter::LiveCounters;
use crate::http::load::options::{Engine, LoadOptions, LoadSettings, Loop};
use crate::http::load::url::{BadUrl, Url};
use crate::http::load::{Load, message, target, warnings, worker};
use crate::live::NewTimes;
use crate::pace;
use crate::pool::Pool;

/// The deepest pipeline.
const MAX_PIPELINE: usize = 1024;
/// File descriptors in addition to the connections and those of the threads: standard streams, rings, signals.
const OTHER_DESCRIPTORS: usize = 32;

impl Load {
    /// Finds the server, makes room for the connections and starts the threads, which wait for
    /// [`WorkloadHandle::start`](crate::workload::WorkloadHandle::start).
    ///
    /// The connections themselves are opened by the threads when they start.
    pub fn open(options: LoadOptions) -> Result<Self, LoadError> {
        let bad = |bad: BadUrl| LoadError::usage(bad.to_string(), bad.hint);
        let url: Url = options.url.parse().map_err(bad)?;
        check(&options)?;
        let message = Arc::new(message::write(&options, &url)?);
        let others = 2 * options.threads.count + OTHER_DESCRIPTORS;
        let descriptors = descriptors_for("-c", options.connections, others)?;
        let resolved = target::resolve(&url)?;
        let to = target::reach(&resolved, options.source)?;
        let settings = settle(&options, &url, &message, (to, resolved), descriptors);
        let mut load = Self {
            live: Arc::new((0..options.threads.count).map(|_| LiveCounters::default()).collect()),
            pool: Pool::new("rx-http", &options.threads),
            options: Arc::new(options),
            settings,
            warnings: Vec::new(),
            ended_ns: None,
            new_in_interval: NewTimes::default(),
            new_in_slice: NewTimes::default(),
            sockets: Vec::new(),
        };
        let options = Arc::clone(&load.options);
        let share = |all, index| options.threads.share(all, index);
        for index in 0..options.threads.count {
            let plan = worker::Plan {
                connections: share(options.connections as u64, index) as usize,
                requests: options.requests.map_or(u64::MAX, |all| share(all, index)),
                to,
                engine: load.settings.engine,
                options: Arc::clone(&options),
                message: Arc::clone(&message),
                live: Arc::clone(&load.live),
            };
            load.pool.start(move |start| worker::run(&plan, start))?;
        }
        Ok(load)
    }
}

fn check(options: &LoadOptions) -> Result<(), LoadError> {
    let bad = |what: String, hint: &str| Err(LoadError::usage(what, hint));
    // Their descriptors are counted with those of the connections.
    options.threads.check("send requests", 0)?;
    let (connections, threads) = (options.connections, options.threads.count);
    if connections < threads {
        let what = format!("-c {connections}: fewer connections than threads ({threads})");
        return bad(what, "each thread has connections of its own: raise -c or lower -t");
    }
    if !(1..=MAX_PIPELINE).contains(&options.pipeline) {
        let what = format!("--pipeline {}: 1 to {MAX_PIPELINE}", options.pipeline);
        return bad(what, "1 means no pipelining");
    }
    if options.pipeline > 1 && options.no_keepalive {
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
    url: &Url,
    message: &Message,
    (to, resolved): (SocketAddr, Vec<SocketAddr>),
    descriptors_limit: u64,
) -> LoadSettings {
    let share = pace::Share::of(options.rate_rps.unwrap_or(1), 1, (0, options.threads.count));
    LoadSettings {
        url: url.to_string(),
        to,
        resolved,
        source: options.source,
        connections_count: options.connections,
        threads: options.threads.clone(),
        r#loop: if options.rate_rps.is_some() { Loop::Open } else { Loop::Closed },
        target_rps: options.rate_rps,
        pacing: options.rate_rps.map(|_| pace::describe(options.pacing, share)),
        pipeline: options.pipeline,
        keepalive: !options.no_keepalive,
        request: message.head.clone(),
        request_bytes: message.len,
        timeout_s: options.timeout_ns as f64 / 1e9,
        duration_s: options.duration_ns.map(|ns| ns as f64 / 1e9),
        requests: options.requests,
        engine: options.engine.unwrap_or_else(Engine::of_host),
        descriptors_limit,
        tick_hz: warnings::tick_hz(),
    }
}
