//! Options of the service itself, and of what the lab puts around its link.

use rxpath_lab::scenario::spec::Protocol;
use rxpath_record::verdict::Stage;
use rxpath_tune::auto::Risk;

use super::{Entry, Seen, entry, napi};

/// A receive buffer is made this many times larger, and at least this large.
const BUFFER_FACTOR: u64 = 4;
const LEAST_BUFFER: u64 = 1 << 20;
const MOST_BUFFER: u64 = 64 << 20;
/// Datagrams per read.
const BATCH: u64 = 64;
/// Longer than the gap between packets of a service that is worth the CPU time.
const BUSY_POLL: &str = "50us";
const DESCHEDULED: &[Stage] = &[Stage::ApplicationDescheduled, Stage::SocketQueue];

impl Seen<'_> {
    fn served(&self, pointer: &str) -> Option<u64> {
        self.trial.workloads.get("serve")?.pointer(pointer)?.as_u64()
    }

    /// Options of the service itself.
    pub(super) fn service(&self) -> Vec<Entry> {
        let mut all = Vec::new();
        if self.variant.protocol() == Protocol::Udp {
            all.extend(self.larger_buffer());
            if self.served("/settings/batch").is_some_and(|now| now < BATCH) {
                all.push(entry(
                    "reads in batches",
                    [format!("serve.batch={BATCH}")],
                    &[Stage::Application, Stage::SocketQueue],
                    Risk::None,
                ));
            }
        }
        if self.variant.load.datagrams().is_some_and(|form| form.segments > 1) {
            all.push(entry(
                "reads aggregates",
                ["serve.gro=true".to_owned()],
                &[Stage::Application, Stage::SocketQueue],
                Risk::None,
            ));
        }
        all.extend(self.own_cpu());
        all.extend(self.more_threads());
        all.push(entry(
            "higher priority of the service",
            ["serve.nice=-10".to_owned()],
            DESCHEDULED,
            Risk::Wide,
        ));
        all.push(busy_polling());
        all
    }

    fn larger_buffer(&self) -> Option<Entry> {
        let now = self.served("/result/sockets/0/rcvbuf_bytes").filter(|now| *now < MOST_BUFFER)?;
        let wanted = (now * BUFFER_FACTOR).clamp(LEAST_BUFFER, MOST_BUFFER);
        Some(entry(
            "larger receive buffer",
            [format!("serve.rcvbuf={wanted}")],
            &[Stage::SocketQueue, Stage::ApplicationDescheduled],
            Risk::None,
        ))
    }

    /// A CPU that the sender and the background load leave alone, for a service of one thread that shares its own.
    fn own_cpu(&self) -> Option<Entry> {
        let taken = [&self.variant.load.cpus().0, &self.variant.background.cpus.0];
        let is_taken = |cpu: &u32| taken.iter().any(|cpus| cpus.contains(cpu));
        let [now] = self.variant.serve.cpus().0[..] else { return None };
        let free = self.cpus.iter().find(|cpu| !is_taken(cpu)).filter(|_| is_taken(&now))?;
        Some(entry(
            &format!("the service on CPU {free}"),
            [format!("serve.cpu={free}")],
            &[
                Stage::Application,
                Stage::ApplicationDescheduled,
                Stage::Livelock,
                Stage::OneCpu,
                Stage::Sender,
                Stage::SenderOrSoftirq,
                Stage::SocketQueue,
            ],
            Risk::None,
        ))
    }

    /// A socket and a thread for each CPU, for a service of one thread that may run anywhere.
    fn more_threads(&self) -> Option<Entry> {
        let is_one = self.served("/settings/threads").is_none_or(|now| now == 1);
        let may_move = self.variant.serve.cpus().0.is_empty() && self.cpus.len() > 1;
        (is_one && may_move).then(|| {
            entry(
                "a thread for each CPU",
                [
                    format!("serve.threads={}", self.cpus.len()),
                    "serve.sockets=reuseport".to_owned(),
                ],
                &[Stage::Application, Stage::SocketQueue, Stage::AcceptQueue],
                Risk::None,
            )
        })
    }

    /// Rules and queues that the lab puts around its link.
    pub(super) fn around_the_link(&self) -> Vec<Entry> {
        let lab = &self.variant.lab;
        let mut all = vec![entry(
            "idle CPUs kept awake",
            ["lab.awake=true".to_owned()],
            &[Stage::ApplicationDescheduled],
            Risk::Wide,
        )];
        if lab.qdisc_tx.is_some() {
            let set = "lab.qdisc_tx=default".to_owned();
            let stages = &[Stage::Sender, Stage::SenderOrSoftirq, Stage::Network];
            let default = entry("no queueing discipline of the sender", [set], stages, Risk::None);
            all.push(Entry { is_default: true, ..default });
        }
        all.extend(lab.nft_rx.as_deref().and_then(|rules| self.untracked(rules)));
        all
    }

    /// The service's port is not tracked where the rules track connections: what they say of states has to let untracked
    /// packets pass.
    fn untracked(&self, rules: &str) -> Option<Entry> {
        const TABLE: &str = "table inet rxpath_untracked";
        if !rules.contains("ct ") || rules.contains(TABLE) {
            return None;
        }
        let port = self.variant.serve.port();
        let protocol = if self.variant.protocol() == Protocol::Udp { "udp" } else { "tcp" };
        let chain = format!(
            "chain prerouting {{ type filter hook prerouting priority raw; {protocol} dport {port} notrack; }}"
        );
        let rules = ["new", "established"].iter().fold(rules.to_owned(), |rules, state| {
            rules.replace(&format!("ct state {state}"), &format!("ct state untracked,{state}"))
        });
        Some(entry(
            "no connection tracking of the service",
            [format!("lab.nft_rx={rules}\n{TABLE} {{ {chain}; }}\n")],
            &[Stage::Softirq, Stage::SenderOrSoftirq, Stage::ConntrackFull, Stage::Livelock],
            Risk::None,
        ))
    }
}

/// The service asks the device for packets itself, which needs NAPI.
fn busy_polling() -> Entry {
    let mut sets = napi();
    sets.push(format!("serve.busy_poll={BUSY_POLL}"));
    Entry {
        name: "busy polling of the service".into(),
        sets,
        stages: &[Stage::ApplicationDescheduled],
        risk: Risk::Wide,
        is_default: false,
    }
}
