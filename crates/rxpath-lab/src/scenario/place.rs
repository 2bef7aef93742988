//! Which CPU of this host each role gets.
//!
//! The sender takes the first core, with a network card the first one of the card's node; receiver and softirq the next two cores nearest to it (same cache,
//! then same node, then elsewhere); further receivers and senders take turns with what is left. Cores
//! come before their SMT siblings. Where CPUs run short the receivers keep apart from the sender as
//! long as they can, extra senders share the sender's CPU, and a softirq without a CPU of its own is
//! left on the sender's, where it runs on a veth without RPS. A victim takes the softirq's core or, where there are two
//! cores, the one that is not the sender's; the receiver next to it then shares the sender's.

use std::collections::BTreeSet;

use rxpath_core::{CpuList, SortFew, Warning};

use super::cpus::{CpuExpr, CpuItem, Relation, Role};
use super::host_shape::{CpuShape, HostShape};

const NO_CPU: &str = "this process may use no CPU at all";

/// Roles of one host.
pub(super) struct Places<'a> {
    pub host: &'a HostShape,
    /// Usable CPUs: one per core first, the nearest to the first core, which is near the card, first.
    pool: Vec<CpuShape>,
    /// The sender's host, where it is another one.
    pub sender: Option<Box<Places<'a>>>,
    /// Whether the hosts may be changed.
    pub may_change: bool,
    /// The hosts of the experiment, where they are known; a lab has none.
    pub aliases: Option<&'a [&'a str]>,
}

/// Why a list has no CPUs here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Misplaced {
    /// The host has no CPU in that relation: the variant cannot run here.
    NotAvailable(String),
    /// A number that cannot be used: (what is wrong, what would be right).
    Refused(String, String),
}

/// The CPUs of a list with roles on a host; nothing if it lacks one of them.
pub fn cpus_on(shape: &HostShape, list: &str) -> Option<CpuList> {
    let list = CpuExpr::parse(list).ok()?;
    Places::new(shape).place(&list, &mut Vec::new()).ok().map(CpuList)
}

impl<'a> Places<'a> {
    pub fn new(host: &'a HostShape) -> Self {
        let mut pool: Vec<CpuShape> = host.cpus.iter().filter(|cpu| cpu.allowed).copied().collect();
        pool.sort_few_by_key(|cpu| cpu.cpu);
        let is_near = |cpu: &&CpuShape| Some(cpu.node) == host.card_node;
        if let Some(first) = pool.iter().find(is_near).or(pool.first()).copied() {
            let thread = |cpu: &CpuShape| {
                pool.iter().filter(|other| other.core == cpu.core && other.cpu < cpu.cpu).count()
            };
            let far = |cpu: &CpuShape| (cpu.node != first.node, cpu.l3 != first.l3);
            let keyed = pool.iter().map(|cpu| ((thread(cpu), far(cpu), cpu.cpu), *cpu));
            let mut keyed: Vec<_> = keyed.collect();
            keyed.sort_few_by_key(|(key, _)| *key);
            pool = keyed.into_iter().map(|(_, cpu)| cpu).collect();
        }
        Self { host, pool, sender: None, may_change: false, aliases: Some(&[]) }
    }

