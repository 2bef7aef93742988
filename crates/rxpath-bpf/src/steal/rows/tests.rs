use proptest::prelude::*;

use super::*;
use crate::account::row::{Charge, CpuWindow, Culprit, CulpritKey, TaskKey};

fn row(pid: u32, cpu: u32, comm: &str, flags: u32, charge: Charge) -> ChargedTask {
    let key = TaskKey { start_ns: u64::from(pid) * 10, pid, cpu };
    let (first_ns, last_ns) = (1, 2);
    ChargedTask {
        key,
        charge,
        first_ns,
        last_ns,
        tgid: pid,
        parent: 1,
        flags,
        comm: comm.into(),
        cgroup: 0,
    }
}

fn window(cpu: u32, span_ns: u64) -> CpuWindow {
    CpuWindow { cpu, start_ns: 0, end_ns: span_ns, ..CpuWindow::default() }
}

fn reading(cpus: Vec<CpuWindow>, tasks: Vec<ChargedTask>) -> Reading {
    Reading { cpus, tasks, ..Reading::default() }
}

const SECOND: u64 = 1_000_000_000;

#[test]
fn a_victim_and_the_idle_task_fill_the_window() {
    let victim = Charge {
        on_cpu_ns: SECOND * 3 / 4,
        hardirq_ns: 10_000_000,
        net_rx_ns: 200_000_000,
        own_net_ns: 40_000_000,
        interrupts: 20_000,
        ..Charge::default()
    };
    let idle = Charge { on_cpu_ns: SECOND / 4, net_rx_ns: 50_000_000, ..Charge::default() };
    let reading = reading(
        vec![window(1, SECOND)],
        vec![row(7, 1, "victim", 0, victim), row(0, 1, "swapper/1", PF_KTHREAD, idle)],
    );
    let steal = TickTimes { steal_s: 0.02, ..TickTimes::default() };
    let rows = StealRows::new(&reading, &[(1, steal)], &IrqCalibration::given(5.0));
    let tasks = rows.tasks();
    assert_eq!((tasks[0].row.comm.as_str(), tasks[1].row.kind), ("victim", TaskKind::Idle));
    let time = &tasks[0].row.time;
    assert!((time.irq_entry_estimated_s - 0.1).abs() < 1e-9, "20,000 times 5 us: {time:?}");
    assert!((time.hypervisor_steal_s - 0.02).abs() < 1e-9, "it is the only one that was not idle");
    assert!((time.own_s - 0.38).abs() < 1e-9, "{time:?}");
    let cpu = &rows.cpus()[0];
    assert!((cpu.time.on_cpu_s - cpu.window_s).abs() < 1e-9);
    assert!((cpu.net_on_idle_s - 0.05).abs() < 1e-9 && (cpu.idle_s - 0.2).abs() < 1e-9);
}

#[test]
fn what_ksoftirqd_runs_is_taken_from_nobody() {
    let charge = Charge { on_cpu_ns: SECOND, net_rx_ns: 900_000_000, ..Charge::default() };
    let reading =
        reading(vec![window(0, SECOND)], vec![row(9, 0, "ksoftirqd/0", PF_KTHREAD, charge)]);
    let rows = StealRows::new(&reading, &[], &IrqCalibration::none("not asked for"));
    let task = &rows.tasks()[0].row;
    assert_eq!(task.kind, TaskKind::Ksoftirqd);
    assert!(task.time.taken_s().abs() < 1e-12 && (task.time.own_softirq_s - 0.9).abs() < 1e-9);
    assert!((rows.cpus()[0].deferred_s - 1.0).abs() < 1e-9);
}

#[test]
fn kinds_are_told_by_flag_and_name() {
    let kind_of = |comm: &str, flags| kind(&row(5, 0, comm, flags, Charge::default()));
    assert_eq!(kind_of("ksoftirqd/3", PF_KTHREAD), TaskKind::Ksoftirqd);
    assert_eq!(kind_of("ksoftirqd/3", 0), TaskKind::Task, "a user task can call itself so");
    assert_eq!(kind_of("napi/eth0-8193", PF_KTHREAD), TaskKind::Napi);
    assert_eq!(kind_of("kworker/0:1", PF_KTHREAD), TaskKind::Kernel);
    assert_eq!(kind_of("CPU 0/KVM", 0), TaskKind::Vcpu);
    assert_eq!(kind_of("fc_vcpu 1", 0), TaskKind::Vcpu);
    assert_eq!(kind_of("vcpu3", 0), TaskKind::Vcpu);
    assert_eq!(kind_of("vcpus", 0), TaskKind::Task);
    assert_eq!(kind_of("vhost-1234", 0), TaskKind::Vhost);
}

