//! Probes that count by turns: no time of a pause in what they count.

mod watched_flood;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::{JoinHandle, scope, sleep, spawn};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rxpath_bpf::account::row::{Charge, CpuWindow};
use rxpath_bpf::account::{Account, Reading};
use rxpath_bpf::polls::{PollRows, PollsReading};
use rxpath_bpf::probe::Probe;
use rxpath_core::SchedClass;
use rxpath_host::lab::netns::Namespace;
use rxpath_host::read::thread;
use rxpath_host::write::sched;
use rxpath_lab::clock::monotonic_ns;

use super::arrived::until_arrived;
use super::probes::flood;
use crate::bed::{Bed, RX_IP};
use crate::live_causes::attached;
use crate::raw_bpf;
use crate::skip::skip;

/// A thread that never rests, until it is told.
struct Spinner {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    tid: u32,
}

impl Spinner {
    fn on(cpu: u32) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let (told, tid) = channel();
        let stop = Arc::clone(&over);
        let spin = move || {
            sched::pin(cpu).unwrap();
            told.send(thread::current_tid() as u32).unwrap();
            while !stop.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        };
        let thread = Some(spawn(spin));
        Self { over, thread, tid: tid.recv().unwrap() }
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

const PAUSE: Duration = Duration::from_millis(300);
const TURN: Duration = Duration::from_millis(50);

/// The rows of each CPU make its window, and no more than what was counted.
fn assert_whole(window: &Reading) {
    for cpu in &window.cpus {
        let here = window.tasks.iter().filter(|task| task.key.cpu == cpu.cpu);
        let ns: u64 = here.map(|task| task.charge.on_cpu_ns).sum();
        assert_eq!(ns + cpu.lost_ns, cpu.span_ns(), "{cpu:?}");
    }
    for task in &window.tasks {
        let charge = &task.charge;
        assert!(charge.interrupted_ns() <= charge.on_cpu_ns, "{task:?}");
        assert!(
            charge.run_delay_ns <= window.cpus.iter().map(CpuWindow::span_ns).sum(),
            "{task:?}"
        );
    }
}

#[test]
fn no_span_of_a_pause_is_counted() {
    let Some(_bed) = Bed::with_bpf() else { return };
    // Two that share a CPU wait for each other, through the pauses too.
    let spinners = [Spinner::on(0), Spinner::on(0)];
    let mut account = Account::start().unwrap();
    let before = account.read().unwrap();
    let mut turns = 0u32;
    // In a few turns each of the two had the CPU, unless others had it in all of them.
    let window = loop {
        account.end_turn().unwrap();
        account.detach();
        let ended = account.read().unwrap();
        // why: the pause itself; what happens in it must not be seen.
        sleep(PAUSE);
        let paused = account.read().unwrap().since(&ended);
        assert!(paused.tasks.is_empty() && paused.cpus.iter().all(|cpu| cpu.span_ns() == 0));
        account.attach().unwrap();
        account.begin_turn();
        // why: the turn itself.
        sleep(TURN);
        turns += 1;
        let window = account.read().unwrap().since(&before);
        let ran = |tid| window.tasks.iter().any(|task| task.key.pid == tid);
        if turns >= 3 && spinners.iter().all(|spinner| ran(spinner.tid)) {
            break window;
        }
        assert!(turns < 50, "a thread never ran: {window:?}");
    };
    assert_whole(&window);
    for cpu in &window.cpus {
        let skipped = Duration::from_nanos(cpu.skipped_ns);
        assert!(skipped >= turns * PAUSE, "{cpu:?}");
        assert!(cpu.span_ns() > 0 && cpu.whole_ns() == cpu.span_ns() + cpu.skipped_ns, "{cpu:?}");
    }
    let of = |tid| window.tasks.iter().find(|task| task.key.pid == tid).map(|task| &task.charge);
    let [one, other] = spinners.each_ref().map(|spinner| of(spinner.tid).unwrap());
    let span = window.cpus.iter().find(|cpu| cpu.cpu == 0).unwrap().span_ns();
    assert!(one.on_cpu_ns + other.on_cpu_ns <= span, "{one:?} {other:?} {span}");
    assert!(one.run_delay_ns.max(other.run_delay_ns) <= span, "{one:?} {other:?} {span}");
}

/// `BPF_TCX_INGRESS` of `enum bpf_attach_type`, without flags.
const TCX_INGRESS: [u32; 2] = [46, 0];
/// What each packet costs in the tests of polls: a loop of this many turns, some 50 us.
const TURNS: u64 = 50_000;

/// A poll that a reading cuts is in the later window only with what it took in that one. Polls of slow packets are longer
/// than what passes from a window's end to the reading of its polls.
#[test]
fn a_poll_that_a_reading_cuts_is_charged_from_there() {
    const WINDOWS: usize = 200;
    let Some((_bed, tx, rx, [from, to])) = Bed::steered() else { return };
    // mov r1, TURNS; add r1, -1; jne r1, 0, -2; mov r0, TCX_NEXT; exit
    let code = [
        0xb7 | 1 << 8 | TURNS << 32,
        0xffff_ffff_0000_0107,
        0xfffe_0155,
        0xffff_ffff_0000_00b7,
        0x95,
    ];
    let program = move || raw_bpf::load(raw_bpf::SCHED_CLS, &code, "rxp_slow");
    let Some(_slow) = attached(&rx, TCX_INGRESS, program) else { return };
    let account = Account::start().unwrap();
    let is_over = AtomicBool::new(false);
    let windows: Vec<(Reading, u64)> = scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                flood(&tx, &rx, from, 200);
                // why: the other CPU works off what it got; the reading must not wait for this one.
                sleep(Duration::from_millis(10));
            }
        });
        let mut last = account.read().unwrap();
        let windows = (0..WINDOWS).map(|_| {
            // why: about half a poll.
            sleep(Duration::from_millis(2));
            let read = account.read().unwrap();
            let read_ns = monotonic_ns();
            let window = read.since(&last);
            last = read;
            (window, read_ns)
        });
        let windows = windows.collect();
        is_over.store(true, Ordering::Relaxed);
        windows
    });
    let mut polled = 0;
    for (window, read_ns) in &windows {
        let here = window.cpus.iter().find(|cpu| cpu.cpu == to).unwrap();
        let polls = window.culprits.iter().filter(|by| by.key.victim.cpu == to);
        let polls_ns: u64 = polls.map(|by| by.ns).sum();
        let tasks = window.tasks.iter().filter(|task| task.key.cpu == to);
        let softirq_ns: u64 = tasks.map(|task| softirqs(&task.charge)).sum();
        // Polls go on while they are read.
        let late_ns = read_ns - here.end_ns;
        assert!(polls_ns <= softirq_ns + late_ns, "polls {polls_ns} ns, softirqs {softirq_ns} ns");
        polled += usize::from(polls_ns > late_ns);
    }
    assert!(polled > 5, "{polled} windows have a poll of their own");
}

