//! Settings of one kind in one line: `/proc/irq/{101-163}/smp_affinity_list = 0-62`.
//!
//! A NIC with hundreds of queues needs hundreds of settings that differ in a number. What is written and what JSON holds
//! names each; what people read is one line.

/// Settings that differ in one number of their name, in the order in which they came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// Their name, with the numbers in braces where there are several.
    pub name: String,
    /// Where the first stands.
    pub first: usize,
    /// How many they are.
    pub count: usize,
}

/// Neighbours whose names differ in one number, and alike in `kind`, as one.
pub fn ranges<K: PartialEq>(all: &[(String, K)]) -> Vec<Range> {
    let mut found = Vec::new();
    let mut first = 0;
    while first < all.len() {
        let (name, count) = longest(&all[first..]);
        found.push(Range { name, first, count });
        first += count;
    }
    found
}

/// The name of as many as can be one, and how many they are.
fn longest<K: PartialEq>(all: &[(String, K)]) -> (String, usize) {
    let (head, kind) = &all[0];
    // Which number of the name differs shows in the second.
    let Some((second, _)) = all.get(1).filter(|(_, other)| other == kind) else {
        return (head.clone(), 1);
    };
    let at = numbers(head).into_iter().find(|(from, to)| {
        let (before, behind) = (&head[..*from], &head[*to..]);
        // The first's own number counts too: `07` is a name, and a range without a number would never end.
        [head, second].iter().all(|name| between(name, before, behind).is_some())
    });
    let Some((from, to)) = at else { return (head.clone(), 1) };
    let (before, behind) = (&head[..from], &head[to..]);
    let same = all.iter().take_while(|(_, other)| other == kind);
    let values: Vec<u64> = same.map_while(|(name, _)| between(name, before, behind)).collect();
    (format!("{before}{{{}}}{behind}", runs(&values)), values.len())
}

/// The places of the numbers in a name: numbers that stand alone, not those of a device's name.
fn numbers(name: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut from = None;
    for (at, c) in name.char_indices().chain([(name.len(), ' ')]) {
        match (c.is_ascii_digit(), from) {
            (true, None) => from = Some(at),
            (false, Some(start)) => {
                if !name[..start].ends_with(|c: char| c.is_ascii_alphanumeric()) {
                    found.push((start, at));
                }
                from = None;
            }
            _ => {}
        }
    }
    found
}

/// The number between two parts of a name.
fn between(name: &str, before: &str, behind: &str) -> Option<u64> {
    let digits = name.strip_prefix(before)?.strip_suffix(behind)?;
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.is_empty();
    // `07` and `7` are two names.
    (plain && (digits == "0" || !digits.starts_with('0'))).then(|| digits.parse().ok())?
}

/// Numbers in their order, runs as `0-7`.
fn runs(values: &[u64]) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut at = 0;
    while at < values.len() {
        let length =
            values[at..].windows(2).take_while(|two| two[0].checked_add(1) == Some(two[1])).count();
        words.push(match length {
            0 => values[at].to_string(),
            _ => format!("{}-{}", values[at], values[at + length]),
        });
        at += length + 1;
    }
    words.join(",")
}

/// The values of settings that are one line: once when all have the same, `0-62` where they are numbers in a row, else each
/// with how often it is there.
pub fn values(all: &[&str]) -> String {
    let Some(first) = all.first() else { return String::new() };
    if all.iter().all(|value| value == first) {
        return (*first).to_owned();
    }
    let numbers: Option<Vec<u64>> = all.iter().map(|value| between(value, "", "")).collect();
    if let Some(numbers) = numbers {
        return runs(&numbers);
    }
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for value in all {
        match counts.iter_mut().find(|(known, _)| known == value) {
            Some((_, count)) => *count += 1,
            None => counts.push((value, 1)),
        }
    }
    let words = counts.iter().map(|(value, count)| match count {
        1 => (*value).to_owned(),
        count => format!("{count} x {value}"),
    });
    words.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(names: &[&str]) -> Vec<(String, usize)> {
        let all: Vec<(String, ())> = names.iter().map(|name| ((*name).into(), ())).collect();
        ranges(&all).into_iter().map(|range| (range.name, range.count)).collect()
    }

    #[test]
    fn a_first_name_whose_number_is_none_stands_alone() {
        assert_eq!(of(&["a/07", "a/8", "a/9"]), [("a/07".into(), 1), ("a/{8-9}".into(), 2)]);
    }

    #[test]
    fn settings_that_differ_in_a_number_are_one_line() {
        let names = ["/proc/irq/7/a", "/proc/irq/8/a", "/proc/irq/9/a", "/proc/irq/12/a", "x"];
        assert_eq!(of(&names), [("/proc/irq/{7-9,12}/a".into(), 4), ("x".into(), 1)]);
        let names =
            ["eth0/queues/rx-0/rps_cpus", "eth0/queues/rx-1/rps_cpus", "eth1/queues/rx-2/rps_cpus"];
        assert_eq!(
            of(&names),
            [
                ("eth0/queues/rx-{0-1}/rps_cpus".into(), 2),
                ("eth1/queues/rx-2/rps_cpus".to_owned(), 1)
            ]
        );
        assert_eq!(of(&["irq/07", "irq/8"]), [("irq/07".to_owned(), 1), ("irq/8".into(), 1)]);
    }

    #[test]
    fn what_is_not_alike_stays_apart() {
        let all = [("irq/1".to_owned(), 'a'), ("irq/2".into(), 'b'), ("irq/3".into(), 'b')];
        let counts: Vec<usize> = ranges(&all).into_iter().map(|range| range.count).collect();
        assert_eq!(counts, [1, 2]);
    }

    #[test]
    fn values_are_told_once_in_a_row_or_counted() {
        assert_eq!(values(&["0", "0", "0"]), "0");
        assert_eq!(values(&["0", "1", "2", "0", "1"]), "0-2,0-1");
        assert_eq!(values(&["ff", "0f", "ff"]), "2 x ff, 0f");
    }

    proptest! {
        /// Every setting is in one range, in order.
        #[test]
        fn nothing_is_lost(names in proptest::collection::vec("[ab]/[0-9]{1,3}/[0-9]{0,2}", 0..40)) {
            let all: Vec<(String, ())> = names.into_iter().map(|name| (name, ())).collect();
            let found = ranges(&all);
            let mut next = 0;
            for range in &found {
                prop_assert_eq!(range.first, next);
                next += range.count;
            }
            prop_assert_eq!(next, all.len());
        }
    }
}
