//! CPU lists with roles: `0,2-3`, `@receiver`, `@receiver:4`, `@sibling-of-softirq`.
//!
//! Roles name what a CPU is for and leave its number to the host, so that one file describes an
//! experiment on every machine. What each role becomes is decided in `place`.

use rxpath_core::CpuList;

use super::error::suggestion;

/// A list of CPUs, not yet of one host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CpuExpr(pub Vec<CpuItem>);

/// One part of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CpuItem {
    /// By number.
    Literal(CpuList),
    /// `@ROLE` or `@ROLE:N`: the N CPUs of that role.
    Role(Role, u32),
    /// `@RELATION-of-ROLE`: a CPU in that relation to the role's first.
    Relation(Relation, Role),
}

rxpath_core::named! {
    /// What a CPU is for.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum Role {
        /// Runs the sending thread.
        Sender => "sender",
        /// Runs the reading thread.
        Receiver => "receiver",
        /// Runs the receive softirq, by RPS or as a NAPI thread.
        Softirq => "softirq",
        /// Runs a victim, and the softirqs that are to hit it: never the sender's.
        Victim => "victim",
        /// Runs the receiver of a scenario with a victim: never the victim's.
        NextToVictim => "next-to-victim",
    }
    /// As lists name it.
    pub fn word(self) -> &'static str
}

/// How a CPU lies to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    /// The other hardware thread of its core.
    Sibling,
    /// Another core that shares its last-level cache.
    SameCache,
    /// A core of the same NUMA node with another last-level cache.
    OtherCache,
    /// A core of another NUMA node.
    OtherNode,
}

const RELATIONS: [(&str, Relation); 4] = [
    ("sibling-of", Relation::Sibling),
    ("same-cache-as", Relation::SameCache),
    ("other-cache-than", Relation::OtherCache),
    ("other-node-than", Relation::OtherNode),
];

/// More threads than this on one side are a typing error.
const MAX_ROLE_CPUS: u32 = 256;

impl CpuExpr {
    /// How many CPUs were wished for.
    pub fn wished(&self) -> usize {
        self.0
            .iter()
            .map(|item| match item {
                CpuItem::Literal(list) => list.as_slice().len(),
                CpuItem::Role(_, count) => *count as usize,
                CpuItem::Relation(..) => 1,
            })
            .sum()
    }

    /// Reads a list. The error is (what is wrong, what would be right).
    pub fn parse(text: &str) -> Result<Self, (String, String)> {
        let item = |part: &str| match part.strip_prefix('@') {
            Some(name) => role_item(name),
            None => part.parse().map(CpuItem::Literal).map_err(|_| {
                let wrong = format!("`{part}` is not a CPU list");
                (wrong, "write CPU numbers such as 0,2-3 or a role such as @receiver".into())
            }),
        };
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        parts.map(item).collect::<Result<_, _>>().map(Self)
    }
}

fn role_item(name: &str) -> Result<CpuItem, (String, String)> {
    for (word, relation) in RELATIONS {
        if let Some(role) = name.strip_prefix(word).and_then(|rest| rest.strip_prefix('-')) {
            return Ok(CpuItem::Relation(relation, role_word(role)?));
        }
    }
    let (word, count) = name.split_once(':').unwrap_or((name, "1"));
    let role = role_word(word)?;
    let count = count.parse().ok().filter(|count| (1..=MAX_ROLE_CPUS).contains(count));
    let count = count.ok_or_else(|| {
        let wrong = format!("`@{name}` does not say how many CPUs");
        (wrong, format!("write @{word}:N with N from 1 to {MAX_ROLE_CPUS}"))
    })?;
    Ok(CpuItem::Role(role, count))
}

fn role_word(word: &str) -> Result<Role, (String, String)> {
    Role::ALL.into_iter().find(|role| role.word() == word).ok_or_else(|| {
        let mut known: Vec<String> = Role::ALL.map(|role| role.word().to_owned()).into();
        for (relation, _) in RELATIONS {
            known.extend(Role::ALL.map(|role| format!("{relation}-{}", role.word())));
        }
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        (format!("`@{word}` is no CPU role"), suggestion(word, "roles", &known))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_roles_and_relations_mix() {
        let list = CpuExpr::parse("0,2-3,@receiver:4,@sibling-of-softirq").unwrap();
        assert_eq!(list.0.len(), 4);
        assert_eq!(list.wished(), 1 + 2 + 4 + 1);
        assert_eq!(list.0[3], CpuItem::Relation(Relation::Sibling, Role::Softirq));
    }

    #[test]
    fn nothing_is_the_empty_list() {
        assert_eq!(CpuExpr::parse("").unwrap(), CpuExpr::default());
    }

    #[test]
    fn a_wrong_role_is_answered_with_the_nearest() {
        let (wrong, right) = CpuExpr::parse("@reciever").unwrap_err();
        assert_eq!(wrong, "`@reciever` is no CPU role");
        assert_eq!(right, "did you mean `receiver`?");
    }

    #[test]
    fn a_count_is_a_number_from_one() {
        for text in ["@receiver:0", "@receiver:x", "@receiver:99999", "3-1", "a"] {
            assert!(CpuExpr::parse(text).is_err(), "{text}");
        }
    }
}
