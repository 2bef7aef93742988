//! The meaning of the selected row and what to do about it, in plain words and with its own numbers.

mod cpus;
mod drops;
mod path;
mod queues;
mod sockets;
mod tasks;

use rxpath_record::watch::WatchFrame;

pub use drops::remedies;

use super::sheet::Tab;

/// The explanation by paragraph: first the finding and what to change, last how to read the tab. `item` is the selected
/// row's place in the frame.
pub fn explain(tab: Tab, item: Option<usize>, frame: &WatchFrame) -> Vec<String> {
    let mut words = match tab {
        Tab::Path => path::words(item.and_then(|at| frame.stages.get(at)), frame),
        Tab::Cpus => of(item, &frame.cpus, |cpu| cpus::words(cpu, frame)),
        Tab::Queues => of(item, &frame.queues, |queue| queues::words(queue, frame)),
        Tab::Sockets => of(item, &frame.sockets, |socket| sockets::words(socket, frame)),
        Tab::Tasks => of(item, &frame.tasks, |task| tasks::words(task, frame)),
        Tab::Drops => of(item, &frame.drops, drops::words),
    };
    words.push(about(tab).to_owned());
    words
}

fn of<T>(item: Option<usize>, rows: &[T], words: impl FnOnce(&T) -> Vec<String>) -> Vec<String> {
    item.and_then(|at| rows.get(at)).map(words).unwrap_or_default()
}

