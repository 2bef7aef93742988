//! The numbers at which a rule changes its mind, each with its reason.

/// A thread or CPU that is busy for this share of the window has no time left.
///
/// Not 1.0: timer interrupts, the sampling of the runner itself and a short sleep at either edge of the
/// window cost a saturated thread one to four percent.
pub const FULL_RATIO: f64 = 0.95;

/// Less than this share of the offered datagrams lost is not a limit.
///
/// The highest loss that still counts as lossless throughput in the goals of this project's benchmarks.
pub const LOSS_RATIO: f64 = 0.001;

/// On a watched host, a loss of fewer packets per second than this limits nothing, whatever its share.
///
/// Every network has strays: a scanner, a late answer to a closed port, a retry to a service that moved.
pub const WATCHED_LOSS_PPS: f64 = 10.0;

/// Fewer than this in the whole window is no limit either: a share of a few packets says nothing.
pub const WATCHED_LOSS_PACKETS: u64 = 100;

/// From this share of the packets that softirqs handled, their time belongs to one path; below it, their time is
/// attributed to no rate.
pub const MOST_OF_SOFTIRQ_RATIO: f64 = 0.5;

/// From this many lost connection requests, a full listener queue is certain: fewer can be one client's retries.
pub const REQUESTS_LOST_COUNT: u64 = 10;

/// A connection whose unread bytes fill this share of its window on average has almost no window left.
pub const TCP_CLOSED_RATIO: f64 = 0.95;

/// A smaller share of full connections of a service are single slow peers: every proxy has some.
pub const TCP_FULL_SHARE: f64 = 0.01;

/// Samples of a receive queue that show more than an instant; the live view has one at each end of its window.
pub const TCP_SAMPLES: u64 = 2;

/// Samples after which a permanently full queue is certain.
pub const TCP_SAMPLES_SURE: u64 = 3;

/// Closed windows from which programs are said to read too late: fewer are one connection's pause.
pub const TCP_CLOSED_COUNT: u64 = 10;

/// From this share of lost segments, loss limits TCP's rate.
///
/// At 1 % a connection has about 12 segments in flight (Mathis et al. 1997: rate = 1.22 MSS / (RTT sqrt(p))), whatever the
/// link. On the Internet a few in a thousand are usual.
pub const TCP_AGAIN_RATIO: f64 = 0.01;

/// An open-loop sender that offers this share of the target rate has reached it.
///
/// Pacing holds the rate within 0.5 %; the edges of a one-second window add as much again.
pub const RATE_REACHED_RATIO: f64 = 0.99;

/// A reader that is runnable without its CPU for this share of the window is kept off its CPU by others.
///
/// Wake-up latency of a reader that sleeps often adds up to a few percent without any competitor.
pub const WAITING_RATIO: f64 = 0.10;

/// From this share of waiting, the loss of the CPU is certain.
pub const WAITING_MUCH_RATIO: f64 = 0.30;

/// Softirq share of the reader's CPU from which softirqs, not the reader, fill it.
///
/// Ticks err by a factor of up to two; half of the ticks means at least a quarter of the time, and loss
/// above [`LIVELOCK_DELIVERED_RATIO`] has to agree.
pub const LIVELOCK_SOFTIRQ_RATIO: f64 = 0.50;

/// In livelock less than this share of the offered datagrams is delivered.
pub const LIVELOCK_DELIVERED_RATIO: f64 = 0.50;

/// A share of ticks at which the softirqs fill the CPU even if ticks are wrong by a factor of two.
pub const SOFTIRQ_MOST_RATIO: f64 = 0.80;

/// From this share of its busy time, a softirq CPU is filled by its softirqs and not by other work.
pub const SOFTIRQ_OF_BUSY_RATIO: f64 = 0.50;

/// A sender that blocked for this share of its time on its own send buffer did not set the pace.
///
/// With the forced large buffer, a sender without a rate limit does not block at all; less than this is one hiccup.
pub const BLOCKED_RATIO: f64 = 0.05;

