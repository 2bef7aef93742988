//! Options that several workloads share.

use rxpath_core::plain_time::nanoseconds;
use rxpath_core::{Bytes, CpuList, Nanos, SchedClass};
use rxpath_load::pool::Threads;
use rxpath_load::udp::serve::options::{BusyPoll, ReaderStall};
use rxpath_load::udp::xdp::XdpSettings;

use crate::cmd::values::{microseconds, value_name};
use crate::exit::Failure;

/// The worker threads.
#[derive(Clone, Debug, clap::Args)]
pub struct ThreadArgs {
    /// Threads (default 1)
    #[arg(short, long, value_name = "N")]
    threads: Option<usize>,
    /// CPU of each thread, one thread per entry: 1 or 0,2-3
    #[arg(long, value_name = "LIST")]
    cpu: Option<CpuList>,
    /// Nice value of the threads
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = clap::value_parser!(i32).range(-20..=19))]
    nice: Option<i32>,
    /// Scheduler class of the threads: other, batch, idle, fifo:PRIORITY or rr:PRIORITY. A busy thread of the real-time
    /// classes fifo and rr leaves the other tasks of its CPU 5 % of the time
    #[arg(long, value_name = "CLASS")]
    sched: Option<SchedClass>,
}

impl ThreadArgs {
    /// The threads; `--threads` and `--cpu` must agree.
    pub fn threads(&self) -> Result<Threads, Failure> {
        let (cpus, nice, sched) = (self.cpu.clone().unwrap_or_default().0, self.nice, self.sched);
        let count = match (self.threads, cpus.len()) {
            (Some(threads), listed) if listed > 0 && listed != threads => {
                let what =
                    format!("--threads {threads} differs from the {listed} entries of --cpu");
                return Err(Failure::usage(what).hint("--cpu alone gives one thread per entry"));
            }
            (Some(threads), _) => threads,
            (None, listed) => listed.max(1),
        };
        Ok(Threads { count, cpus, nice, sched })
    }
}

/// `2, on CPUs 0,1`.
pub fn placed(threads: &Threads) -> String {
    if threads.cpus.is_empty() {
        return format!("{}, not pinned", threads.count);
    }
    format!("{}, on CPU {}", threads.count, CpuList(threads.cpus.clone()))
}

/// Busy polling of sockets.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct BusyPollArgs {
    /// Busy-poll the device for this many microseconds (or with a unit: 50us) before sleeping (SO_BUSY_POLL; with HTTP
    /// also the epoll sets)
    #[arg(long, value_name = "US", value_parser = microseconds)]
    busy_poll: Option<u32>,
    /// Keep interrupts off during busy polling (SO_PREFER_BUSY_POLL)
    #[arg(long, requires = "busy_poll")]
    prefer_busy_poll: bool,
    /// Packets per busy poll (SO_BUSY_POLL_BUDGET)
    #[arg(long, value_name = "N", requires = "busy_poll", value_parser = clap::value_parser!(u32).range(1..=65_535))]
    busy_poll_budget: Option<u32>,
}

impl From<BusyPollArgs> for Option<BusyPoll> {
    fn from(args: BusyPollArgs) -> Self {
        args.busy_poll.map(|poll_us| BusyPoll {
            poll_us,
            prefer: args.prefer_busy_poll,
            budget_packets: args.busy_poll_budget,
        })
    }
}

/// A stalling reader, for people.
pub fn stalls(stall: ReaderStall) -> String {
    format!("sleeps {} every {}", Nanos(stall.sleep_ns), Nanos(stall.every_ns))
}

/// What is in force, for people.
pub fn xdp_text(settings: &XdpSettings) -> String {
    let queues: Vec<String> = settings.queues.iter().map(ToString::to_string).collect();
    format!(
        "{}, device {}, queue {}, rings of {} entries, {} frames of {} bytes",
        value_name(&settings.mode),
        settings.device,
        queues.join(","),
        settings.ring_entries,
        settings.frames_count,
        settings.frame_bytes
    )
}

/// Buffers of TCP sockets.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct BufferArgs {
    /// Receive buffer as the kernel accounts it (default: the kernel tunes it); forced with CAP_NET_ADMIN
    #[arg(long, value_name = "BYTES")]
    pub rcvbuf: Option<Bytes>,
    /// Send buffer as the kernel accounts it (default: the kernel tunes it); forced with CAP_NET_ADMIN
    #[arg(long, value_name = "BYTES")]
    pub sndbuf: Option<Bytes>,
}

/// A receiver that is slow on purpose.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct SlowArgs {
    /// Simulated CPU work per packet, read or transaction in nanoseconds (or with a unit: 2us)
    #[arg(long, value_name = "NS", value_parser = nanoseconds)]
    work: Option<Nanos>,
    /// Stall: sleep this long …
    #[arg(long, value_name = "TIME", requires = "every")]
    sleep: Option<Nanos>,
    /// … once in this time
    #[arg(long, value_name = "TIME", requires = "sleep")]
    every: Option<Nanos>,
}

impl SlowArgs {
    /// Work per datagram, read or transaction.
    pub fn work_ns(self) -> u64 {
        self.work.unwrap_or_default().0
    }

    /// A stalling reader.
    pub fn stall(self) -> Option<ReaderStall> {
        self.sleep
            .zip(self.every)
            .map(|(sleep, every)| ReaderStall { sleep_ns: sleep.0, every_ns: every.0 })
    }
}
