//! Writes a made-up host as a tree for `--sysroot`: two NUMA nodes, some NICs with many queues, nothing real in it.
//!
//! `cargo run -p rxpath-host --example made_up_host -- DIR [NICS] [QUEUES] [CPUS]`
//!
//! The benchmark of `rxpath check` reads one of 8 NICs with 64 queues; the host `bare-metal-2node` of the tests is one
//! of 2 NICs with 4 queues and 8 CPUs.

use std::error::Error;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rxpath_core::Fact;
use rxpath_host::read::ioctl::{DriverInfo, FlowKind, FlowRules, HashFields};
use rxpath_host::read::netlink::ethtool::{
    Amount, Channels, Coalesce, Duplex, Feature, LinkModes, LinkState, Pause, Port, Rings, Rss,
};
use rxpath_host::read::netlink::netdev::{Napi, Queue, QueueKind};
use rxpath_host::read::nic::{LinkFacts, Nic, device_path};

type Done = Result<(), Box<dyn Error>>;

/// The host's size.
struct Host {
    base: PathBuf,
    nics: u32,
    queues: u32,
    cpus: u32,
}

/// First interrupt.
const FIRST_IRQ: u32 = 100;

fn main() -> Done {
    let mut args = std::env::args_os().skip(1);
    let base = args.next().ok_or("made_up_host DIR [NICS] [QUEUES] [CPUS]")?;
    let mut number = |default: u32| -> Result<u32, Box<dyn Error>> {
        let given = args.next().map(|text| text.to_string_lossy().parse()).transpose()?;
        Ok(given.unwrap_or(default))
    };
    let host = Host { nics: number(8)?, queues: number(64)?, cpus: number(64)?, base: base.into() };
    host.kernel()?;
    host.cpus()?;
    host.interrupts()?;
    (0..host.nics).try_for_each(|nic| host.nic(nic))
}

impl Host {
    fn put(&self, path: &str, text: &str) -> Done {
        let at = self.base.join(path.trim_start_matches('/'));
        fs::create_dir_all(at.parent().unwrap_or(&self.base))?;
        Ok(fs::write(at, format!("{text}\n"))?)
    }

    fn node(&self, cpu: u32) -> u32 {
        u32::from(cpu >= self.cpus / 2)
    }

    /// The CPU of a NIC's queue: all of them on the NIC's own node.
    fn cpu_of(&self, nic: u32, queue: u32) -> u32 {
        let half = (self.cpus / 2).max(1);
        (nic % 2) * half + queue % half
    }

    fn irq_of(&self, nic: u32, queue: u32) -> u32 {
        FIRST_IRQ + nic * (self.queues + 1) + queue
    }

    fn kernel(&self) -> Done {
        for (path, text) in [
            ("proc/sys/kernel/osrelease", "6.12.0-made-up"),
            ("proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC"),
            ("proc/sys/kernel/tainted", "0"),
            ("proc/sys/net/core/netdev_budget", "300"),
            ("proc/sys/net/core/netdev_budget_usecs", "2000"),
            ("proc/sys/net/core/netdev_max_backlog", "1000"),
            ("proc/sys/net/core/dev_weight", "64"),
            ("proc/sys/net/core/rmem_default", "212992"),
            ("proc/sys/net/core/rmem_max", "212992"),
            ("proc/sys/net/core/busy_poll", "0"),
            ("proc/sys/net/core/busy_read", "0"),
            ("proc/sys/net/core/rps_sock_flow_entries", "0"),
            ("proc/sys/net/core/netdev_tstamp_prequeue", "1"),
            ("proc/sys/net/core/default_qdisc", "fq_codel"),
            ("proc/sys/net/ipv4/ip_forward", "0"),
            ("proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456"),
            ("proc/sys/net/ipv4/udp_mem", "1527072\t2036097\t3054144"),
            ("proc/cmdline", "ro quiet mitigations=auto"),
            ("proc/uptime", "1000000.00 60000000.00"),
            ("proc/loadavg", "1.00 1.00 1.00 1/1000 4242"),
            ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc"),
            (
                "sys/devices/system/clocksource/clocksource0/available_clocksource",
                "tsc hpet acpi_pm",
            ),
            ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never"),
        ] {
            self.put(path, text)?;
        }
        let line = |cpu: u32| {
            format!(
                "{:08x} 00000000 00000003{}{:08x} 00000000 00000000",
                1_000_000 + cpu,
                " 00000000".repeat(9) + " ",
                cpu
            )
        };
        let softnet: Vec<String> = (0..self.cpus).map(line).collect();
        self.put("proc/net/softnet_stat", &softnet.join("\n"))
    }

