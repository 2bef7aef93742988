//! The grade of a trial with its reasons, and that of each host.

use std::collections::BTreeMap;

use rxpath_core::{CpuList, IntoMap, PathSide, Warning};
use rxpath_live::observe::Between;
use rxpath_record::hosts::HostTrial;
use rxpath_record::manifest::Grade;

use crate::scenario::spec::Variant;
use crate::testbed::Testbed;
use crate::testbed::seat::Seat;
use crate::testbed::window::Windowed;
use crate::trial::measurements::Measurements;
use crate::trial::noise::{self, Disturbance};

/// The grades of a trial.
#[derive(Default)]
pub(super) struct Grades {
    /// That of the worst host.
    pub grade: Grade,
    /// The reasons, which name the host.
    pub noise: Vec<String>,
    /// Of each host, by alias.
    pub hosts: BTreeMap<String, HostTrial>,
}

/// Each host is judged by the CPUs of its own program and those that work for its network card; one machine for all by
/// those of both programs.
pub(super) fn of(variant: &Variant, testbed: &dyn Testbed, raw: &Measurements) -> Grades {
    let (load, serve) = (variant.load.cpus(), variant.serve.cpus());
    // Threads that nobody pinned can be disturbed anywhere.
    let judged = |lists: &[&CpuList], between: &Between| {
        let anywhere = lists.iter().any(|list| list.is_empty());
        let pinned = |cpu: u32| {
            let works = between.device_cpus.contains(&cpu);
            anywhere || works || lists.iter().any(|list| list.0.contains(&cpu))
        };
        noise::grade(&disturbance(variant, between, pinned))
    };
    let window = &raw.window;
    if window.of_senders.is_empty() {
        let (grade, noise) = judged(&[load, serve], &window.between);
        let sides = [PathSide::Tx, PathSide::Rx].into_iter();
        let named =
            sides.flat_map(|side| testbed.hosts(side).into_iter().map(move |it| (it, side)));
        let part = |(name, side)| host(window, name, side, (grade, noise.clone()));
        let hosts = named.map(part).into_map();
        return Grades { grade, noise, hosts };
    }
    let mut all = Grades::default();
    let sides = [
        (PathSide::Tx, "sender", window.of_senders.as_slice()),
        (PathSide::Rx, "receiver", window.receivers()),
    ];
    for (side, word, betweens) in sides {
        let names = testbed.hosts(side);
        for (index, between) in betweens.iter().enumerate() {
            let (grade, noise) = judged(&[&testbed.cpus(Seat { side, index }, variant)], between);
            let name = names.get(index);
            let shown = match name.filter(|_| betweens.len() > 1) {
                Some(name) => format!("{word} {name}"),
                None => word.to_owned(),
            };
            all.grade = all.grade.max(grade);
            all.noise.extend(noise.iter().map(|reason| format!("{shown}: {reason}")));
            all.hosts.extend(name.map(|name| host(window, name.clone(), side, (grade, noise))));
        }
    }
    all
}

/// A host by its name, with its grade and the cost of measuring.
fn host(
    window: &Windowed,
    name: String,
    side: PathSide,
    (grade, noise): (Grade, Vec<String>),
) -> (String, HostTrial) {
    let endpoint_cost = window.costs.get(&name).cloned();
    let start = window.starts.get(&name).copied();
    (name, HostTrial { grade, noise, endpoint_cost, start, ..HostTrial::of(side) })
}

/// What makes a window worthless, as warnings: they stay if its trial is counted.
pub(super) fn unsteady(window: &Windowed) -> impl Iterator<Item = Warning> {
    let faults = window.faults.iter().map(|fault| Warning::new("unsteady-host", fault));
    faults.chain(window.jumps.iter().map(|jump| Warning::new("clock-jump", jump)))
}

/// Why a trial does not count, if it does not.
pub(super) fn void(window: &Windowed, grade: Grade, noise: &[String]) -> Option<String> {
    let faults: Vec<&str> = window.faults.iter().chain(&window.jumps).map(String::as_str).collect();
    (!faults.is_empty()).then(|| faults.join("; ")).or_else(|| noise::void(grade, noise))
}