fn softirqs(charge: &Charge) -> u64 {
    charge.net_rx_ns + charge.net_tx_ns + charge.other_softirq_ns + charge.mixed_ns
}

#[test]
fn turns_between_two_readings_are_all_in_the_second() {
    let Some(_bed) = Bed::with_bpf() else { return };
    let mut account = Account::start().unwrap();
    let mut before = account.read().unwrap();
    // After an odd and an even number of turns, while it is counted and in a pause.
    for (turns, in_pause) in [(1, false), (2, false), (3, true), (2, true), (1, true)] {
        for _ in 0..turns {
            account.end_turn().unwrap();
            account.detach();
            account.attach().unwrap();
            account.begin_turn();
            // why: the turn itself.
            sleep(TURN);
        }
        if in_pause {
            account.end_turn().unwrap();
        }
        let now = account.read().unwrap();
        assert_whole(&now.since(&before));
        before = now;
        if in_pause {
            account.begin_turn();
        }
    }
}

#[test]
fn polls_of_a_pause_are_not_counted_and_softirqs_not_longer_than_their_turns() {
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    let _full = rx.run(|_| UdpSocket::bind((RX_IP, 4900)).unwrap()).unwrap();
    let (mut account, polls) = (Account::live().unwrap(), PollRows::all().unwrap());
    let before = polls.read(account.loaded()).unwrap();
    let flood = Flood::start(&tx, 4900);
    until_arrived(&rx, 1_000);
    // why: the pause itself.
    sleep(PAUSE);
    let paused = polls.read(account.loaded()).unwrap();
    assert_eq!(paused, before, "windows last, and no turn of polls has begun");
    account.end_turn().unwrap();
    account.detach();
    let received =
        |reading: &PollsReading| -> u64 { reading.cpus.iter().map(|cpu| cpu.packets).sum() };
    let mut turns = 0;
    // The flood may have no CPU in some.
    while turns < 5 || received(&polls.read(account.loaded()).unwrap()) == received(&before) {
        assert!(turns < 100, "no packet in {turns} turns");
        turns += 1;
        account.attach().unwrap();
        let turn = Instant::now();
        let then = polls.read(account.loaded()).unwrap();
        account.begin_turn();
        polls.begin_turn(account.loaded()).unwrap();
        // why: the turn itself.
        sleep(TURN);
        polls.end_turn(account.loaded()).unwrap();
        let longest = turn.elapsed().as_nanos() as u64;
        account.end_turn().unwrap();
        account.detach();
        let now = polls.read(account.loaded()).unwrap();
        for (cpu, then) in now.cpus.iter().zip(&then.cpus) {
            let ns: Vec<u64> =
                [cpu, then].map(|cpu| cpu.softirqs.iter().map(|softirq| softirq.ns).sum()).into();
            assert!(ns[0] - ns[1] <= longest, "{} ns of {longest}", ns[0] - ns[1]);
        }
        // why: the pause itself, with a softirq under way when the next turn begins or not.
        sleep(TURN);
    }
    drop(flood);
}

