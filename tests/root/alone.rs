//! Tests that measure CPU time, count what the whole machine does, or happen at a share of the time that a run takes: one at a
//! time, with nothing else running.

mod background;
mod backlog;
mod diagnose;
mod export;
mod hosts_of_one_machine;
mod kept_apart;
mod kills;
mod landing;
mod live_causes;
mod live_counting;
mod live_limits;
mod live_tcp;
mod observed;
mod probe_faults;
mod probes;
mod queues;
mod real_traffic;
mod scope;
mod search_between_hosts;
mod selftest;
mod stolen;
mod timeline;
mod turns;
mod waits;
mod waits_lists;
mod waits_truth;
mod watch;
