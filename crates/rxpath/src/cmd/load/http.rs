//! `rxpath load http`: the options, and the result for people.

mod summary;

use rxpath_load::http::load::Load;
use rxpath_load::http::load::options::{LoadOptions, Loop};
use rxpath_load::http::load::result::{Interval, LoadResult};
use rxpath_load::workload::WorkloadHandle;

use crate::cmd::conduct::{ConductArgs, EndConditions, Shown, block, conduct};
use crate::cmd::prelude::*;
use crate::cmd::values::value_name;
use crate::cmd::workload_text::placed;
use crate::output::rates::{Rows, grouped};

/// `rxpath load http …`
#[derive(Debug, clap::Args)]
pub struct LoadHttp {
    #[command(flatten)]
    options: LoadOptions,
    #[command(flatten)]
    conduct: ConductArgs,
}

impl LoadHttp {
    /// Runs the load to its end.
    pub fn run(mut self) -> Outcome {
        self.options.duration_ns = self.conduct.load_ns(self.options.requests.is_some());
        // The load ends by itself, exactly at its time.
        conduct(Load::open(self.options), &self.conduct, EndConditions::default())
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
