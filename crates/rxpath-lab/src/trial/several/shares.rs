//! How senders and receivers share what a scenario wants of the load.

use rxpath_core::CpuList;

use crate::scenario::spec::{LoadOptions, Own};

/// The part of a total for the shares from one number up to another of so many equal ones; all parts together are the total.
/// At least one.
fn part(total: u64, [from, to]: [usize; 2], count: usize) -> u64 {
    let until = |number: usize| {
        let all = u128::from(total) * number as u128;
        all.div_ceil(count.max(1) as u128) as u64
    };
    (until(to) - until(from)).max(1)
}

/// The options of a program that has the pairs with these numbers, of so many pairs that share the rate evenly.
pub fn share(own: &Own<LoadOptions>, numbers: [usize; 2], count: usize) -> Own<LoadOptions> {
    let mut own = own.clone();
    own.options.rate = own.options.rate.map(|total| part(total, numbers, count));
    own.options.bitrate = own.options.bitrate.map(|total| part(total, numbers, count));
    own
}

/// The options of a sender's program for one of its receivers: an even part of the sender's connections, requests and
/// threads, so that all receivers get the same. Programs take turns on the CPUs where there are fewer CPUs than receivers.
pub fn for_receiver(own: &Own<LoadOptions>, receiver: usize, receivers: usize) -> Own<LoadOptions> {
    let mut own = own.clone();
    let (options, numbers) = (&mut own.options, [receiver, receiver + 1]);
    options.connections = options.connections.map(|all| part(all, numbers, receivers));
    options.requests = options.requests.map(|all| part(all, numbers, receivers));
    let cpus = std::mem::take(&mut options.cpu.0);
    let threads = options.threads.map_or(cpus.len(), |threads| threads as usize);
    let each = (threads / receivers).max(1);
    options.threads = options.threads.map(|_| each as u64);
    if !cpus.is_empty() {
        let turn = |at: usize| cpus[(at * receivers + receiver) % cpus.len()];
        options.cpu = CpuList((0..each).map(turn).collect());
    }
    own
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{HostShape, parse, resolve};

    fn load(text: &str) -> Own<LoadOptions> {
        let file = parse(&format!("question = \"q\"\n{text}"), "t", "t").unwrap();
        let resolved = resolve(&file, &[], &HostShape::flat(8)).unwrap();
        resolved.variants[0].load.own().unwrap().clone()
    }

    #[test]
    fn a_rate_is_shared_without_a_rest() {
        let rates = |text: &str| -> Vec<Option<u64>> {
            let own = load(text);
            (0..3).map(|index| share(&own, [index, index + 1], 3).options.rate).collect()
        };
        assert_eq!(rates("[load]\nrate = 10"), [Some(4), Some(3), Some(3)]);
        assert_eq!(rates(""), [None; 3]);
        let stream = load("[serve]\nprotocol = \"tcp-stream\"\n[load]\nbitrate = \"10M\"");
        let bitrate = |it| share(&stream, [it, it + 1], 3).options.bitrate;
        let all: u64 = (0..3).filter_map(bitrate).sum();
        assert_eq!(all, 10_000_000);
    }

    #[test]
    fn a_program_of_several_pairs_has_a_share_for_each() {
        let own = load("[load]\nrate = 12");
        let rates = [[0, 1], [1, 3], [3, 4]].map(|numbers| share(&own, numbers, 4).options.rate);
        assert_eq!(rates, [Some(3), Some(6), Some(3)]);
        assert_eq!(part(u64::MAX, [128, 256], 256), u64::MAX / 2, "no product overflows");
    }

    #[test]
    fn connections_and_requests_of_a_sender_are_those_of_all_its_receivers() {
        let http = "[serve]\nprotocol = \"http\"\n[load]\n";
        let of = |text: &str| -> Vec<[Option<u64>; 2]> {
            let own = load(&format!("{http}{text}"));
            let options = |it| for_receiver(&own, it, 3).options;
            (0..3).map(options).map(|it| [it.connections, it.requests]).collect()
        };
        let wanted = [[Some(4), Some(34)], [Some(3), Some(33)], [Some(3), Some(33)]];
        assert_eq!(of("connections = 10\nrequests = 100"), wanted);
        assert_eq!(of("connections = 2"), [[Some(1), None]; 3], "one each at least");
        assert_eq!(of(""), [[None; 2]; 3], "the load's own number for each");
    }

    #[test]
    fn threads_of_a_sender_are_divided_and_its_cpus_are_dealt() {
        let tcp = "[serve]\nprotocol = \"tcp-rr\"\n[load]\n";
        let of = |text: &str| -> Vec<(Option<u64>, Vec<u32>)> {
            let own = load(&format!("{tcp}{text}"));
            let options = |it| for_receiver(&own, it, 2).options;
            (0..2).map(options).map(|it| (it.threads, it.cpu.0)).collect()
        };
        assert_eq!(of("cpu = \"1-4\""), [(None, vec![1, 3]), (None, vec![2, 4])]);
        assert_eq!(of("cpu = \"1-3\""), [(None, vec![1]), (None, vec![2])], "all the same");
        assert_eq!(of("cpu = \"5\""), [(None, vec![5]), (None, vec![5])], "in turn");
        assert_eq!(of("threads = 5"), [(Some(2), vec![]), (Some(2), vec![])]);
    }
}
