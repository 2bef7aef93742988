//! A made-up host that is written as a captured tree. Whatever its maker does not say is sound.

use std::collections::BTreeMap;
use std::path::Path;

use rxpath_core::{CpuList, Fact};
use rxpath_host::read::nic::{HOST_PATH, HostAnswers};
use rxpath_host::read::procfs::sysctl;

use super::card::Card;
use super::files::Tree;
use super::sound::{COUNTERS, SYSCTLS};
use super::virtuals::Virtual;

/// A counter at the two readings.
pub type Readings = (u64, u64);

/// A host.
pub struct Host {
    pub cpus: u32,
    pub nodes: u32,
    /// Whether CPUs 2n and 2n + 1 are threads of one core.
    pub has_siblings: bool,
    /// CPUs that are there and not online.
    pub offline: Vec<u32>,
    pub isolated: CpuList,
    pub nohz_full: CpuList,
    pub kernel: &'static str,
    pub hz: u32,
    pub memory_gib: u64,
    pub page_bytes: u64,
    pub is_guest: bool,
    pub cmdline: String,
    pub cards: Vec<Card>,
    pub virtuals: Vec<Virtual>,
    pub answers: HostAnswers,
    pub(super) processes: Vec<&'static str>,
    pub(super) counters: BTreeMap<&'static str, Readings>,
    /// Packets and ends of the budget on CPU 0.
    pub(super) softnet: (Readings, Readings),
    pub(super) files: BTreeMap<String, String>,
}

const CPU: &str = "/sys/devices/system/cpu";

impl Host {
    fn new(cpus: u32, nodes: u32) -> Self {
        let page_bytes = 4096;
        Self {
            cpus,
            nodes,
            has_siblings: false,
            offline: Vec::new(),
            isolated: CpuList::default(),
            nohz_full: CpuList::default(),
            kernel: "6.12.40",
            hz: 250,
            memory_gib: 64,
            page_bytes,
            is_guest: false,
            cmdline: "ro quiet".into(),
            cards: Vec::new(),
            virtuals: Vec::new(),
            answers: HostAnswers {
                netfilter_hooks: Fact::ok(Vec::new()),
                nft_tables: Fact::ok(Vec::new()),
                page_pools: Fact::ok(Vec::new()),
                ..HostAnswers::default()
            },
            processes: vec!["systemd", "sshd"],
            counters: COUNTERS.iter().map(|(name, count)| (*name, (*count, count + 100))).collect(),
            softnet: ((1_000_000, 1_050_000), (0, 0)),
            files: BTreeMap::new(),
        }
        .still()
    }

    /// What counts losses does not move.
    fn still(mut self) -> Self {
        for (name, (first, later)) in &mut self.counters {
            if *first == 0 || *name == "Tcp.RetransSegs" {
                *later = *first;
            }
        }
        self
    }

    /// A server.
    pub fn metal(cpus: u32, nodes: u32) -> Self {
        let mut host = Self::new(cpus, nodes);
        host.has_siblings = true;
        let policy = format!("{CPU}/cpufreq/policy0");
        for (file, text) in [
            ("scaling_driver", "intel_pstate"),
            ("scaling_governor", "performance"),
            ("scaling_min_freq", "800000"),
            ("scaling_max_freq", "3500000"),
            ("cpuinfo_max_freq", "3500000"),
        ] {
            host = host.file(&format!("{policy}/{file}"), text);
        }
        host.file(&format!("{CPU}/intel_pstate/no_turbo"), "0")
            .idle_state(0, "POLL", 0, false)
            .idle_state(1, "C1", 2, false)
            .file("/sys/class/dmi/id/sys_vendor", "Made-up Servers")
    }

    /// A virtual machine.
    pub fn guest(cpus: u32, vendor: &str) -> Self {
        let mut host = Self::new(cpus, 1);
        host.is_guest = true;
        host.memory_gib = 32;
        host.file("/sys/class/dmi/id/sys_vendor", vendor)
    }