/// `rxpath load udp --flood` from CPU 1, whose softirqs run there.
struct Flood(Child);

impl Flood {
    fn start(tx: &Namespace, port: u16) -> Self {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", tx.name(), env!("CARGO_BIN_EXE_rxpath"), "load", "udp"]);
        command.arg(format!("{RX_IP}:{port}")).args(["--flood", "--cpu", "1", "-d", "60s"]);
        Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        let _ = kill(Pid::from_raw(self.0.id() as i32), Signal::SIGKILL);
        self.0.wait().unwrap();
    }
}

/// A task that waits across a reading: what it waited before is not in the window after it.
#[test]
fn a_wait_is_in_a_window_for_no_longer_than_the_window() {
    let Some(_bed) = Bed::with_bpf() else { return };
    let cpus = thread::allowed_cpus().unwrap().0;
    let [_, .., cpu] = cpus[..] else {
        return skip("second_cpu", "one CPU: nobody reads while another runs before all others");
    };
    let account = Account::start().unwrap();
    let read = (0..20).find_map(|_| read_in_a_wait(&account, cpu));
    let (window, tid) = read.expect("one of 20 readings falls into the wait");
    let spans = window.cpus.iter().filter(|seen| seen.cpu == cpu).map(CpuWindow::span_ns);
    let span_ns = spans.sum::<u64>();
    let rows = window.tasks.iter().filter(|task| task.key.pid == tid && task.key.cpu == cpu);
    let waited_ns = rows.map(|task| task.charge.run_delay_ns).sum::<u64>();
    assert!((1..=span_ns).contains(&waited_ns), "{waited_ns} ns of {span_ns}: {window:?}");
}

/// The window behind a reading, and the task that waited for the CPU at that reading. `None` if it did not wait yet or no longer,
/// as where this thread had no CPU itself.
fn read_in_a_wait(account: &Account, cpu: u32) -> Option<(Reading, u32)> {
    let (told, tid) = channel();
    let (go, wait) = channel();
    let waiter = spawn(move || {
        sched::pin(cpu).unwrap();
        told.send(thread::current_tid() as u32).unwrap();
        wait.recv().unwrap();
        spin_for(Duration::from_millis(5));
    });
    let tid = tid.recv().unwrap();
    // It runs before all others, for less than the kernel would let it keep them from running (950 ms of each second).
    let first = spawn(move || {
        sched::pin(cpu).unwrap();
        sched::set_class(0, SchedClass::Fifo(1)).unwrap();
        go.send(()).unwrap();
        let begun = Instant::now();
        spin_for(Duration::from_millis(700));
        begun..Instant::now()
    });
    // why: most of the wait is to be before the reading, and the rest after it.
    sleep(Duration::from_millis(500));
    let called = Instant::now();
    let before = account.read().unwrap();
    let read = Instant::now();
    let span = first.join().unwrap();
    waiter.join().unwrap();
    let window = account.read().unwrap().since(&before);
    (span.contains(&called) && span.contains(&read)).then_some((window, tid))
}

fn spin_for(time: Duration) {
    let began = Instant::now();
    while began.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// TCP paces a socket by timers of a softirq that is not the network's: their time is told apart, and by it no sum grows.
#[test]
fn the_time_of_tcps_pacing_timers_is_the_networks() {
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    let listener = rx.run(|_| TcpListener::bind((RX_IP, 4811)).unwrap()).unwrap();
    let reader = std::thread::spawn(move || {
        let mut all = vec![0; 1 << 16];
        let mut stream = listener.accept().unwrap().0;
        while stream.read(&mut all).unwrap() > 0 {}
    });
    let mut account = Account::start().unwrap();
    let before = account.read().unwrap();
    tx.run(|_| {
        let mut stream = TcpStream::connect((RX_IP, 4811)).unwrap();
        // 20 MB/s: packets of a few kB, each after a timer.
        let pace = 20_000_000u32;
        // SAFETY: a number of four bytes, as the option takes it.
        let set = unsafe {
            nix::libc::setsockopt(
                std::os::fd::AsRawFd::as_raw_fd(&stream),
                nix::libc::SOL_SOCKET,
                nix::libc::SO_MAX_PACING_RATE,
                std::ptr::from_ref(&pace).cast(),
                4,
            )
        };
        assert_eq!(set, 0);
        stream.write_all(&vec![7; 8 << 20]).unwrap();
    })
    .unwrap();
    reader.join().unwrap();
    let window = account.read().unwrap().since(&before);
    assert_eq!(window.warnings, vec![]);
    let charges = || window.tasks.iter().map(|task| task.charge);
    // Some microseconds each, of hundreds: however busy the machine is.
    let network: u64 = charges().map(|charge| charge.other_network_ns).sum();
    assert!(network > 0, "{:?}", charges().collect::<Vec<_>>());
    assert!(charges().all(|charge| charge.other_network_ns <= charge.other_softirq_ns));
    assert_whole(&window);
    account.end_turn().unwrap();
}
