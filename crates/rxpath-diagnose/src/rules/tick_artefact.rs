//! The path is fine, but `top` shows a wrong CPU use: ticks and measured time disagree.

use super::nothing::reached;
use crate::rules::prelude::*;

/// A CPU whose ticks err.
struct Wrong {
    cpu: u32,
    ticks: f64,
    measured: f64,
    interrupts_per_s: f64,
}

/// The CPU whose softirq ticks are farthest from what was measured.
fn worst(view: &View) -> Option<Wrong> {
    let probed = view.raw.probed.as_ref()?;
    let each = probed.cpus.iter().filter_map(|probed| {
        let ticks = view.softirq_ticks_ratio(probed.cpu)?;
        let measured = view.softirq_ratio(probed.cpu)?;
        let interrupts_per_s = crate::view::sound_rate(probed.interrupts_per_s);
        Some(Wrong { cpu: probed.cpu, ticks, measured, interrupts_per_s })
    });
    // Interrupt costs outside tracepoints can explain ticks that show more time, never ticks that show less.
    let off = |wrong: &Wrong| {
        let hidden = wrong.interrupts_per_s * HIDDEN_PER_INTERRUPT_S;
        (wrong.measured - wrong.ticks).max(wrong.ticks - wrong.measured - hidden)
    };
    let most = each.max_by(|a, b| off(a).total_cmp(&off(b)).then(b.cpu.cmp(&a.cpu)))?;
    (off(&most) >= TICK_ERROR_RATIO).then_some(most)
}

pub fn judge(view: &View) -> Option<Claim> {
    if view.loses() || !reached(view) {
        return None;
    }
    let Wrong { cpu, ticks, measured, interrupts_per_s } = worst(view)?;
    let sentence = format!(
        "nothing limits, and tick accounting is wrong about CPU {cpu}: top and /proc/stat show {} of it in softirqs, the measurement shows {}",
        percent(ticks),
        percent(measured),
    );
    let usage = view.cpu(cpu)?;
    let shown = line(
        format!(
            "by ticks: softirq {}, user {}, system {}, idle {}",
            percent(ticks),
            percent(sound_ratio(usage.user_ratio)),
            percent(sound_ratio(usage.system_ratio)),
            percent(sound_ratio(usage.idle_ratio)),
        ),
        format!("/proc/stat cpu{cpu}"),
    );
    let seen = line(
        format!(
            "between tracepoints: softirq {}, {} interrupts/s, whose entry and exit come on top",
            percent(measured),
            count(interrupts_per_s.round() as u64),
        ),
        "irq:softirq_entry and softirq_exit",
    );
    let needs = &[Part::Ledger, Part::Window, Part::Places];
    Some(
        Claim::new(Stage::TickArtefact, Confidence::Strong, needs, sentence)
            .on(Some(cpu))
            .because([shown, seen])
            .because(traffic(view))
            .remedy("do not rely on top here: `rxpath steal` measures whose time it was")
            .remedy("a kernel with CONFIG_IRQ_TIME_ACCOUNTING charges interrupts by the clock")
            .remedy("the work runs in step with the tick (its period is a multiple of the tick): change one of the two periods"),
    )
}