    /// Roles of two hosts.
    pub fn between(
        sender: &'a HostShape,
        receiver: &'a HostShape,
        may_change: bool,
        aliases: Option<&'a [&'a str]>,
    ) -> Self {
        let sender = Some(Box::new(Self::new(sender)));
        Self { sender, may_change, aliases, ..Self::new(receiver) }
    }

    /// The roles of the host on which a key's threads run.
    pub fn of(&self, key: &str) -> &Self {
        self.sender.as_deref().filter(|_| key.starts_with("load.")).unwrap_or(self)
    }

    /// The CPUs of a list. What had to be shrunk or shared is added to `warnings`.
    pub fn place(
        &self,
        list: &CpuExpr,
        warnings: &mut Vec<Warning>,
    ) -> Result<Vec<u32>, Misplaced> {
        let mut cpus = Vec::new();
        for item in &list.0 {
            match item {
                CpuItem::Literal(list) => {
                    for cpu in list.as_slice() {
                        cpus.push(self.usable(*cpu)?);
                    }
                }
                CpuItem::Role(role, count) => cpus.extend(self.role(*role, *count, warnings)?),
                CpuItem::Relation(relation, role) => cpus.push(self.related(*relation, *role)?),
            }
        }
        Ok(cpus)
    }

    fn usable(&self, cpu: u32) -> Result<u32, Misplaced> {
        let wrong = match self.host.cpus.iter().find(|known| known.cpu == cpu) {
            Some(known) if known.allowed => return Ok(cpu),
            Some(_) => format!("CPU {cpu} is online but outside this process's cpuset"),
            None => format!("CPU {cpu} is not online"),
        };
        let allowed = self.host.cpus.iter().filter(|cpu| cpu.allowed);
        let allowed = CpuList(allowed.map(|cpu| cpu.cpu).collect());
        Err(Misplaced::Refused(wrong, format!("use CPUs of {allowed}")))
    }

    fn role(
        &self,
        role: Role,
        count: u32,
        warnings: &mut Vec<Warning>,
    ) -> Result<Vec<u32>, Misplaced> {
        let order = self.order(role);
        if order.is_empty() {
            let why = if role == Role::Victim && !self.pool.is_empty() {
                "this process may use one CPU: a victim needs a second one, to which the sender's softirqs are steered"
            } else {
                NO_CPU
            };
            return Err(Misplaced::NotAvailable(why.into()));
        }
        let wanted = count as usize;
        let mut got: Vec<u32> = order.iter().copied().take(wanted).collect();
        if got.len() < wanted && role == Role::Sender {
            // Load must not land on the CPU that is measured: extra senders share the first one's.
            got.resize(wanted, order[0]);
        }
        self.warn_short(role, wanted, &got, warnings);
        Ok(got)
    }

    /// CPUs in the order in which a role takes them.
    fn order(&self, role: Role) -> Vec<u32> {
        let cpu = |index: usize| self.pool.get(index).map(|cpu| cpu.cpu);
        let rest = |first: usize| (first..self.pool.len()).step_by(2).filter_map(cpu);
        match role {
            Role::Sender => cpu(0).into_iter().chain(rest(4)).collect(),
            Role::Receiver => {
                let own = cpu(1).into_iter().chain(rest(3));
                own.chain(rest(4)).chain(cpu(2)).chain(cpu(0)).collect()
            }
            Role::Softirq => (2..self.pool.len()).chain(0..2).filter_map(cpu).collect(),
            Role::Victim => (2..self.pool.len()).chain([1]).filter_map(cpu).collect(),
            Role::NextToVictim => cpu(usize::from(self.pool.len() > 2)).into_iter().collect(),
        }
    }

    fn warn_short(&self, role: Role, wanted: usize, got: &[u32], warnings: &mut Vec<Warning>) {
        let word = if role == Role::NextToVictim { "receiver" } else { role.word() };
        let cpus = CpuList(got.to_vec());
        let have = format!("this host has {} usable CPU(s)", self.pool.len());
        let sender = self.pool.first().map_or(0, |cpu| cpu.cpu);
        let distinct: BTreeSet<&u32> = got.iter().collect();
        let warning = if distinct.len() < wanted {
            format!("{wanted} {word} CPUs were wished for, the {word} threads run on CPU {cpus}")
        } else if role != Role::Sender && got.contains(&sender) && self.sender.is_none() {
            format!("no CPU is left for the {word} alone: CPU {sender} is the sender's too")
        } else {
            return;
        };
        let warning = Warning::new("cpus-short", warning)
            .because(have)
            .cure("read rates that depend on more CPUs as lower bounds");
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }

    fn related(&self, relation: Relation, role: Role) -> Result<u32, Misplaced> {
        let first = self.order(role).first().copied();
        let to = self.pool.iter().find(|cpu| Some(cpu.cpu) == first);
        let to = to.ok_or_else(|| Misplaced::NotAvailable(NO_CPU.into()))?;
        let fits = |cpu: &&CpuShape| match relation {
            Relation::Sibling => cpu.core == to.core && cpu.cpu != to.cpu,
            Relation::SameCache => cpu.core != to.core && cpu.l3 == to.l3 && cpu.node == to.node,
            Relation::OtherCache => cpu.core != to.core && cpu.l3 != to.l3 && cpu.node == to.node,
            Relation::OtherNode => cpu.node != to.node,
        };
        let sender = self.pool.first().map(|cpu| cpu.cpu);
        let found: Vec<&CpuShape> = self.pool.iter().filter(fits).collect();
        if let Some(cpu) = found.iter().find(|cpu| Some(cpu.cpu) != sender).or(found.first()) {
            return Ok(cpu.cpu);
        }
        let (cpu, node, role) = (to.cpu, to.node, role.word());
        Err(Misplaced::NotAvailable(match relation {
            Relation::Sibling => format!("CPU {cpu} ({role}) has no SMT sibling here"),
            Relation::SameCache => format!("no other core shares a cache with CPU {cpu} ({role})"),
            Relation::OtherCache => {
                format!("node {node} has one last-level cache, or its caches are not known")
            }
            Relation::OtherNode => "this host has one NUMA node".into(),
        }))
    }
}
