//! `rxpath load tcp rr` and `rxpath load tcp crr`: the options, and the result for people.

use rxpath_load::quantiles::Quantiles;
use rxpath_load::tcp::load::options::{CloseBy, TransactionOptions};
use rxpath_load::tcp::load::transactions::Transactions;
use rxpath_load::tcp::result::{Interval, TransactionsResult};
use rxpath_load::workload::WorkloadHandle;

use crate::cmd::conduct::{ConductArgs, EndArgs, Shown, block, conduct};
use crate::cmd::load::tcp::{checked, common_rows, exit};
use crate::cmd::values::{cpu_time, value_name};
use crate::exit::{Exit, Outcome};
use crate::output::rates::Rows;
use crate::output::tcp::{connection_rows, kinds, tcp_rows, tcp_text};
use rxpath_core::number::grouped;

/// `rxpath load tcp rr …`
#[derive(Debug, clap::Args)]
pub struct LoadTransactions {
    #[command(flatten)]
    options: TransactionOptions,
    #[command(flatten)]
    conduct: ConductArgs,
}

/// `rxpath load tcp crr …`
#[derive(Debug, clap::Args)]
pub struct LoadSingles {
    #[command(flatten)]
    transactions: LoadTransactions,
    /// Who closes each connection
    #[arg(long, value_enum, default_value = "server")]
    close: CloseBy,
}

impl LoadTransactions {
    /// Runs it.
    pub fn run(self) -> Outcome {
        self.run_as::<false>()
    }

    fn run_as<const SINGLE: bool>(mut self) -> Outcome {
        let args = &self.conduct;
        self.options.common.duration_ns = args.duration.map(|duration| duration.0);
        // A blocked receive does not see its time: the conductor does.
        let client = Transactions::<SINGLE>::open(self.options);
        conduct(client, args, args.ends(EndArgs::default()))
    }
}

impl LoadSingles {
    /// Runs it.
    pub fn run(mut self) -> Outcome {
        self.transactions.options.close_by = self.close;
        self.transactions.run_as::<true>()
    }
}

fn times(q: &Quantiles) -> String {
    format!(
        "mean {:.1} us, stdev {:.1} us, p50 {:.1} us, p90 {:.1} us, p99 {:.1} us, p99.9 {:.1} us, max {:.1} us",
        q.mean, q.stdev, q.p50, q.p90, q.p99, q.p999, q.max
    )
}

impl<const SINGLE: bool> Shown for Transactions<SINGLE> {
    fn settings_text(&self) -> String {
        let s = WorkloadHandle::settings(self);
        let mut rows = common_rows(&s.common);
        rows.push((
            "transaction",
            format!("{} bytes there, {} bytes back, {}", s.request_bytes, s.response_bytes, s.call),
        ));
        let rate = s.target_tps.map(|tps| format!("{} transactions/s; {}", grouped(tps), s.pacing));
        rows.push(("rate", rate.unwrap_or_else(|| "as fast as responses come".into())));
        rows.extend(s.close.map(|close_by| ("closed by", value_name(&close_by))));
        let kind = if SINGLE { "crr" } else { "rr" };
        block(&format!("load tcp {kind} {}", s.common.to), &rows)
    }

    fn result_text(&self, r: &TransactionsResult) -> String {
        let mut rows = vec![
            ("transactions", format!("{} in {:.3} s", grouped(r.transactions_total), r.duration_s)),
            ("rate", format!("{} transactions/s", grouped(r.achieved_tps.round() as u64))),
        ];
        if let Some(target_tps) = r.target_tps {
            let [due, unsent] =
                [r.target_transactions_total, r.unsent_transactions_total].map(grouped);
            let target = grouped(target_tps.round() as u64);
            rows.push(("schedule", format!("{due} due at {target}/s, {unsent} never sent")));
        }
        let (lost, in_flight) = (r.lost_transactions_total, r.in_flight_transactions_total);
        if lost + in_flight > 0 {
            let [lost, in_flight] = [lost, in_flight].map(grouped);
            let text = format!("{lost} lost, {in_flight} in flight at the end: in no percentile");
            rows.push(("not completed", text));
        }
        for (key, quantiles) in [
            ("service time", &r.service_time_us),
            ("response time", &r.response_time_us),
            ("connect time", &r.connect_time_us),
        ] {
            rows.extend(quantiles.iter().map(|q| (key, times(q))));
        }
        rows.extend((!r.errors_total.is_empty()).then(|| ("errors", kinds(&r.errors_total))));
        rows.extend(r.verified.then(|| checked(&r.mismatches, r.server.as_ref())));
        rows.push(("CPU time", cpu_time(r.cpu_user_s, r.cpu_system_s)));
        rows.extend(r.tcp.iter().map(|tcp| ("TCP_INFO", tcp_text(tcp))));
        rows.push(("limit", r.limit.to_string()));
        block("result", &rows) + &connection_rows(&r.connections)
    }

    fn set_rate(result: &mut TransactionsResult, tps: f64) {
        result.achieved_tps = tps;
    }

    fn rows(&self, split: bool) -> Rows<Interval> {
        tcp_rows(split)
    }

    fn exit(&self, result: &TransactionsResult) -> Exit {
        exit(&result.mismatches, result.server.as_ref(), result.peer_lost)
    }
}
