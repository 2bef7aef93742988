//! The options that choose the worker threads of a workload.

use clap::{ArgMatches, Args, Command, Error, FromArgMatches};
use rxpath_core::{CpuList, SchedClass};

use crate::pool::Threads;

/// The worker threads.
#[derive(Args)]
struct ThreadArgs {
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

impl Args for Threads {
    fn augment_args(command: Command) -> Command {
        ThreadArgs::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        ThreadArgs::augment_args_for_update(command)
    }
}

impl FromArgMatches for Threads {
    /// Without `--threads` one for each entry of `--cpu`.
    fn from_arg_matches(found: &ArgMatches) -> Result<Self, Error> {
        let ThreadArgs { threads, cpu, nice, sched } = ThreadArgs::from_arg_matches(found)?;
        let cpus = cpu.unwrap_or_default().0;
        Ok(Self { count: threads.unwrap_or(cpus.len().max(1)), cpus, nice, sched })
    }

    fn update_from_arg_matches(&mut self, found: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(found)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn threads(line: &str) -> Threads {
        let command = Threads::augment_args(Command::new("rxpath"));
        let words = std::iter::once("rxpath").chain(line.split_whitespace());
        Threads::from_arg_matches(&command.try_get_matches_from(words).unwrap()).unwrap()
    }

    #[test]
    fn there_is_one_thread_for_each_cpu_unless_their_number_is_given() {
        assert_eq!(threads(""), Threads::default());
        let placed = threads("--cpu 0,2-3 --nice -5");
        assert_eq!((placed.count, placed.cpus, placed.nice), (3, vec![0, 2, 3], Some(-5)));
        assert_eq!(threads("-t 4").count, 4);
        let refused = threads("-t 2 --cpu 0").check("send", 0).unwrap_err();
        assert!(refused.is_usage(), "{refused}");
        assert_eq!(refused.to_string(), "--threads 2 differs from the 1 entries of --cpu");
    }
}