    pub fn file(mut self, path: &str, text: &str) -> Self {
        self.files.insert(path.into(), text.into());
        self
    }

    pub fn sysctl(self, key: &str, value: &str) -> Self {
        self.file(&sysctl::path(key), value)
    }

    pub fn runs(mut self, program: &'static str) -> Self {
        self.processes.push(program);
        self
    }

    /// A counter of the protocols at both readings.
    pub fn counted(mut self, name: &'static str, readings: Readings) -> Self {
        self.counters.insert(name, readings);
        self
    }

    /// How often CPU 0 ended a round with work left.
    pub fn squeezed(mut self, readings: Readings) -> Self {
        self.softnet.1 = readings;
        self
    }

    /// These CPUs are isolated, without a tick.
    pub fn isolate(mut self, cpus: &str) -> Self {
        self.isolated = cpus.parse().unwrap();
        self.nohz_full = self.isolated.clone();
        self.cmdline += &format!(" isolcpus={cpus} nohz_full={cpus} rcu_nocbs={cpus}");
        self
    }

    pub fn idle_state(self, number: u32, name: &str, exit_us: u32, is_off: bool) -> Self {
        let dir = format!("{CPU}/cpu0/cpuidle/state{number}");
        self.file(&format!("{dir}/name"), name)
            .file(&format!("{dir}/latency"), &exit_us.to_string())
            .file(&format!("{dir}/disable"), if is_off { "1" } else { "0" })
    }

    pub fn governor(self, name: &str) -> Self {
        self.file(&format!("{CPU}/cpufreq/policy0/scaling_governor"), name)
    }

    /// The table of connections: how many there are, how many there may be, and its buckets.
    pub fn conntrack(self, count: u64, max: u64, buckets: u64) -> Self {
        self.sysctl("net.netfilter.nf_conntrack_count", &count.to_string())
            .sysctl("net.netfilter.nf_conntrack_max", &max.to_string())
            .file("/sys/module/nf_conntrack/parameters/hashsize", &buckets.to_string())
    }

    /// A host that sends on what comes, and has done so.
    pub fn forwards(self) -> Self {
        self.sysctl("net.ipv4.ip_forward", "1")
            .sysctl("net.ipv6.conf.all.forwarding", "1")
            .counted("Ip.ForwDatagrams", (4_000_000, 4_000_900))
    }

    pub fn card(mut self, card: Card) -> Self {
        self.cards.push(card);
        self
    }

    pub fn virtual_device(mut self, device: Virtual) -> Self {
        self.virtuals.push(device);
        self
    }

    /// Whether the kernel lacks what came with version 5.
    pub fn is_old(&self) -> bool {
        self.kernel.starts_with("4.")
    }

    /// CPUs that are online.
    pub fn online(&self) -> CpuList {
        CpuList((0..self.cpus).filter(|cpu| !self.offline.contains(cpu)).collect())
    }

    /// CPUs that the kernel's own work may run on.
    pub fn housekeeping(&self) -> Vec<u32> {
        let kept = [self.isolated.as_slice(), self.nohz_full.as_slice()].concat();
        self.online().0.into_iter().filter(|cpu| !kept.contains(cpu)).collect()
    }

    /// The node of a CPU: each has one stretch of them.
    pub fn node_of(&self, cpu: u32) -> u32 {
        cpu / self.cpus.div_ceil(self.nodes)
    }

    /// The first interrupt of a card.
    pub fn first_irq(card: usize) -> u32 {
        1000 * (card as u32 + 1)
    }

    /// The index of a device, which the kernel gives in the order in which devices appear.
    fn ifindex(&self, name: &str) -> u32 {
        let names = self.cards.iter().map(|card| &card.name);
        let mut names = names.chain(self.virtuals.iter().map(|one| &one.name));
        names.position(|known| known == name).map_or(0, |at| at as u32 + 2)
    }