    fn cpus(&self) -> Done {
        let base = "sys/devices/system/cpu";
        let half = self.cpus / 2;
        let last = self.cpus - 1;
        let lists = [format!("0-{}", half.saturating_sub(1)), format!("{half}-{last}")];
        for (file, text) in [
            ("online", format!("0-{last}")),
            ("possible", format!("0-{last}")),
            ("isolated", String::new()),
        ] {
            self.put(&format!("{base}/{file}"), &text)?;
        }
        self.put(&format!("{base}/smt/control"), "on")?;
        self.put(&format!("{base}/smt/active"), "1")?;
        self.put("sys/devices/system/node/online", "0-1")?;
        for (node, list) in lists.iter().enumerate() {
            self.put(&format!("sys/devices/system/node/node{node}/cpulist"), list)?;
        }
        for cpu in 0..self.cpus {
            let dir = format!("{base}/cpu{cpu}");
            let node = self.node(cpu);
            // Siblings are neighbours: CPU 2n and 2n + 1.
            let first = cpu / 2 * 2;
            for (file, text) in [
                ("topology/physical_package_id", node.to_string()),
                ("topology/core_id", (cpu / 2).to_string()),
                ("topology/core_cpus_list", format!("{first}-{}", first + 1)),
                ("cache/index3/level", "3".into()),
                ("cache/index3/size", "32768K".into()),
                ("cache/index3/shared_cpu_list", lists[node as usize].clone()),
            ] {
                self.put(&format!("{dir}/{file}"), &text)?;
            }
            let policy = format!("{base}/cpufreq/policy{cpu}");
            self.put(&format!("{policy}/scaling_governor"), "performance")?;
            self.put(&format!("{policy}/scaling_driver"), "intel_pstate")?;
        }
        let info: Vec<String> = (0..self.cpus)
            .map(|cpu| format!("processor\t: {cpu}\nvendor_id\t: GenuineIntel\nmodel name\t: Made-up CPU\nflags\t\t: fpu tsc constant_tsc nonstop_tsc\n"))
            .collect();
        self.put("proc/cpuinfo", &info.join("\n"))
    }

    fn interrupts(&self) -> Done {
        let head: Vec<String> = (0..self.cpus).map(|cpu| format!("CPU{cpu}")).collect();
        let mut text = format!("        {}\n", head.join(" "));
        let mut row = |irq: u32, cpu: u32, bus: u32, vector: u32, name: &str| {
            let counts: Vec<&str> =
                (0..self.cpus).map(|at| if at == cpu { "123456" } else { "0" }).collect();
            text += &format!(
                "{irq}: {} PCI-MSIX-0000:{bus:02x}:00.0 {vector}-edge {name}\n",
                counts.join(" ")
            );
        };
        for nic in 0..self.nics {
            for queue in 0..self.queues {
                let name = format!("ice-eth{nic}-TxRx-{queue}");
                row(self.irq_of(nic, queue), self.cpu_of(nic, queue), 0x30 + nic, queue + 1, &name);
            }
            row(
                self.irq_of(nic, self.queues),
                0,
                0x30 + nic,
                0,
                &format!("ice-0000:{:02x}:00.0:misc", 0x30 + nic),
            );
        }
        self.put("proc/interrupts", text.trim_end())?;
        for nic in 0..self.nics {
            for queue in 0..=self.queues {
                let (irq, cpu) = (self.irq_of(nic, queue), self.cpu_of(nic, queue));
                self.put(&format!("proc/irq/{irq}/smp_affinity_list"), &cpu.to_string())?;
                self.put(&format!("proc/irq/{irq}/effective_affinity_list"), &cpu.to_string())?;
                self.put(&format!("proc/irq/{irq}/affinity_hint"), "00000000")?;
                self.put(&format!("proc/irq/{irq}/node"), &(nic % 2).to_string())?;
            }
        }
        Ok(())
    }

