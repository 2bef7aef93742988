//! The reader may not run, although a CPU is free: it is stopped, frozen, or has used up its control group's CPU quota.

use rxpath_record::evidence::{Halt, Throttled};

use crate::rules::prelude::*;

pub fn halted(view: &View, halted: Halt) -> Claim {
    let (what, remedy, source) = match halted {
        Halt::Signal => (
            "a signal stopped it (state T)",
            "resume it: `kill -CONT PID`, or `fg` in the shell that stopped it; find who sent SIGSTOP",
            "/proc/PID/stat, state",
        ),
        Halt::Tracer => (
            "a debugger or tracer holds it (state t)",
            "continue it in the debugger, or detach the debugger (TracerPid in /proc/PID/status names it)",
            "/proc/PID/stat, state",
        ),
        Halt::Freezer => (
            "its control group is frozen",
            "thaw the group: `docker unpause`, or 0 into cgroup.freeze (version 1: THAWED into freezer.state)",
            "cgroup.events, freezer.state",
        ),
    };
    let at_ends = line(format!("at the start and at the end of the window {what}"), source);
    let sentence = format!("the receiving application does not run: {what}");
    claim(view, sentence).because([at_ends]).because(rest(view)).remedy(remedy)
}

pub fn throttled(view: &View, throttled: &Throttled) -> Claim {
    let share = percent(throttled.ratio.min(1.0));
    let cpu = view.reader.lead.cpu;
    let idle = cpu.and_then(|cpu| Some((cpu, 1.0 - view.busy_ratio(cpu)?))).map(|(cpu, idle)| {
        let text = format!(
            "CPU {cpu} was {} idle meanwhile: nothing else kept the reader off it",
            percent(idle)
        );
        line(text, "/proc/stat")
    });
    let sentence = format!(
        "the receiving application is stopped by the CPU quota of its control group {}: for {share} of the window it was not allowed to run",
        throttled.group
    );
    let counted = line(
        format!("control group {} was throttled for {share} of the window", throttled.group),
        "cpu.stat, throttled time",
    );
    claim(view, sentence)
        .on(cpu)
        .because([counted])
        .because(idle)
        .because(rest(view))
        .remedy("raise or lift the quota: CPUQuota= of its unit, the CPU limit of its container or pod, cpu.max of the group (version 1: cpu.cfs_quota_us)")
        .remedy("a shorter period (CPUQuotaPeriodSec=, the second number of cpu.max) makes the stops shorter at the same quota; a larger receive buffer survives one stop")
}

fn claim(view: &View, sentence: String) -> Claim {
    Claim::at_socket(view, Stage::ApplicationDescheduled, Confidence::Strong, sentence)
}

fn rest(view: &View) -> Vec<EvidenceLine> {
    let mut lines = vec![lead("receiver", &view.reader)];
    lines.extend(drops(view, Place::SocketBuffer));
    lines.extend(services(view));
    lines.extend(view.reader.lead.cpu.and_then(|cpu| cpu_use(view, cpu)));
    lines.extend(queues(view));
    lines.push(rates(view));
    lines
}