    /// Writes the tree.
    pub fn write(&self, dir: &Path) {
        let mut tree = Tree::new(dir);
        self.kernel(&mut tree);
        self.settings(&mut tree);
        self.counters(&mut tree);
        self.processors(&mut tree);
        self.interrupts(&mut tree);
        for (at, card) in self.cards.iter().enumerate() {
            card.write(self, &mut tree, at, self.ifindex(&card.name));
        }
        for one in &self.virtuals {
            let below = one.over.as_deref().map_or(0, |name| self.ifindex(name));
            one.write(&mut tree, self.ifindex(&one.name), below);
        }
        let answers = HostAnswers { page_bytes: Fact::ok(self.page_bytes), ..self.answers.clone() };
        tree.put(HOST_PATH, &serde_json::to_string(&answers).unwrap());
        // What the host itself says comes last, so that it stays.
        for (path, text) in &self.files {
            tree.put(path, text);
        }
    }

    fn kernel(&self, tree: &mut Tree) {
        tree.put("/proc/sys/kernel/osrelease", self.kernel);
        tree.put("/proc/cmdline", &self.cmdline);
        let config = format!(
            "CONFIG_HZ={}\nCONFIG_RPS=y\nCONFIG_RFS_ACCEL=y\nCONFIG_IRQ_TIME_ACCOUNTING=y",
            self.hz
        );
        tree.put(&format!("/boot/config-{}", self.kernel), &config);
        tree.put("/proc/uptime", "90000.00 1.00");
        tree.put("/later/proc/uptime", "90000.25 1.00");
        tree.put("/proc/stat", "cpu  900 0 900 9000000 0 0 90 0 0 0");
        tree.put("/later/proc/stat", "cpu  901 0 901 9000100 0 0 91 0 0 0");
        tree.put("/proc/meminfo", &format!("MemTotal: {} kB", self.memory_gib << 20));
        tree.put("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never");
        let clock = if self.is_guest { "kvm-clock" } else { "tsc" };
        let dir = "/sys/devices/system/clocksource/clocksource0";
        tree.put(&format!("{dir}/current_clocksource"), clock);
        tree.put(&format!("{dir}/available_clocksource"), clock);
        let flag = if self.is_guest { " hypervisor" } else { "" };
        tree.put("/proc/cpuinfo", &format!("vendor_id: GenuineIntel\nflags: fpu tsc{flag}"));
        for (file, text) in
            [("type", "772"), ("flags", "0x9"), ("operstate", "unknown"), ("ifindex", "1")]
        {
            tree.put(&format!("/sys/class/net/lo/{file}"), text);
        }
        tree.put("/proc/net/packet", "sk       RefCnt Type Proto  Iface R Rmem   User   Inode");
        for (at, name) in self.processes.iter().enumerate() {
            tree.put(&format!("/proc/{}/comm", at + 1), name);
        }
    }

    fn settings(&self, tree: &mut Tree) {
        for (key, value) in SYSCTLS {
            tree.put(&sysctl::path(key), value);
        }
        let usecs = 2_000_000 / self.hz;
        tree.put(&sysctl::path("net.core.netdev_budget_usecs"), &usecs.to_string());
        // The kernel's own limits: about a tenth of the memory, in pages.
        let pages = (self.memory_gib << 30) / self.page_bytes;
        let limits = format!("{} {} {}", pages / 21, pages / 16, pages / 11);
        tree.put(&sysctl::path("net.ipv4.tcp_mem"), &limits);
        tree.put(&sysctl::path("net.ipv4.udp_mem"), &limits);
    }

