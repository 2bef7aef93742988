//! `rxpath doctor`: what can be measured on this host, what cannot, and why.

use rxpath_bpf::doctor::{Diagnosis, examine};
use rxpath_core::Fact;
use rxpath_host::Root;

use crate::cmd::on_host::OnHost;
use crate::cmd::prelude::*;
use crate::output::color::{Paint, Stream, bold, paint};

/// `rxpath doctor`
#[derive(Debug, clap::Args)]
pub struct DoctorCommand {
    #[command(flatten)]
    format: FormatArgs,
    #[command(flatten)]
    pub on: OnHost,
}

impl DoctorCommand {
    /// Checks and prints.
    pub fn run(self) -> Outcome {
        let answer = Envelope::new("doctor", json!({}), examine(&Root::host()), Vec::new());
        output::answer(self.format.is_json(), &answer, told)?;
        Ok(Exit::Done)
    }
}

/// `ok` or `no`, as text and as colour.
fn mark<T>(state: &Fact<T>) -> String {
    match state {
        Fact::Ok { .. } => paint(Paint::Green, Stream::Out, "ok"),
        Fact::Absent { .. } | Fact::Denied { .. } => paint(Paint::Yellow, Stream::Out, "no"),
    }
}

fn told(diagnosis: &Diagnosis) -> String {
    let mut out = String::new();
    let mut area = "";
    for finding in &diagnosis.findings {
        if finding.area != area {
            area = &finding.area;
            out += &format!("{}\n", bold(area));
        }
        let state = output::known(&finding.state, String::clone);
        out += &format!("  {}  {:<28} {state}\n", mark(&finding.state), finding.what);
        if !finding.without_it.is_empty() {
            out += &format!("      without it: {}\n", finding.without_it);
        }
    }
    out += &format!("{}\n", bold("probes"));
    for probe in &diagnosis.probes {
        let name = format!("{} (rxpath {})", probe.probe, probe.used_by);
        let mark = mark(&probe.programs);
        let Some(programs) = probe.programs.value() else {
            let gap = probe.programs.gap().unwrap_or_default();
            out += &format!("  {mark}  {name:<28} {gap}\n");
            continue;
        };
        let loaded = programs.iter().filter(|program| program.id.value().is_some()).count();
        let all = programs.len();
        out += &format!("  {mark}  {name:<28} {loaded} of {all} programs load\n");
        for program in programs {
            if let (Some(gap), Some(loses)) = (program.id.gap(), &program.lost_knowledge) {
                out += &format!("      {}: {gap}\n      without it: {loses}\n", program.program);
            }
        }
    }
    out
}
