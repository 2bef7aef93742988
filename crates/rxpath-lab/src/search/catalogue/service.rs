//! Options of the service itself, and of what the lab puts around its link.

use rxpath_load::pool::Threads;
use rxpath_record::verdict::Stage;
use serde::Deserialize;

use super::{Entry, Seen, napi};
use crate::trial::result::UdpServer;

/// A receive buffer is made this many times larger, and at least this large.
const BUFFER_FACTOR: u64 = 4;
const LEAST_BUFFER: u64 = 1 << 20;
const MOST_BUFFER: u64 = 64 << 20;
/// Datagrams per read.
const BATCH: usize = 64;
/// Longer than the gap between packets of a service that is worth the CPU time.
const BUSY_POLL: &str = "50us";
const DESCHEDULED: &[Stage] = &[Stage::ApplicationDescheduled, Stage::SocketQueue];
const READS: &[Stage] = &[Stage::Application, Stage::SocketQueue];

impl Seen<'_> {
    /// Options of the service itself.
    pub(super) fn service(&self) -> Vec<Entry> {
        let mut all = Vec::new();
        if !self.variant.protocol().over_tcp() {
            let server = UdpServer::recorded(self.trial);
            all.extend(server.as_ref().and_then(larger_buffer));
            if server.is_some_and(|server| server.settings.batch < BATCH) {
                all.push(Entry::new("reads in batches", [format!("serve.batch={BATCH}")], READS));
            }
        }
        if self.variant.load.datagrams().is_some_and(|form| form.segments > 1) {
            all.push(Entry::new("reads aggregates", ["serve.gro=true".to_owned()], READS));
        }
        all.extend(self.own_cpu());
        all.extend(self.more_threads());
        let nice = ["serve.nice=-10".to_owned()];
        all.push(Entry::new("higher priority of the service", nice, DESCHEDULED).wide());
        all.push(busy_polling());
        all
    }

    /// A CPU that the sender and the background load leave alone, for a service of one thread that shares its own.
    fn own_cpu(&self) -> Option<Entry> {
        let taken = [&self.variant.load.cpus().0, &self.variant.background.cpus.0];
        let is_taken = |cpu: &u32| taken.iter().any(|cpus| cpus.contains(cpu));
        let [now] = self.variant.serve.cpus().0[..] else { return None };
        let free = self.cpus.iter().find(|cpu| !is_taken(cpu)).filter(|_| is_taken(&now))?;
        let stages = &[
            Stage::Application,
            Stage::ApplicationDescheduled,
            Stage::Livelock,
            Stage::OneCpu,
            Stage::Sender,
            Stage::SenderOrSoftirq,
            Stage::SocketQueue,
        ];
        let name = format!("the service on CPU {free}");
        Some(Entry::new(name, [format!("serve.cpu={free}")], stages))
    }

    /// A socket and a thread for each CPU, for a service of one thread that may run anywhere.
    fn more_threads(&self) -> Option<Entry> {
        let served = self.trial.workloads.get("serve");
        let threads = served.and_then(|serve| Threads::deserialize(&serve["settings"]).ok());
        let is_one = threads.is_none_or(|threads| threads.count == 1);
        let may_move = self.variant.serve.cpus().0.is_empty() && self.cpus.len() > 1;
        (is_one && may_move).then(|| {
            let threads = format!("serve.threads={}", self.cpus.len());
            let sets = [threads, "serve.sockets=reuseport".to_owned()];
            let stages = &[Stage::Application, Stage::SocketQueue, Stage::AcceptQueue];
            Entry::new("a thread for each CPU", sets, stages)
        })
    }

    /// Rules and queues that the lab puts around its link.
    pub(super) fn around_the_link(&self) -> Vec<Entry> {
        let lab = &self.variant.lab;
        let (awake, stages) = (["lab.awake=true".to_owned()], &[Stage::ApplicationDescheduled]);
        let mut all = vec![Entry::new("idle CPUs kept awake", awake, stages).wide()];
        if lab.qdisc_tx.is_some() {
            let (name, set) = ("no queueing discipline of the sender", "lab.qdisc_tx=default");
            let stages = &[Stage::Sender, Stage::SenderOrSoftirq, Stage::Network];
            all.push(Entry::new(name, [set.to_owned()], stages).by_default());
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
        let protocol = if self.variant.protocol().over_tcp() { "tcp" } else { "udp" };
        let chain = format!(
            "chain prerouting {{ type filter hook prerouting priority raw; {protocol} dport {port} notrack; }}"
        );
        let rules = ["new", "established"].iter().fold(rules.to_owned(), |rules, state| {
            rules.replace(&format!("ct state {state}"), &format!("ct state untracked,{state}"))
        });
        let set = format!("lab.nft_rx={rules}\n{TABLE} {{ {chain}; }}\n");
        let stages =
            &[Stage::Softirq, Stage::SenderOrSoftirq, Stage::ConntrackFull, Stage::Livelock];
        Some(Entry::new("no connection tracking of the service", [set], stages))
    }
}

fn larger_buffer(server: &UdpServer) -> Option<Entry> {
    let now = server.result.sockets.first()?.rcvbuf_bytes;
    let wanted = (now * BUFFER_FACTOR).clamp(LEAST_BUFFER, MOST_BUFFER);
    let set = format!("serve.rcvbuf={wanted}");
    (now < MOST_BUFFER).then(|| Entry::new("larger receive buffer", [set], DESCHEDULED))
}

/// The service asks the device for packets itself, which needs NAPI.
fn busy_polling() -> Entry {
    let mut sets = napi();
    sets.push(format!("serve.busy_poll={BUSY_POLL}"));
    Entry::new("busy polling of the service", sets, &[Stage::ApplicationDescheduled]).wide()
}
