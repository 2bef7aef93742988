//! Opening a server: checks, listeners, options, threads.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use rxpath_core::{Fact, Warning};

use crate::LoadError;
use crate::engine::epoll::Epoll;
use crate::engine::listen;
use crate::engine::socket::Socket;
use crate::http::serve::by_epoll::EpollLoop;
use crate::http::serve::by_uring::UringLoop;
use crate::http::serve::options::{
    BusyPoll, BusyPollSettings, Engine, ServeOptions, ServeSettings, Sockets,
};
use crate::http::serve::reply::{Kind, ReplyTable};
use crate::http::serve::worker_state::{Plan, WorkerState};
use crate::http::serve::{Serve, finish};
use crate::pool::Pool;
use crate::tcp::socket::{SocketOptions, SocketSettings};

/// Descriptors that are not connections: standard streams, listeners, epoll sets, what is read meanwhile.
const RESERVED: u64 = 32;
/// Default limit of open connections: their kernel memory is the bound of a host.
const MOST_CONNECTIONS: u64 = 1_000_000;
/// Most events of one wait.
const MOST_EVENTS: usize = 65_536;
/// Shortest and longest `--max-request`.
const REQUEST_BYTES: std::ops::RangeInclusive<usize> = 64..=1024 * 1024;
/// Packets per poll above which the kernel wants `CAP_NET_ADMIN`. **Source** `NAPI_POLL_WEIGHT`.
const POLL_WEIGHT: u32 = 64;

impl Serve {
    /// Opens the listeners and starts the threads; from here on requests are answered.
    pub fn open(mut options: ServeOptions) -> Result<Self, LoadError> {
        check(&options)?;
        options.engine = Some(options.engine());
        let mut warnings = Vec::new();
        let limit = listen::raise_descriptor_limit()?;
        let socket = SocketOptions {
            buffers: options.buffers,
            // A reply that follows an unacknowledged one must not wait for its acknowledgement.
            nodelay: true,
            busy_poll: options.busy_poll,
            ..SocketOptions::default()
        };
        let group = (options.sockets, options.threads.count);
        let listeners = socket.listen(options.addr, group, options.backlog)?;
        let socket = socket.settle(&listeners[0], &mut warnings)?;
        let (epolls, busy_waits) = open_epolls(&options, &mut warnings)?;
        let reply_table = ReplyTable::new(options.body_bytes);
        let own = (&listeners[0], &socket);
        let settings = settle(&options, own, &reply_table, (limit, busy_waits), &mut warnings)?;
        let mut serve = Self {
            pool: Pool::new("rx-http", &options.threads),
            settings,
            warnings,
            listeners: listeners.into_iter().map(Arc::new).collect(),
            open: Vec::new(),
            polled_before: finish::busy_poll_rx_packets(),
            options: Arc::new(options),
        };
        start_workers(&mut serve, &Arc::new(reply_table), epolls)?;
        serve.pool.shared.count_cpu_time();
        Ok(serve)
    }
}

fn check(options: &ServeOptions) -> Result<(), LoadError> {
    let bad = |what: String, hint: &str| Err(LoadError::usage(what, hint));
    // Its epoll set or ring, and a listener of its own.
    options.threads.check("serve", 1 + u64::from(options.sockets == Sockets::Reuseport))?;
    if !(1..=MOST_EVENTS).contains(&options.events) {
        let what = format!("--events {}: 1 to {MOST_EVENTS} per wait", options.events);
        return bad(what, "1000 suits most servers");
    }
    if !REQUEST_BYTES.contains(&options.max_request_bytes) {
        let what = format!("--max-request {}: 64 bytes to 1 MiB", options.max_request_bytes);
        return bad(what, "16 KiB is more than browsers send");
    }
    if options.max_connections == Some(0) {
        return bad("--max-connections 0: no client could connect".into(), "give at least 1");
    }
    Ok(())
}

/// The epoll sets of the threads, and what became of their busy polling.
fn open_epolls(
    options: &ServeOptions,
    warnings: &mut Vec<Warning>,
) -> Result<(Vec<Epoll>, Fact<BusyPoll>), LoadError> {
    let mut epolls = Vec::new();
    let mut busy = Fact::absent("--busy-poll is not given");
    if options.engine() == Engine::Uring {
        // A ring that cannot poll is refused where its thread makes it.
        if let Some(poll) = options.busy_poll {
            busy = Fact::ok(BusyPoll { budget_packets: None, ..poll });
        }
        return Ok((epolls, busy));
    }
    for _ in 0..options.threads.count {
        let epoll = Epoll::new().map_err(|e| LoadError::io("epoll_create1", e))?;
        if let Some(poll) = options.busy_poll {
            busy = busy_epoll(&epoll, poll);
        }
        epolls.push(epoll);
    }
    if let (Some(_), Some(gap)) = (options.busy_poll, busy.gap()) {
        warnings.push(
            Warning::new("epoll-busy-poll", format!("epoll does not busy-poll: {gap}"))
                .because(
                    "epoll_wait busy-polls a device only with EPIOCSPARAMS or net.core.busy_poll",
                )
                .cure(
                    "use Linux 6.9 or later for EPIOCSPARAMS, or set the sysctl net.core.busy_poll",
                ),
        );
    }
    Ok((epolls, busy))
}