    fn counters(&self, tree: &mut Tree) {
        for (base, pick) in [("", 0), ("/later", 1)] {
            let of = |(first, later): Readings| if pick == 0 { first } else { later };
            let table = |groups: &[&str]| {
                let lines = groups.iter().map(|group| {
                    let start = format!("{group}.");
                    let own = self.counters.iter().filter_map(|(name, readings)| {
                        Some((name.strip_prefix(&start)?, of(*readings)))
                    });
                    let (names, counts): (Vec<&str>, Vec<String>) =
                        own.map(|(name, count)| (name, count.to_string())).unzip();
                    format!("{group}: {}\n{group}: {}", names.join(" "), counts.join(" "))
                });
                lines.collect::<Vec<_>>().join("\n")
            };
            tree.put(&format!("{base}/proc/net/snmp"), &table(&["Ip", "Tcp", "Udp"]));
            tree.put(&format!("{base}/proc/net/netstat"), &table(&["TcpExt", "IpExt"]));
            let lines = self.online().0.into_iter().map(|cpu| {
                let (packets, ends) = if cpu == 0 {
                    (of(self.softnet.0), of(self.softnet.1))
                } else {
                    (10_000 + 1000 * pick, 0)
                };
                // Before 5.10 the file ends without the CPU's number.
                let zeros = " 00000000".repeat(if self.is_old() { 8 } else { 9 });
                let number = if self.is_old() { String::new() } else { format!(" {cpu:08x}") };
                format!("{packets:08x} 00000000 {ends:08x}{zeros}{number}")
            });
            let lines: Vec<String> = lines.collect();
            tree.put(&format!("{base}{CPU}/online"), &self.online().to_string());
            tree.put(&format!("{base}/proc/net/softnet_stat"), &lines.join("\n"));
        }
    }

    fn processors(&self, tree: &mut Tree) {
        let all = format!("0-{}", self.cpus - 1);
        tree.put(&format!("{CPU}/possible"), &all);
        tree.put(&format!("{CPU}/isolated"), &self.isolated.to_string());
        tree.put(&format!("{CPU}/nohz_full"), &self.nohz_full.to_string());
        tree.put(&format!("{CPU}/smt/active"), if self.has_siblings { "1" } else { "0" });
        let nodes = if self.nodes == 1 { "0".into() } else { format!("0-{}", self.nodes - 1) };
        tree.put("/sys/devices/system/node/online", &nodes);
        for node in 0..self.nodes {
            let cpus = (0..self.cpus).filter(|cpu| self.node_of(*cpu) == node).collect();
            let path = format!("/sys/devices/system/node/node{node}/cpulist");
            tree.put(&path, &CpuList(cpus).to_string());
        }
        for cpu in self.online().0 {
            let dir = format!("{CPU}/cpu{cpu}/topology");
            let siblings = match (self.has_siblings, cpu / 2 * 2) {
                (true, first) => format!("{first}-{}", first + 1),
                _ => cpu.to_string(),
            };
            tree.put(&format!("{dir}/core_cpus_list"), &siblings);
            tree.put(&format!("{dir}/physical_package_id"), &self.node_of(cpu).to_string());
        }
    }

    fn interrupts(&self, tree: &mut Tree) {
        let online = self.online().0;
        let heads: Vec<String> = online.iter().map(|cpu| format!("CPU{cpu}")).collect();
        let mut table = format!("     {}", heads.join(" "));
        for (at, card) in self.cards.iter().enumerate() {
            for (vector, (name, queue)) in card.vectors().into_iter().enumerate() {
                let irq = Self::first_irq(at) + vector as u32;
                let cpu = card.cpu_of(queue.unwrap_or(0));
                let counts: Vec<&str> =
                    online.iter().map(|one| if *one == cpu { "9000" } else { "0" }).collect();
                let chip = card.chip();
                table += &format!("\n{irq}: {} {chip} {vector}-edge {name}", counts.join(" "));
                let dir = format!("/proc/irq/{irq}");
                tree.put(&format!("{dir}/smp_affinity_list"), &cpu.to_string());
                tree.put(&format!("{dir}/effective_affinity_list"), &cpu.to_string());
                let hint = queue.and_then(|queue| card.hint_of(queue));
                let hint = CpuList(hint.into_iter().collect()).to_mask();
                tree.put(&format!("{dir}/affinity_hint"), &hint);
                tree.put(&format!("{dir}/node"), &card.node.to_string());
            }
        }
        tree.put("/proc/interrupts", &table);
    }
}