    fn nic(&self, nic: u32) -> Done {
        let name = format!("eth{nic}");
        let pci = format!("sys/devices/pci0000:{:02x}/0000:{:02x}:00.0", 0x20 + nic, 0x30 + nic);
        let net = format!("{pci}/net/{name}");
        for (file, text) in [
            ("carrier", "1".to_owned()),
            ("duplex", "full".into()),
            ("flags", "0x1003".into()),
            ("gro_flush_timeout", "0".into()),
            ("ifindex", (nic + 2).to_string()),
            ("iflink", (nic + 2).to_string()),
            ("mtu", "1500".into()),
            ("napi_defer_hard_irqs", "0".into()),
            ("operstate", "up".into()),
            ("speed", "100000".into()),
            ("threaded", "0".into()),
            ("tx_queue_len", "1000".into()),
            ("type", "1".into()),
            ("statistics/rx_packets", "4200000000".into()),
            ("statistics/rx_dropped", "0".into()),
            ("statistics/rx_missed_errors", "0".into()),
        ] {
            self.put(&format!("{net}/{file}"), &text)?;
        }
        self.masks(nic, &net)?;
        for vector in 0..=self.queues {
            self.put(&format!("{pci}/msi_irqs/{}", self.irq_of(nic, vector)), "msix")?;
        }
        for (file, text) in [
            ("numa_node", (nic % 2).to_string()),
            ("current_link_speed", "16.0 GT/s PCIe".into()),
            ("max_link_speed", "16.0 GT/s PCIe".into()),
            ("current_link_width", "16".into()),
            ("max_link_width", "16".into()),
        ] {
            self.put(&format!("{pci}/{file}"), &text)?;
        }
        let link = |at: &str, to: &str| -> Done {
            let at = self.base.join(at);
            fs::create_dir_all(at.parent().unwrap_or(Path::new("/")))?;
            Ok(symlink(to, at)?)
        };
        link(&format!("{pci}/driver"), "../../../bus/pci/drivers/ice")?;
        link(&format!("{net}/device"), "../..")?;
        link(
            &format!("sys/class/net/{name}"),
            &format!("../../{}", net.trim_start_matches("sys/")),
        )?;
        let text = serde_json::to_string_pretty(&self.answers(nic))?;
        self.put(&device_path(&name), &text)
    }

    /// Each queue: no RPS, and XPS to the CPU that serves it.
    fn masks(&self, nic: u32, net: &str) -> Done {
        for queue in 0..self.queues {
            let cpu = self.cpu_of(nic, queue);
            let words = self.cpus.div_ceil(32).max(1);
            let mask = (0..words).rev().map(|word| {
                let bit = if cpu / 32 == word { 1u32 << (cpu % 32) } else { 0 };
                format!("{bit:08x}")
            });
            let mask: Vec<String> = mask.collect();
            let none = vec!["00000000"; words as usize].join(",");
            self.put(&format!("{net}/queues/rx-{queue}/rps_cpus"), &none)?;
            self.put(&format!("{net}/queues/rx-{queue}/rps_flow_cnt"), "0")?;
            self.put(&format!("{net}/queues/tx-{queue}/xps_cpus"), &mask.join(","))?;
        }
        Ok(())
    }

