//! `rxpath load http`: the options, and the result for people.

mod summary;

use std::net::IpAddr;

use rxpath_core::{ItemCount, Rate};
use rxpath_load::http::load::Load;
use rxpath_load::http::load::options::{Engine, LoadOptions, Loop, Pacing};
use rxpath_load::http::load::result::{Interval, LoadResult};
use rxpath_load::http::load::url::Url;
use rxpath_load::workload::WorkloadHandle;

use crate::cmd::conduct::{ConductArgs, EndConditions, Shown, block, conduct};
use crate::cmd::prelude::*;
use crate::cmd::values::{seconds, value_name};
use crate::cmd::workload_args::{ThreadArgs, placed};
use crate::output::rates::{Rows, grouped};

/// `rxpath load http …`
#[derive(Debug, clap::Args)]
pub struct LoadHttp {
    /// URL to request: http://HOST[:PORT][/PATH]
    url: String,
    /// Connections over all threads, kept open
    #[arg(short, long, value_name = "N", default_value = "10")]
    connections: ItemCount,
    #[command(flatten)]
    threads: ThreadArgs,
    /// Requests per second over all threads (50k, 1.2Mrps), by an absolute schedule (open loop); without it, each reply
    /// triggers the next request (closed loop)
    #[arg(long, value_name = "RATE")]
    rate: Option<Rate>,
    /// How to wait for the next scheduled send
    #[arg(long, value_enum, default_value = "auto", requires = "rate")]
    pacing: Pacing,
    /// Stop after exactly this many requests
    #[arg(short = 'n', long, value_name = "N")]
    requests: Option<ItemCount>,
    /// Requests in flight at once on each connection
    #[arg(long, value_name = "N", default_value_t = 1)]
    pipeline: usize,
    /// Method (default GET; POST with a body)
    #[arg(short = 'X', long, value_name = "METHOD")]
    method: Option<String>,
    /// A header of the request, `Name: value`; may be repeated
    #[arg(short = 'H', long = "header", value_name = "HEADER")]
    headers: Vec<String>,
    /// Body of the request
    #[arg(long, value_name = "TEXT", conflicts_with = "body_file")]
    body: Option<String>,
    /// Body of the request, from a file
    #[arg(long, value_name = "FILE")]
    body_file: Option<PathBuf>,
    /// Give up a request and its connection after this long
    #[arg(long, value_name = "TIME", value_parser = seconds, default_value = "2s")]
    timeout: Nanos,
    /// Use a new connection for each request
    #[arg(long)]
    no_keepalive: bool,
    /// Local address to connect from
    #[arg(long, value_name = "IP")]
    source: Option<IpAddr>,
    /// How the threads do their I/O (default: uring where the kernel allows it)
    #[arg(long, value_enum)]
    engine: Option<Engine>,
    #[command(flatten)]
    conduct: ConductArgs,
}

impl LoadHttp {
    /// Runs the load to its end.
    pub fn run(self) -> Outcome {
        // The load ends by itself, exactly at its time.
        conduct(Load::open(self.options()?), &self.conduct, EndConditions::default())
    }

    fn options(&self) -> Result<LoadOptions, Failure> {
        let url: Url = self.url.parse().map_err(|bad: rxpath_load::http::load::url::BadUrl| {
            let hint = bad.hint;
            Failure::usage(bad).hint(hint)
        })?;
        let body = match (&self.body, &self.body_file) {
            (Some(text), _) => Some(text.clone().into_bytes()),
            (None, Some(path)) => {
                Some(std::fs::read(path).or_usage(|| format!("--body-file {}", path.display()))?)
            }
            (None, None) => None,
        };
        let method = if body.is_some() { "POST" } else { "GET" };
        Ok(LoadOptions {
            connections: self.connections.0 as usize,
            threads: self.threads.threads()?,
            duration_ns: self.conduct.load_ns(self.requests.is_some()),
            requests: self.requests.map(|requests| requests.0),
            rate_rps: self.rate.map(|rate| rate.0),
            pacing: self.pacing,
            pipeline: self.pipeline,
            method: self.method.clone().unwrap_or_else(|| method.into()),
            headers: self.headers.clone(),
            body: body.unwrap_or_default(),
            timeout_ns: self.timeout.0,
            keepalive: !self.no_keepalive,
            source: self.source,
            engine: self.engine.unwrap_or_else(Engine::of_host),
            ..LoadOptions::new(url)
        })
    }
}

impl Shown for Load {
    fn settings_text(&self) -> String {
        let s = self.settings();
        let each = if s.keepalive { "" } else { ", one for each request" };
        let pipeline =
            if s.pipeline > 1 { format!(", pipeline {}", s.pipeline) } else { String::new() };
        let mut rows = vec![
            ("address", address(s)),
            ("threads", placed(&s.threads)),
            ("connections", format!("{}{each}{pipeline}", s.connections_count)),
            (
                "loop",
                match (s.r#loop, s.target_rps) {
                    (Loop::Open, Some(rps)) => {
                        format!("open: {} requests/s by schedule", grouped(rps))
                    }
                    _ => "closed: each reply triggers the next request".into(),
                },
            ),
        ];
        rows.extend(s.pacing.iter().map(|pacing| ("pacing", pacing.clone())));
        let first = s.request.lines().next().unwrap_or_default();
        rows.push(("request", format!("{first}, {} bytes", s.request_bytes)));
        rows.push(("engine", value_name(&s.engine)));
        block(&format!("load http {}", s.url), &rows)
    }

    fn result_text(&self, r: &LoadResult) -> String {
        summary::summary(r, self.settings())
    }

    fn set_rate(result: &mut LoadResult, rps: f64) {
        result.achieved_rps = rps;
    }

    fn exit(&self, result: &LoadResult) -> Exit {
        if result.gave_up { Exit::Partial } else { Exit::Done }
    }

    fn rows(&self, split: bool) -> Rows<Interval> {
        summary::load_rows(split)
    }
}

fn address(s: &rxpath_load::http::load::options::LoadSettings) -> String {
    match s.resolved.len() {
        0 | 1 => s.to.to_string(),
        n => format!("{} (of {n} addresses)", s.to),
    }
}
