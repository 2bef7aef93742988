//! The evidence of a simulated window for a diagnosis: the same facts as of a measured window.

use rxpath_record::evidence::{CpuUse, SocketUse, SoftirqPlace, ThreadUse, WindowEvidence};
use rxpath_record::ledger::Ledger;

use super::super::parameters::Law;
use super::super::world::World;

impl World<'_> {
    pub(in crate::sim) fn evidence(&self, ledger: &Ledger) -> WindowEvidence {
        let (from, to) = self.window();
        let window_ns = (to.at - from.at) as f64;
        let ratio = |ns: u64| ns as f64 / window_ns;
        let rate = |packets: u64| packets as f64 * 1e9 / window_ns;
        let cpus = from.cpus.iter().zip(&to.cpus).map(|(from, to)| {
            let used = to.since(from);
            CpuUse {
                cpu: used.cpu,
                user_ratio: ratio(used.background_ns),
                system_ratio: ratio(used.reader_ns),
                irq_ratio: ratio(used.irq_ns),
                softirq_ratio: ratio(used.softirq_ns + used.ksoftirqd_ns + used.napi_ns),
                steal_ratio: 0.0,
                idle_ratio: ratio(used.idle_ns),
                foreign_ratio: Some(ratio(used.background_ns)),
            }
        });
        let receivers = (0..self.p.readers).filter_map(|reader| {
            let (before, after) = (from.threads.get(reader)?, to.threads.get(reader)?);
            let cpu = self.threads.get(reader)?.cpu as u32;
            Some(ThreadUse {
                tid: reader as i32,
                name: format!("reader{reader}"),
                asked_cpu: Some(cpu),
                seen_cpus: vec![cpu],
                running_ratio: ratio(after.running - before.running),
                waiting_ratio: ratio(after.waiting - before.waiting),
                packets: after.delivered - before.delivered,
                ..ThreadUse::default()
            })
        });
        WindowEvidence {
            window_s: window_ns / 1e9,
            target_pps: matches!(self.p.law, Law::Poisson | Law::Cbr { .. }).then_some(self.p.rate),
            offered_pps: rate(to.offered - from.offered),
            delivered_pps: rate(to.delivered - from.delivered),
            receiver_threads: receivers.collect(),
            cpus: cpus.collect(),
            sockets: self.socket_use(),
            softirq: self.softirq_place(),
            backlog_limit_packets: Some(self.p.backlog),
            reader_stall_s: (self.p.stall > 0).then_some(self.p.stall as f64 / 1e9),
            ledger: ledger.clone(),
            ..WindowEvidence::default()
        }
    }

    fn socket_use(&self) -> Vec<SocketUse> {
        let delivered = |s: usize| {
            self.sockets[s].readers.iter().map(|reader| self.threads[*reader].used.delivered).sum()
        };
        let from = self.p.warmup;
        let in_window = |row: &[u64]| -> Vec<u64> {
            let timed = self.tally.samples.t.iter().zip(row);
            timed.filter(|(t, _)| **t >= from).map(|(_, bytes)| *bytes).collect()
        };
        let one = |(s, socket): (usize, &super::super::socket::Socket)| {
            let seen = in_window(&self.tally.samples.rmem[s]);
            SocketUse {
                index: s as u32,
                rcvbuf_bytes: self.p.rcvbuf,
                capacity_packets: Some(self.p.places()),
                queue_mean_bytes: seen.iter().sum::<u64>() as f64 / seen.len().max(1) as f64,
                queue_max_bytes: seen.iter().max().copied().unwrap_or(0),
                samples: seen.len() as u64,
                drops_packets: socket.drops,
                delivered_packets: delivered(s),
                ..SocketUse::default()
            }
        };
        self.sockets.iter().enumerate().map(one).collect()
    }

    fn softirq_place(&self) -> SoftirqPlace {
        if !self.p.rps_cpus.is_empty() {
            return SoftirqPlace::Rps { cpus: self.p.rps_cpus.clone() };
        }
        let mut cpus: Vec<u32> = self.queues.iter().map(|queue| queue.cpu as u32).collect();
        cpus.sort_unstable();
        cpus.dedup();
        if self.p.threaded {
            SoftirqPlace::NapiThread { cpus }
        } else {
            SoftirqPlace::Napi { cpus }
        }
    }
}