    fn answers(&self, nic: u32) -> Nic {
        let amount = |now, max| Amount { now: Some(now), max: Some(max) };
        let on = Feature { active: true, wanted: true, changeable: true };
        let off = Feature { changeable: true, ..Feature::default() };
        let features = [
            ("rx-gro", on),
            ("rx-checksum", on),
            ("rx-hashing", on),
            ("rx-ntuple-filter", off),
            ("rx-lro", off),
            ("rx-gro-hw", off),
        ];
        let ports = HashFields(HashFields::ADDRESSES | HashFields::PORTS);
        let stats = (0..self.queues)
            .map(|queue| (format!("rx_queue_{queue}_packets"), 1_000_000 + u64::from(queue)));
        Nic {
            driver: Fact::ok(DriverInfo {
                driver: "ice".into(),
                version: "6.12.0-made-up".into(),
                firmware: "4.40 0x8001c7d4 1.3534.0".into(),
                bus: format!("0000:{:02x}:00.0", 0x30 + nic),
                statistics_count: self.queues,
            }),
            features: Fact::ok(features.into_iter().map(|(name, f)| (name.to_owned(), f)).collect()),
            channels: Fact::ok(Channels { combined: amount(self.queues, 256), ..Channels::default() }),
            rings: Fact::ok(Rings { rx: amount(2048, 8160), tx: amount(2048, 8160), ..Rings::default() }),
            coalesce: Fact::ok(Coalesce {
                rx_usecs: Some(50),
                tx_usecs: Some(50),
                adaptive_rx: Some(true),
                adaptive_tx: Some(true),
                ..Coalesce::default()
            }),
            rss: Fact::ok(Rss {
                function: Some("toeplitz".into()),
                table: (0..2048).map(|entry| entry % self.queues).collect(),
                key: Fact::ok("6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa".into()),
                transformation: None,
            }),
            rss_contexts: Fact::ok(Vec::new()),
            flow_hash: FlowKind::ALL.into_iter().map(|kind| (kind, Fact::ok(ports))).collect(),
            flow_rules: Fact::ok(FlowRules { rings_count: Some(u64::from(self.queues)), rules_count: 0, rules_max: Some(16_384) }),
            driver_stats: Fact::ok(stats.collect()),
            queues: Fact::ok((0..self.queues).map(|index| Queue { kind: QueueKind::Rx, index, napi_id: Some(8193 + nic * 1000 + index), has_xsk: false }).collect()),
            napis: Fact::ok((0..self.queues).map(|index| Napi { id: 8193 + nic * 1000 + index, irq: Some(self.irq_of(nic, index)), ..Napi::default() }).collect()),
            ..self.link(nic)
        }
    }

    /// What the kernel says of the link.
    fn link(&self, nic: u32) -> Nic {
        Nic {
            link: Fact::ok(LinkFacts {
                ifindex: nic + 2,
                is_up: true,
                flags: 0x11043,
                mtu_bytes: 1500,
                mtu_range_bytes: Some((68, 9702)),
                tx_queues_count: self.queues,
                rx_queues_count: self.queues,
                qdisc: Some("mq".into()),
                carrier: Some(true),
                promiscuity_count: Some(0),
                gso_max_bytes: Some(65_536),
                gro_max_bytes: Some(65_536),
                ..LinkFacts::default()
            }),
            pause: Fact::ok(Pause {
                autoneg: Some(true),
                rx: Some(false),
                tx: Some(false),
                ..Pause::default()
            }),
            link_modes: Fact::ok(LinkModes {
                autoneg: Some(true),
                speed_mbps: Some(100_000),
                duplex: Some(Duplex::Full),
                supported: vec!["100000baseCR4/Full".into(), "25000baseCR/Full".into()],
                advertised: vec!["100000baseCR4/Full".into()],
                ..LinkModes::default()
            }),
            link_state: Fact::ok(LinkState { up: Some(true), ..LinkState::default() }),
            port: Fact::ok(Port::DirectAttach),
            ..Nic::all_gaps("a made-up host has no answer")
        }
    }
}
