//! What goes wrong while the probes count: a full table, a CPU that is not there, processes that end and whose number
//! comes again.

use std::collections::BTreeSet;
use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rxpath_bpf::account::calibrate::IrqCalibration;
use rxpath_bpf::account::{Account, Reading};
use rxpath_bpf::steal::{Steal, StealInputs, answer, answer_of};
use rxpath_bpf::{Probe, ProbeCost};
use rxpath_core::{CpuList, Warning};
use rxpath_host::read::thread;
use rxpath_host::write::sched;

use crate::bed::{Bed, RX_IP, TX_IP, until};

fn all_cpus() -> CpuList {
    rxpath_host::Root::host().cpus("/sys/devices/system/cpu/online").unwrap()
}

/// The answer from `before` to now.
fn since(account: &Account, before: &Reading) -> (Steal, Vec<Warning>) {
    let after = account.read().unwrap();
    answer(StealInputs {
        before,
        after: &after,
        calibration: IrqCalibration::given(1.0),
        cost: ProbeCost::default(),
        probes: account.programs(),
        flows_looked: Duration::ZERO,
    })
}

fn adds_up(steal: &Steal) {
    for cpu in &steal.cpus {
        let whole = cpu.time.on_cpu_s + cpu.lost_s;
        assert!((whole - cpu.window_s).abs() < 1e-6, "{cpu:?}");
    }
    for task in steal.tasks.iter().map(|task| &task.row) {
        assert!((task.time.sum_s() - task.time.on_cpu_s).abs() < 1e-6, "{task:?}");
    }
}

/// A process that works until it is told to end.
pub fn busy() -> Child {
    let mut command = Command::new("sh");
    command.args(["-c", "while :; do :; done"]).stdin(Stdio::null()).stdout(Stdio::null());
    command.spawn().unwrap()
}

/// It has had CPU time, and is gone.
fn work_and_end(mut child: Child) -> u32 {
    let pid = child.id();
    let stat = format!("/proc/{pid}/schedstat");
    until("a process works", || {
        let text = std::fs::read_to_string(&stat).unwrap();
        text.split(' ').next().unwrap().parse::<u64>().unwrap() > 1_000_000
    });
    child.kill().unwrap();
    child.wait().unwrap();
    pid
}

#[test]
fn a_process_that_ends_while_it_is_counted_keeps_its_row() {
    let Some(_bed) = Bed::with_bpf() else { return };
    let account = Account::start().unwrap();
    let before = account.read().unwrap();
    let pid = work_and_end(busy());
    let (steal, _) = since(&account, &before);
    adds_up(&steal);
    let row = &steal.tasks.iter().find(|task| task.row.pid == pid).unwrap().row;
    assert!(row.time.on_cpu_s >= 0.001 && row.comm == "sh", "{row:?}");
}

/// What stays for days must not keep every process that ever ran.
#[test]
fn a_live_reading_has_the_tasks_that_ran_since_the_one_before_alone() {
    let Some(_bed) = Bed::with_bpf() else { return };
    let account = Account::live().unwrap();
    let before = account.read().unwrap();
    let pid = work_and_end(busy());
    let mut after = account.read().unwrap();
    let window = after.take_since(&before);
    let (steal, _) = answer_of(
        &window,
        StealInputs {
            before: &before,
            after: &after,
            calibration: IrqCalibration::given(1.0),
            cost: ProbeCost::default(),
            probes: account.programs(),
            flows_looked: Duration::ZERO,
        },
    );
    adds_up(&steal);
    let row = &steal.tasks.iter().find(|task| task.row.pid == pid).unwrap().row;
    assert!(row.time.on_cpu_s >= 0.001, "{row:?}");
    let later = account.read().unwrap();
    assert!(later.tasks.iter().all(|task| task.key.pid != pid), "{later:?}");
}

#[test]
fn a_number_that_comes_again_is_another_task() {
    let Some(_bed) = Bed::with_bpf() else { return };
    let account = Account::start().unwrap();
    let before = account.read().unwrap();
    let first = work_and_end(busy());
    // The next process gets the number above this one, unless another was quicker.
    let mut again = None;
    until("the number comes again", || {
        std::fs::write("/proc/sys/kernel/ns_last_pid", (first - 1).to_string()).unwrap();
        let child = busy();
        let same = child.id() == first;
        let pid = work_and_end(child);
        again = same.then_some(pid);
        same
    });
    let (steal, _) = since(&account, &before);
    adds_up(&steal);
    let rows: Vec<_> = steal.tasks.iter().filter(|task| Some(task.row.pid) == again).collect();
    let starts: BTreeSet<u64> = rows.iter().map(|task| task.row.start_ns).collect();
    // Another program may have had the number between the two.
    assert!(rows.len() >= 2 && starts.len() == rows.len(), "{rows:?}");
}

