//! Tests of this module.

use super::*;

fn numbers(count: usize) -> Vec<u8> {
    (1..=count as u64).flat_map(u64::to_ne_bytes).collect()
}

#[test]
fn rows_are_read_by_place() {
    let mut value = numbers(20);
    for number in [11u32, 12, 13, 0] {
        value.extend(number.to_ne_bytes());
    }
    value.extend(b"victim\0\0\0\0\0\0\0\0\0\0");
    value.extend(99u64.to_ne_bytes());
    let mut key = 5u64.to_ne_bytes().to_vec();
    key.extend([7u32, 1, 1, 0].iter().flat_map(|word| word.to_ne_bytes()));
    let (half, row) = task(&key, &value);
    assert_eq!(half, 1);
    assert_eq!(row.key, TaskKey { start_ns: 5, pid: 7, cpu: 1 });
    assert_eq!((row.charge.hardirq_ns, row.charge.taken_packets), (1, 13));
    assert_eq!(row.charge.other_network_ns, 14);
    assert_eq!((row.charge.on_cpu_ns, row.charge.slices), (15, 18));
    assert_eq!((row.first_ns, row.last_ns), (19, 20));
    assert_eq!((row.tgid, row.parent, row.flags, row.comm.as_str()), (11, 12, 13, "victim"));
    assert_eq!(row.cgroup, 99);
}

#[test]
fn the_window_stands_around_the_scratch() {
    let (half, row) = window(3, &numbers(60));
    // Words: 10 of softirqs, 14 totals, one, five of ten halves, one; the slice and three bases; then the end.
    assert_eq!((row.start_ns, row.end_ns, row.lost_ns, row.unmatched), (45, 36, 37, 40));
    assert_eq!((row.skipped_ns, switches(&numbers(60))), (46, 47));
    assert_eq!((half, looked_at(&numbers(60))), (41, (42, 44)));
    assert_eq!((row.lost_flows, row.lost()), (43, 38 + 39 + 43));
}

#[test]
fn a_window_is_as_long_as_was_counted() {
    let earlier = CpuWindow { start_ns: 10, end_ns: 50, skipped_ns: 5, ..CpuWindow::default() };
    let now = CpuWindow { end_ns: 90, skipped_ns: 30, ..earlier };
    let window = now.since(Some(&earlier));
    assert_eq!((window.whole_ns(), window.span_ns()), (40, 15));
    assert_eq!(earlier.since(None).span_ns(), 35);
}

#[test]
fn a_task_has_the_name_of_its_last_slice_and_the_parent_of_its_first() {
    let row = |first_ns, last_ns, parent, comm: &str| ChargedTask {
        key: TaskKey { start_ns: 1, pid: 7, cpu: 0 },
        charge: Charge { on_cpu_ns: 10, ..Charge::default() },
        first_ns,
        last_ns,
        tgid: 7,
        parent,
        flags: 0,
        comm: comm.into(),
        cgroup: 0,
    };
    let (before, after) = (row(5, 20, 50, "sh"), row(10, 30, 1, "openssl"));
    for (mut one, other) in [(before.clone(), after.clone()), (after, before)] {
        one.join(other);
        assert_eq!((one.parent, one.comm.as_str()), (50, "openssl"));
        assert_eq!((one.first_ns, one.last_ns, one.charge.on_cpu_ns), (5, 30, 20));
    }
}

#[test]
fn sums_and_differences_undo_each_other() {
    let a = Charge::from_parts(std::array::from_fn(|at| at as u64 * 3));
    let b = Charge::from_parts(std::array::from_fn(|at| at as u64 + 1));
    assert_eq!(a.plus(&b).since(&b), a);
    assert_eq!(a.interrupted_ns(), 3 + 6 + 9 + 12 + 15 + 18);
}
