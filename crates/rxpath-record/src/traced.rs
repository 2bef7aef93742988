//! The receive side of the machine in the measured window of a trial: softirq runs, NAPI polls with their packets,
//! latency from stage to stage.

use rxpath_core::Log2;
use rxpath_core::measured::{IrqLine, NapiPolls, ProbeCost, StageTimes};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The trace of one trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Traced {
    /// From attaching the programs to reading them.
    pub window_s: f64,
    /// Each CPU.
    pub cpus: Vec<CpuTraced>,
    /// Each device, the most packets first. Of the machine, as the NAPIs.
    pub devices: Vec<DeviceTraced>,
    /// Each NAPI instance on each CPU, the most packets first. Of the machine; the trial's devices name their side.
    pub napis: Vec<NapiTraced>,
    /// Each interrupt line on each CPU, the most interrupts first. A lab's devices have none.
    pub irqs: Vec<IrqLine>,
    /// From stage to stage, in the trial's namespaces and everywhere else.
    pub stages: Vec<StageTimes>,
    /// Time in which packets were sampled for it: the window, or a part of it where sampling each packet would cost too
    /// much.
    pub stages_looked_s: f64,
    /// What observing cost.
    pub probe: ProbeCost,
}

/// One CPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CpuTraced {
    /// CPU number.
    pub cpu: u32,
    /// Interrupts of devices.
    pub device_interrupts_count: u64,
    /// Other interrupts: timer, calls from other CPUs (RPS), reschedules. x86 only.
    pub other_interrupts_count: u64,
    /// Time in hard interrupts, between their tracepoints.
    pub hardirq_s: f64,
    /// From one device interrupt to the next, in ns.
    pub interrupt_interval_ns: Log2,
    /// Runs of NET_RX.
    pub net_rx_runs_count: u64,
    /// Time in them, hard interrupts taken off.
    pub net_rx_s: f64,
    /// Of these: runs in ksoftirqd.
    pub ksoftirqd_runs_count: u64,
    /// Of these: time in ksoftirqd.
    pub ksoftirqd_s: f64,
    /// NAPI polls.
    pub polls_count: u64,
    /// Packets of those polls.
    pub packets: u64,
    /// Polls that used up their budget.
    pub exhausted_count: u64,
    /// Packets of a poll.
    pub packets_per_poll: Log2,
    /// Length of NET_RX runs, in ns.
    pub net_rx_run_ns: Log2,
    /// The longest NET_RX run.
    pub longest_net_rx_ns: u64,
    /// Times that NET_RX ended with work left, its budget or time used up. **Source** `/proc/net/softnet_stat`; none
    /// where it could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_squeeze_count: Option<u64>,
}

/// All NAPI instances of one device on all CPUs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DeviceTraced {
    /// Device; `backlog` for the backlogs of all CPUs (RPS, loopback, devices without NAPI).
    pub dev: String,
    /// Side of the trial that it belongs to; empty for the backlog and for other devices of the machine.
    pub side: String,
    /// NAPI instances that polled.
    pub napis_count: u64,
    /// CPUs on which they did.
    pub cpus: Vec<u32>,
    /// Polls.
    pub polls_count: u64,
    /// Packets.
    pub packets: u64,
    /// Polls that used up their budget.
    pub exhausted_count: u64,
    /// Time of the polls in softirqs, hard interrupts in them included.
    pub poll_s: f64,
    /// Packets of a poll.
    pub packets_per_poll: Log2,
}

/// One NAPI instance on one CPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NapiTraced {
    /// Its polls.
    #[serde(flatten)]
    pub row: NapiPolls,
    /// Side of the trial that it belongs to; empty for the backlog and for other devices of the machine.
    pub side: String,
}

#[cfg(test)]
mod tests {
    use rxpath_core::measured::{Outlier, StageName};

    use super::*;

    /// A run that was recorded before devices, interrupt lines, the cost of each program and devices of
    /// outliers were.
    #[test]
    fn what_an_older_run_does_not_tell_is_empty() {
        let old = r#"{"window_s": 1.5, "cpus": [{"cpu": 1, "packets": 7}],
            "napis": [{"dev": "veth", "side": "rx", "napi_id": 3, "packets_per_poll": {"buckets": [0, 5]}}],
            "probe": {"run_time_s": 0.25, "runs_count": 9, "reader_cpu_s": 0.5, "map_bytes": 4096, "lost_count": 0},
            "stages": [{"stage": "socket-to-read", "unread_count": 3, "outliers": [{"port": 53, "task": "dns (7)"}]}]}"#;
        let read: Traced = serde_json::from_str(old).unwrap();
        let probe = ProbeCost {
            run_time_s: 0.25,
            runs_count: 9,
            reader_cpu_s: 0.5,
            map_bytes: 4096,
            ..ProbeCost::default()
        };
        assert_eq!(read.probe, probe);
        let packets_per_poll = Log2::of(&[0, 5]);
        let row =
            NapiPolls { dev: "veth".into(), napi_id: 3, packets_per_poll, ..NapiPolls::default() };
        assert_eq!(read.napis, [NapiTraced { row, side: "rx".into() }]);
        let [stage] = &read.stages[..] else { panic!("{:?}", read.stages) };
        assert_eq!((stage.stage, stage.unread_count), (StageName::SocketToRead, 3));
        let outlier = Outlier { port: 53, task: "dns (7)".into(), ..Outlier::default() };
        assert_eq!(stage.outliers, [outlier]);
        assert_eq!((read.window_s, read.cpus[0].packets), (1.5, 7));
        assert!(read.devices.is_empty() && read.irqs.is_empty());
        assert_eq!(read.cpus[0].time_squeeze_count, None);
    }
}