fn disturbance(variant: &Variant, between: &Between, pinned: impl Fn(u32) -> bool) -> Disturbance {
    let worst = between.foreign.iter().flatten().filter(|(cpu, _)| pinned(**cpu));
    let worst = worst.max_by(|a, b| a.1.0.total_cmp(&b.1.0));
    let mine = between.cpus.iter().filter(|cpu| pinned(cpu.cpu));
    let taken = mine.max_by(|a, b| a.steal_ratio.total_cmp(&b.steal_ratio));
    Disturbance {
        foreign_ratio: between
            .foreign
            .as_ref()
            .map(|_| worst.map_or(0.0, |(_, (ratio, _))| *ratio)),
        foreign_cpu: worst.map_or(0, |(cpu, _)| *cpu),
        foreign_name: worst.map_or_else(String::new, |(_, (_, name))| name.clone()),
        steal_ratio: taken.map_or(0.0, |cpu| cpu.steal_ratio),
        // A CPU that is kept awake does not halt, however idle.
        idle_ratio: taken.map_or(0.0, |cpu| if variant.lab.awake { 0.0 } else { cpu.idle_ratio }),
    }
}

#[cfg(test)]
mod tests {
    use rxpath_record::hosts::ControlCost;

    use super::*;
    use crate::scenario::{HostShape, parse, resolve};
    use crate::testbed::local::LocalTestbed;

    #[test]
    fn a_disturbed_cpu_that_takes_the_card_s_interrupts_lowers_the_grade() {
        let file = parse("question = \"q\"\n[load]\ncpu = 0\n[serve]\ncpu = 1", "t", "t").unwrap();
        let resolved = resolve(&file, &[], &HostShape::flat(4)).unwrap();
        let variant = &resolved.variants[0];
        let testbed = LocalTestbed::make(&variant.lab).unwrap();
        let host = |device_cpus: &[u32]| Between {
            foreign: Some([(3, (0.05, "node_exporter".to_owned()))].into()),
            device_cpus: device_cpus.to_vec(),
            ..Between::default()
        };
        let graded = |receiver: Between| {
            let of_senders = vec![host(&[])];
            let window = Windowed { between: receiver, of_senders, ..Windowed::default() };
            let raw = Measurements { window, ..Measurements::default() };
            let Grades { grade, noise, .. } = of(variant, &testbed, &raw);
            (grade, noise)
        };
        assert_eq!(graded(host(&[])), (Grade::A, Vec::new()));
        let (grade, noise) = graded(host(&[3]));
        assert_eq!(grade, Grade::C);
        assert_eq!(noise, ["receiver: other programs took 5.0 % of CPU 3 (most: node_exporter)"]);
    }

    #[test]
    fn what_measuring_cost_a_host_is_in_its_part() {
        let cost = ControlCost { span_ns: 1_000, cpu_ns: 4, ..ControlCost::default() };
        let costs = [("sut".to_owned(), cost.clone())].into();
        let window = Windowed { costs, ..Windowed::default() };
        let part = |name: &str| host(&window, name.into(), PathSide::Rx, (Grade::A, Vec::new())).1;
        assert_eq!(part("sut").endpoint_cost, Some(cost));
        assert_eq!(part("gen1").endpoint_cost, None);
    }

    #[test]
    fn a_clock_or_a_link_that_was_not_steady_voids_a_quiet_trial() {
        let fault = |text: &str| Windowed { faults: vec![text.into()], ..Windowed::default() };
        assert_eq!(void(&Windowed::default(), Grade::A, &[]), None);
        let why = void(&fault("sut: ens1f0 lost its carrier 1.2 s into the window"), Grade::A, &[]);
        assert_eq!(why.unwrap(), "sut: ens1f0 lost its carrier 1.2 s into the window");
        let jump = "gen2: its clock jumped by 81.0 ms in the trial";
        let jumped = Windowed { jumps: vec![jump.into()], ..Windowed::default() };
        assert_eq!(void(&jumped, Grade::A, &[]).unwrap(), jump);
        let codes: Vec<String> = unsteady(&jumped).map(|warning| warning.code).collect();
        assert_eq!(codes, ["clock-jump"]);
        let noise = ["other programs took 50 % of CPU 1".to_owned()];
        assert!(void(&Windowed::default(), Grade::D, &noise).unwrap().contains("50 %"));
    }
}
