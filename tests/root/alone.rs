//! Tests that measure CPU time, count what the whole machine does, or happen at a share of the time that a run takes: one at a
//! time, with nothing else running.

pub mod arrived;
mod attach_again;
mod backlog;
mod counted_cost;
pub mod diagnose;
mod export;
mod export_deep;
mod export_faults;
mod export_verdict;
mod hosts_of_one_machine;
mod live_counting;
pub mod live_limits;
pub mod live_tcp;
mod one_flow;
mod one_program;
mod pairs;
mod ports;
pub mod probe_faults;
pub mod probes;
mod real_traffic;
mod search_between_hosts;
mod shares_of_capacity;
mod strays;
mod timeline;
mod turns;
mod victim_command;
mod waits_by_turns;
mod waits_lists;
mod waits_truth;
pub mod watch;
