//! A program that computes: `nice=N`, `cpu=N`, `threads=N`, `run=MS` and `nap=MS` in turns.

use nix::libc;

use super::counts::Counts;
use super::words::Words;

/// `nice=N`, `session` (one of its own), `idle-class` (SCHED_IDLE), `fifo` (SCHED_FIFO): of the process, before it has threads.
pub fn priority(words: &Words) {
    if words.has("session") {
        nix::unistd::setsid().unwrap();
    }
    // SAFETY: numbers and no memory.
    let set = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, words.get("nice", 0)) };
    assert_eq!(set, 0, "setpriority");
    let classes = [("idle-class", libc::SCHED_IDLE, 0), ("fifo", libc::SCHED_FIFO, 10)];
    for (_, class, priority) in classes.into_iter().filter(|(name, _, _)| words.has(name)) {
        let parameter = libc::sched_param { sched_priority: priority };
        // SAFETY: the parameter outlives the call.
        let set = unsafe { libc::sched_setscheduler(0, class, std::ptr::from_ref(&parameter)) };
        assert_eq!(set, 0, "sched_setscheduler: {}", std::io::Error::last_os_error());
    }
}

pub fn play(words: &Words) {
    let counts = Counts::open();
    priority(words);
    words.pin(1);
    counts.ready();
    let (run, nap) = (words.millis("run"), words.millis("nap"));
    std::thread::scope(|scope| {
        for _ in 0..words.get("threads", 1) {
            scope.spawn(|| {
                loop {
                    super::read::work(run.max(std::time::Duration::from_millis(1)));
                    if !nap.is_zero() {
                        std::thread::sleep(nap);
                    }
                }
            });
        }
    });
}