#[test]
fn a_full_table_loses_rows_and_says_how_much_time_they_had() {
    let Some(_bed) = Bed::with_bpf() else { return };
    let account = Account::of(&all_cpus(), 4).unwrap();
    let before = account.read().unwrap();
    for _ in 0..4 {
        work_and_end(busy());
    }
    let (steal, warnings) = since(&account, &before);
    adds_up(&steal);
    let lost: f64 = steal.cpus.iter().map(|cpu| cpu.lost_s).sum();
    assert!(lost > 0.0 && steal.probe_cost.lost_count > 0, "{steal:?}");
    assert!(warnings.iter().any(|warning| warning.code == "tasks-lost"), "{warnings:?}");
}

/// Whoever sends chooses the port: what fills the kernel's table is taken out of it in time, and added up.
#[test]
fn more_flows_than_there_is_room_for_are_still_told_one_by_one() {
    // The kernel's table has room for 8,192.
    const MANY: usize = 9_000;
    let Some((_bed, tx, _rx, [from, _])) = Bed::steered() else { return };
    let mut account = Account::start().unwrap();
    account.look_at_flows().unwrap();
    let (mut port, mut flows) = (0, Vec::new());
    until("so many flows were seen", || {
        // As many as come in a turn, to ports that had none.
        tx.run(move |_| {
            sched::pin(from).unwrap();
            let out = UdpSocket::bind((TX_IP, 0)).unwrap();
            for next in port..port + 2_000 {
                out.send_to(&[7; 32], (RX_IP, 1 + next % 60_000)).unwrap();
            }
        })
        .unwrap();
        port = (port + 2_000) % 60_000;
        account.note().unwrap();
        flows = account.read().unwrap().flows;
        flows.retain(|row| row.key.to == Some(RX_IP.into()));
        flows.len() > MANY
    });
    assert_eq!(account.read().unwrap().lost(), 0);
    let ports: BTreeSet<u16> = flows.iter().map(|row| row.key.port).collect();
    assert!(ports.len() > 2_000 && !ports.contains(&0), "{}", ports.len());
    assert!(flows.iter().all(|row| row.packets > 0 && row.dev == "veth"));
}

#[test]
fn a_cpu_that_is_offline_has_no_rows_and_is_named() {
    let Some(_bed) = Bed::with_bpf() else { return };
    let here = thread::allowed_cpus().unwrap().0[0];
    // Further than any machine has CPUs: the kernel answers as for one that went offline.
    let account = Account::of(&CpuList(vec![here, 8191]), 32_768).unwrap();
    let before = account.read().unwrap();
    work_and_end(busy());
    let (steal, warnings) = since(&account, &before);
    adds_up(&steal);
    assert_eq!(steal.cpus.iter().map(|cpu| cpu.cpu).collect::<Vec<_>>(), [here]);
    let said: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    assert!(
        said.iter().any(|text| text.contains("CPU 8191 was counted for part of the window only")),
        "{said:?}"
    );
}

/// Rows leave the kernel with each reading: more tasks than there is room for, one after the other, are all counted.
#[test]
fn room_is_needed_for_the_tasks_of_one_window_only() {
    // For a few windows' tasks, and for what else runs on this host.
    const ROOM: u32 = 1000;
    let Some(_bed) = Bed::with_bpf() else { return };
    let account = Account::of(&all_cpus(), ROOM).unwrap();
    let before = account.read().unwrap();
    let mut pids = BTreeSet::new();
    while pids.len() < ROOM as usize + 200 {
        for _ in 0..50 {
            let mut child = Command::new("true").spawn().unwrap();
            pids.insert(child.id());
            child.wait().unwrap();
        }
        account.read().unwrap();
    }
    let (steal, warnings) = since(&account, &before);
    adds_up(&steal);
    let seen: BTreeSet<u32> = steal.tasks.iter().map(|task| task.row.pid).collect();
    assert!(pids.is_subset(&seen), "{} of {}: {warnings:?}", seen.len(), pids.len());
    assert_eq!(steal.probe_cost.lost_count, 0, "{warnings:?}");
}