/// CPU time of other programs on a CPU of the workload that is mentioned.
pub const FOREIGN_RATIO: f64 = 0.05;

/// Time taken by the hypervisor that is mentioned.
pub const STEAL_RATIO: f64 = 0.05;

/// A socket that gets this many times its fair share of the datagrams is overloaded by uneven distribution.
///
/// Hashing 16 or more flows over two to eight sockets stays below it in most draws.
pub const UNEVEN_FACTOR: f64 = 1.5;

/// A reader that needs less than this share of the window could take over work from a full reader.
pub const SPARE_RATIO: f64 = 0.80;

/// From this share of all packets on one CPU on, the load is not spread.
///
/// The rest are strays: packets of other programs, and the first packets of a flow before it is steered.
pub const ONE_CPU_RATIO: f64 = 0.95;

/// From this share of a CPU's sampled packets with one hash on, they are of one flow.
///
/// The rest are strays, as for [`ONE_CPU_RATIO`]: a CPU that they leave is as full as before. Two flows pass for one with a
/// probability of 1 in 64, the number of hash buckets.
pub const ONE_FLOW_RATIO: f64 = 0.95;

/// A CPU that is idle for this share of the window could take that part of a full CPU's work; less is not worth the
/// interrupts that moving packets costs.
pub const SPARE_CPU_RATIO: f64 = 0.25;

/// A reader that waits for a lock of its socket for this share of the window is held up by the lock.
///
/// A lock that two threads take now and then costs them under a hundredth; a tenth is more than noise of any kind here.
pub const LOCK_RATIO: f64 = 0.10;

/// A task that is on its CPU for this share of the window needs the whole CPU.
pub const WANTS_CPU_RATIO: f64 = 0.50;

/// From this share of a task's CPU time on, the time that softirqs take from it counts as a loss.
///
/// What is measured lies between tracepoints; entering and leaving an interrupt comes on top (on virtual machines as
/// much again), so that a fifth measured is more than a fifth lost.
pub const VICTIM_RATIO: f64 = 0.20;

/// Ticks that differ from the measurement by this share of a CPU are wrong.
///
/// Ticks of a second are a sample of 100 to 1000: its error alone is at most 5 %. What an interrupt costs outside
/// tracepoints adds less than this at the rates at which the measured share is small.
pub const TICK_ERROR_RATIO: f64 = 0.20;

/// More than an interrupt costs outside all tracepoints: 5 to 7 us were measured on a virtual machine, less without one.
pub const HIDDEN_PER_INTERRUPT_S: f64 = 10e-6;

/// Windows shorter than this decide nothing: 25 ticks at HZ=250, each worth 4 %.
pub const WINDOW_TOO_SHORT_S: f64 = 0.1;

/// Windows shorter than this are never strong evidence.
pub const WINDOW_SHORT_S: f64 = 0.5;

/// Threads that handled less than this share of the datagrams are not all of the threads.
pub const COVERED_RATIO: f64 = 0.90;

/// Unaccounted datagrams above this share of the offered ones make the ledger unsound.
pub const UNACCOUNTED_RATIO: f64 = 0.001;

/// Pairs of trials that a sure answer needs.
pub const PAIRS: usize = 3;

/// Pairs whose trials are all this far apart differ by more than noise.
///
/// Equal trials on a quiet two-CPU guest differ by 3 to 6 %; moving the softirq gains 30 %.
pub const PAIRED_RISE_RATIO: f64 = 1.10;

/// Trials of pairs that are all this near are the same.
pub const PAIRED_SAME_RATIO: f64 = 1.05;

/// A rise of the middle pair that is clear.
pub const PAIRED_CLEAR_RATIO: f64 = 1.20;

/// A queue that holds this share of its buffer on average is full all the time: a reader that stalls now and then empties it
/// in between.
pub const ALWAYS_FULL_RATIO: f64 = 0.90;

/// Samples of a queue from which their mean is meaningful.
pub const QUEUE_SAMPLES: u64 = 10;

/// A cause that explains less than this share of the loss is not the first one to fix.
pub const MOST_OF_LOSS_RATIO: f64 = 0.50;