fn busy_epoll(epoll: &Epoll, poll: BusyPoll) -> Fact<BusyPoll> {
    let budget = u16::try_from(poll.budget_packets.unwrap_or(0)).unwrap_or(u16::MAX);
    let params = libc::epoll_params {
        busy_poll_usecs: poll.poll_us,
        busy_poll_budget: budget,
        prefer_busy_poll: poll.prefer.into(),
        __pad: 0,
    };
    match epoll.set_busy(params) {
        Ok(got) => Fact::ok(BusyPoll {
            poll_us: got.busy_poll_usecs,
            prefer: got.prefer_busy_poll != 0,
            budget_packets: (got.busy_poll_budget > 0).then_some(got.busy_poll_budget.into()),
        }),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            Fact::denied(format!("CAP_NET_ADMIN (a budget above {POLL_WEIGHT})"))
        }
        Err(error) => Fact::absent(format!("this kernel has no EPIOCSPARAMS ({error})")),
    }
}

fn settle(
    options: &ServeOptions,
    (listener, socket): (&Socket, &SocketSettings),
    reply_table: &ReplyTable,
    (limit, busy_waits): (u64, Fact<BusyPoll>),
    warnings: &mut Vec<Warning>,
) -> Result<ServeSettings, LoadError> {
    let room = limit.saturating_sub(RESERVED).max(1);
    let wanted = options.max_connections.unwrap_or(MOST_CONNECTIONS);
    if options.max_connections.is_some_and(|wanted| wanted > room) {
        let text = format!("--max-connections {wanted}: file descriptors suffice for about {room}");
        warnings.push(
            Warning::new("descriptor-limit", text)
                .because(format!("RLIMIT_NOFILE is {limit}, its hard limit"))
                .cure("raise the hard limit: ulimit -Hn, LimitNOFILE= of a systemd unit"),
        );
    }
    Ok(ServeSettings {
        addr: listen::local(listener)?,
        threads: options.threads.clone(),
        engine: options.engine(),
        events: options.events,
        trigger: (options.engine() == Engine::Epoll).then(|| options.trigger.unwrap_or_default()),
        sockets: options.sockets,
        timeout_ms: options.timeout_ms(),
        busy_poll: options.busy_poll.map(|socket| BusyPollSettings { socket, waits: busy_waits }),
        rcvbuf_asked_bytes: options.buffers.rcvbuf,
        rcvbuf_bytes: socket.rcvbuf_bytes,
        sndbuf_asked_bytes: options.buffers.sndbuf,
        sndbuf_bytes: socket.sndbuf_bytes,
        work_ns: options.work_ns,
        body_bytes: options.body_bytes,
        reply_bytes: reply_table.len(Kind::Ok),
        max_request_bytes: options.max_request_bytes,
        max_body_bytes: options.max_body_bytes,
        max_connections_count: wanted.min(limit),
        descriptors_limit_count: limit,
        idle_timeout_ns: options.idle_timeout_ns,
        backlog: options.backlog,
    })
}

fn start_workers(
    serve: &mut Serve,
    reply_table: &Arc<ReplyTable>,
    epolls: Vec<Epoll>,
) -> Result<(), LoadError> {
    let open = Arc::new(AtomicU64::new(0));
    let mut epolls = epolls.into_iter();
    for index in 0..serve.options.threads.count {
        // None with io_uring, whose ring the thread makes itself.
        let epoll = epolls.next();
        let plan = Plan {
            listener: Arc::clone(&serve.listeners[index % serve.listeners.len()]),
            reply_table: Arc::clone(reply_table),
            open: Arc::clone(&open),
            max_connections: serve.settings.max_connections_count,
            options: Arc::clone(&serve.options),
        };
        serve.pool.start(move |start| {
            let state = WorkerState::new(plan, start);
            let state = match epoll {
                Some(epoll) => EpollLoop::new(state, epoll).inspect(|_| start.ready())?.run(),
                None => UringLoop::new(state).inspect(|_| start.ready())?.run(),
            }?;
            Ok(state.report())
        })?;
    }
    Ok(())
}