/// How to read the tab.
fn about(tab: Tab) -> &'static str {
    match tab {
        Tab::Path => {
            "The path of received packets, from left to right. Each stage has its own counter, so the numbers need not be \
             equal: GRO merges, loopback skips the NIC, TCP is read as a stream."
        }
        Tab::Cpus => {
            "Busy is exact. Its split by ticks can be wrong by half. `net rx` is measured: network softirqs and NAPI threads."
        }
        Tab::Queues => {
            "Packets and drops are the driver's own counters; interrupts are those of the queue's line; packets per poll \
             are measured."
        }
        Tab::Sockets => {
            "How full: the fullest of ten samples in a window for UDP, of one for TCP, in memory (truesize), which is more \
             than the bytes of the payload."
        }
        Tab::Tasks => {
            "Taken: interrupts and softirqs of others that interrupted the task, and the hypervisor's share. Every tool that \
             reads ticks charges this time to the task. `rxpath steal` measures it with a calibrated victim."
        }
        Tab::Drops => {
            "Where the kernel freed packets that nobody received, by its own reason, and the counters of losses that no \
             function frees. Without BPF: the counters that own each place."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::view::tests::busy_frame;
    use rxpath_core::Fact;
    use rxpath_record::watch::{CpuRow, QueueRow, SocketRow, TaskRow};

    fn told(tab: Tab, frame: &WatchFrame) -> String {
        explain(tab, Some(0), frame).join("\n")
    }

    #[test]
    fn the_limit_comes_first_and_its_remedy_second() {
        let words = explain(Tab::Path, None, &busy_frame(2));
        assert!(words[0].contains("the receiving application is the limit"), "{words:?}");
        assert!(words[1].starts_with("to change:"), "{words:?}");
        assert!(words.iter().any(|line| line.contains("[schedstat]")), "{words:?}");
    }

    #[test]
    fn a_rule_that_is_named_exists() {
        let sources = [
            include_str!("explain/cpus.rs"),
            include_str!("explain/queues.rs"),
            include_str!("explain/sockets.rs"),
            include_str!("explain/tasks.rs"),
            include_str!("explain/remedies.txt"),
        ];
        let named = regex_lite::Regex::new("rxpath explain ([a-z-]+)").unwrap();
        let sources = sources.concat();
        let ids: Vec<&str> =
            named.captures_iter(&sources).map(|found| found.extract::<1>().1[0]).collect();
        assert!(ids.len() >= 3, "{ids:?}");
        for id in ids {
            assert!(rxpath_tune::rules::find(id).is_some(), "no rule {id}");
        }
    }

    #[test]
    fn every_row_is_told_by_its_own_numbers() {
        let mut frame = busy_frame(4);
        frame.sockets[1].local = "10.0.0.2:53".into();
        for (tab, rows) in [
            (Tab::Path, 7),
            (Tab::Cpus, 4),
            (Tab::Queues, 1),
            (Tab::Sockets, 2),
            (Tab::Tasks, 2),
            (Tab::Drops, 1),
        ] {
            let all: Vec<String> =
                (0..rows).map(|at| explain(tab, Some(at), &frame).join("\n")).collect();
            for (at, words) in all.iter().enumerate() {
                assert!(!all[..at].contains(words), "{tab:?} row {at} is told as another one");
            }
        }
    }

    #[test]
    fn a_socket_says_how_full_whose_and_what_to_do() {
        let words = told(Tab::Sockets, &busy_frame(2));
        for word in ["97", "208 KiB", "91k", "iperf3 (812)", "98 % of the time", "SO_REUSEPORT"] {
            assert!(words.contains(word), "{word} in {words}");
        }
        let listener = SocketRow {
            protocol: "tcp-listen".into(),
            local: "10.0.0.2:80".into(),
            queued_max: 2,
            limit: 1,
            drops_pps: 197.0,
            processes_gap: "not looked up yet".into(),
            ..SocketRow::default()
        };
        let words =
            told(Tab::Sockets, &WatchFrame { sockets: vec![listener], ..WatchFrame::default() });
        for word in ["2 of 1 connections", "197", "somaxconn", "not looked up yet"] {
            assert!(words.contains(word), "{word} in {words}");
        }
    }

    #[test]
    fn a_cpu_says_what_its_time_went_to_and_who_had_most() {
        let cpu = CpuRow {
            cpu: 3,
            idle_ratio: 0.02,
            user_ratio: 0.05,
            system_ratio: 0.13,
            softirq_ratio: 0.8,
            net_softirq_ratio: Fact::ok(0.79),
            squeezed_per_s: 12.0,
            busiest_task: "ksoftirqd/3 (31)".into(),
            ..CpuRow::default()
        };
        let queue = |name: &str, cpus: &str| QueueRow {
            device: name.into(),
            queue: 4,
            cpus: Fact::ok(cpus.into()),
            packets_pps: Fact::ok(401_000.0),
            ..QueueRow::default()
        };
        let queues = vec![queue("eth0", "2-3"), queue("eth1", "4-5")];
        let frame = WatchFrame { cpus: vec![cpu], queues, ..WatchFrame::default() };
        let words = told(Tab::Cpus, &frame);
        for word in
            ["98 % busy", "79 %", "ksoftirqd/3 (31)", "eth0 queue 4 (401k/s)", "RPS", "12 times"]
        {
            assert!(words.contains(word), "{word} in {words}");
        }
        assert!(!words.contains("eth1"), "{words}");
    }

    #[test]
    fn a_task_says_what_was_taken_and_by_whom() {
        let mut task = busy_frame(2).tasks[0].clone();
        (task.taken_net_ratio, task.hypervisor_ratio) = (Fact::ok(0.2), Fact::ok(0.01));
        task.irq_entry_ratio = Fact::ok(0.03);
        let words = told(Tab::Tasks, &WatchFrame { tasks: vec![task], ..WatchFrame::default() });
        for word in
            ["iperf3 (812)", "21.0 %", "eth0 (20.1 %)", "hypervisor 1.0 %", "estimated 3.0 %"]
        {
            assert!(words.contains(word), "{word} in {words}");
        }
        let gap = TaskRow {
            comm: "a".into(),
            taken_ratio: Fact::absent("BPF was not asked for"),
            ..TaskRow::default()
        };
        let words = told(Tab::Tasks, &WatchFrame { tasks: vec![gap], ..WatchFrame::default() });
        assert!(words.contains("not known: absent: BPF was not asked for"), "{words}");
    }

    #[test]
    fn a_queue_says_how_it_is_polled() {
        let queue = |number: u32, pps: f64| QueueRow {
            device: "eth0".into(),
            queue: number,
            packets_pps: Fact::ok(pps),
            packets_per_poll: Fact::ok(61.0),
            exhausted_ratio: Fact::ok(0.9),
            drops_pps: Fact::ok(7.0),
            ..QueueRow::default()
        };
        let frame = WatchFrame {
            queues: vec![queue(0, 99_000.0), queue(1, 1000.0)],
            ..WatchFrame::default()
        };
        let words = told(Tab::Queues, &frame);
        for word in ["99 %", "61 packets a poll", "90 %", "budget", "rx ring", "--flow"] {
            assert!(words.contains(word), "{word} in {words}");
        }
    }
}