#[test]
fn a_family_is_found_through_its_parents() {
    let reading = reading(
        vec![window(0, SECOND)],
        [(10, 1), (11, 10), (12, 11), (13, 1)]
            .map(|(pid, parent)| {
                let charge = Charge { on_cpu_ns: 1, ..Charge::default() };
                ChargedTask { parent, ..row(pid, 0, "t", 0, charge) }
            })
            .to_vec(),
    );
    let rows = StealRows::new(&reading, &[], &IrqCalibration::none("not asked for"));
    let mut found = family(&rows.tasks(), 10);
    found.sort_unstable();
    assert_eq!(found, [10, 11, 12]);
}

#[test]
fn polls_are_charged_to_the_task_that_they_interrupted_on_whichever_cpu() {
    let charge = Charge { on_cpu_ns: SECOND, ..Charge::default() };
    let places = [(9, 0), (5, 1), (70, 0), (5, 0), (2, 1)];
    let tasks = places.map(|(pid, cpu)| row(pid, cpu, "t", 0, charge)).to_vec();
    let culprit = |pid: u32, cpu| Culprit {
        key: CulpritKey {
            victim: TaskKey { start_ns: u64::from(pid) * 10, pid, cpu },
            napi_id: 1,
            ifindex: 2,
            netns: 3,
        },
        dev: "eth0".into(),
        ns: SECOND / 4,
        polls: 1,
        packets: u64::from(pid),
    };
    // Of task 6 no slice was seen.
    let culprits = vec![culprit(70, 0), culprit(5, 1), culprit(5, 0), culprit(6, 0)];
    let reading =
        Reading { culprits, ..reading(vec![window(0, SECOND), window(1, SECOND)], tasks) };
    let rows = StealRows::new(&reading, &[], &IrqCalibration::none("not asked for"));
    let mut found: Vec<(u32, Vec<u32>, u64)> = (rows.tasks().into_iter())
        .map(|TaskTaken { row: task, .. }| {
            (task.pid, task.cpus, task.taken_by.iter().map(|by| by.packets).sum())
        })
        .collect();
    found.sort_unstable();
    let right = [(2, vec![1], 0), (5, vec![0, 1], 10), (9, vec![0], 0), (70, vec![0], 70)];
    assert_eq!(found, right);
}

prop_compose! {
    /// A charge as the kernel makes them: the parts never exceed the slice.
    fn charge()(parts in proptest::array::uniform7(0u64..SECOND / 8), own in 0u64..SECOND, interrupts in 0u64..2_000_000) -> Charge {
        let [hardirq_ns, net_rx_ns, net_tx_ns, other_softirq_ns, own_net_ns, own_other_ns, mixed_ns] = parts;
        Charge {
            on_cpu_ns: parts.iter().sum::<u64>() + own,
            hardirq_ns, net_rx_ns, net_tx_ns, other_softirq_ns, own_net_ns, own_other_ns, mixed_ns,
            interrupts,
            ..Charge::default()
        }
    }
}

proptest! {
    #[test]
    fn every_row_adds_up_whatever_is_estimated(
        charges in proptest::collection::vec((charge(), 0u32..3, 0u32..5), 1..20), k in 0.0f64..50.0, steal_s in 0.0f64..3.0,
    ) {
        let tasks: Vec<ChargedTask> = charges.iter().map(|(charge, cpu, pid)| {
            let (comm, flags) = if *pid == 4 { ("ksoftirqd/0", PF_KTHREAD) } else { ("t", 0) };
            row(*pid, *cpu, comm, flags, *charge)
        }).collect();
        let span = |cpu| tasks.iter().filter(|t| t.key.cpu == cpu).map(|t| t.charge.on_cpu_ns).sum();
        let windows = (0..3).map(|cpu| window(cpu, span(cpu))).collect();
        let reading = reading(windows, tasks);
        let ticks: Vec<_> = (0..3).map(|cpu| (cpu, TickTimes { steal_s, ..TickTimes::default() })).collect();
        let rows = StealRows::new(&reading, &ticks, &IrqCalibration::given(k));
        for TaskTaken { row: task, .. } in rows.tasks() {
            prop_assert!((task.time.sum_s() - task.time.on_cpu_s).abs() < 1e-6, "{task:?}");
            prop_assert!(task.time.own_s >= -1e-9, "{task:?}");
        }
        for cpu in rows.cpus() {
            prop_assert!((cpu.time.sum_s() - cpu.window_s).abs() < 1e-6, "{cpu:?}");
        }
    }
}

#[test]
fn of_a_softirq_that_ran_when_the_window_began_only_the_window_counts() {
    let charge = Charge {
        on_cpu_ns: 10_000,
        hardirq_ns: 6_000,
        net_rx_ns: 60_000,
        interrupts: 1,
        ..Charge::default()
    };
    let reading = reading(vec![window(0, SECOND)], vec![row(7, 0, "late", 0, charge)]);
    let rows = StealRows::new(&reading, &[], &IrqCalibration::given(5.0));
    let time = &rows.tasks()[0].row.time;
    assert!((time.sum_s() - time.on_cpu_s).abs() < 1e-12, "{time:?}");
    assert!((time.net_rx_s / time.hardirq_s - 10.0).abs() < 1e-9, "{time:?}");
}
