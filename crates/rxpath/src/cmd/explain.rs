//! `rxpath explain WORDS`: a page about a rule, setting, counter, drop reason, term, stage, experiment or exit status, and
//! about a metric of `rxpath export` by its name.
//! Works offline, and prints the same on every host.

#[cfg_attr(not(feature = "lab"), path = "agent/experiments.rs")]
mod experiments;
mod search;
mod settings;
mod topic;
mod written;

pub use topic::all as topics;

use self::search::{Fit, find, near};
use crate::cmd::prelude::*;
use crate::output::explain as print;
use crate::output::explain::topic::{Topic, TopicKind};

/// Most hits in a list; more are only counted.
const MOST: usize = 20;
/// Related topics under a page.
const RELATED: usize = 8;

/// `rxpath explain`
#[derive(Debug, clap::Args)]
pub struct ExplainCommand {
    /// A rule, sysctl, counter, ethtool name, drop reason, term, stage, experiment or `exit N`; without it, all rules
    /// are listed
    #[arg(value_name = "WORDS")]
    words: Vec<String>,
    /// List all hits, including topics whose text only mentions the words
    #[arg(long, requires = "words")]
    all: bool,
    #[command(flatten)]
    format: FormatArgs,
}

/// What a question found: the page shown, the other hits, and how many only mention the words; those are not listed.
type Answer<'a> = (Option<&'a Topic>, Vec<&'a Topic>, usize);

impl ExplainCommand {
    /// Runs it.
    pub fn run(self) -> Outcome {
        let query = self.words.join(" ");
        let is_exported = query.starts_with(topic::EXPORTED);
        let topics = if is_exported { topic::exported() } else { topic::all()? };
        if self.words.is_empty() {
            let rules: Vec<&Topic> =
                topics.iter().filter(|topic| topic.kind == TopicKind::Rule).collect();
            if self.format.is_json() {
                return json(None, &rules);
            }
            output::text(&print::list(&rules, &topics))?;
            return Ok(Exit::Done);
        }
        let (page, hits, mentions) = self.answer(&topics, &query)?;
        if self.format.is_json() {
            return json(Some(query), &page.map_or(hits, |page| vec![page]));
        }
        let mut text = page.map(print::page).unwrap_or_default();
        let most = match page {
            _ if self.all => usize::MAX,
            Some(_) => RELATED,
            None => MOST,
        };
        text += &print::hits(&hits, most, page.is_some());
        if mentions > 0 {
            text += &format!("{mentions} more mention it: --all\n");
        }
        output::text(&text)?;
        Ok(Exit::Done)
    }

    fn answer<'a>(&self, topics: &'a [Topic], query: &str) -> Result<Answer<'a>, Failure> {
        let found = find(topics, query);
        let Some((best, _)) = found.first().copied() else {
            return Err(unknown(topics, query));
        };
        // Topics with this name or about it; topics that only mention it are listed if there is nothing better.
        let least = if self.all { Fit::Mentions } else { best.min(Fit::About) };
        let shown = found.iter().filter(|(fit, _)| *fit >= least);
        let mut hits: Vec<&Topic> = shown.map(|(_, topic)| *topic).collect();
        let mentions = found.len() - hits.len();
        if best < Fit::Alias && hits.len() > 1 {
            return Ok((None, hits, mentions));
        }
        let page = hits.remove(0);
        // Topics that the page names come first.
        let named = page.see.iter().filter_map(|name| topics.iter().find(|one| one.name == *name));
        let named: Vec<&Topic> = named.collect();
        hits.retain(|hit| named.iter().all(|one| one.name != hit.name));
        Ok((Some(page), named.into_iter().chain(hits).collect(), mentions))
    }
}

fn json(query: Option<String>, shown: &[&Topic]) -> Outcome {
    let result: Vec<print::Explained<'_>> = shown.iter().map(|topic| print::of(topic)).collect();
    let settings = serde_json::json!({ "query": query });
    output::json(&Envelope::new("explain", settings, result, Vec::new()))?;
    Ok(Exit::Done)
}

/// The error, with similar names.
fn unknown(topics: &[Topic], query: &str) -> Failure {
    let near = near(topics, query);
    let hint = if near.is_empty() {
        "`rxpath explain` lists all rules; a sysctl, a counter or a word of the rule's text also finds them"
            .to_owned()
    } else {
        format!("did you mean `{}`?", near.join("` or `"))
    };
    Failure::usage(format!("explain {query}: no topic has this name")).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best(query: &str) -> Vec<String> {
        let topics = topic::all().unwrap();
        let found = find(&topics, query);
        let best = found.first().map(|(fit, _)| *fit);
        let names = found.iter().filter(|(fit, _)| Some(*fit) == best);
        names.map(|(_, topic)| topic.name.clone()).collect()
    }

    #[test]
    fn what_an_engineer_knows_is_found() {
        for (query, wanted) in [
            ("net.core.rmem_max", "rmem-max"),
            ("rmem_max", "rmem-max"),
            ("/proc/sys/net/core/rmem_max", "rmem-max"),
            ("net.core.netdev_budget", "napi-budget"),
            ("netdev_max_backlog", "backlog-max"),
            ("rp_filter", "rp-filter"),
            ("net.ipv4.conf.all.rp_filter", "rp-filter"),
            ("eth0/rings/rx", "ring-rx"),
            ("TCPBacklogDrop", "TcpExt.TCPBacklogDrop"),
            ("Udp.RcvbufErrors", "Udp.RcvbufErrors"),
            ("UdpRcvbufErrors", "Udp.RcvbufErrors"),
            ("time_squeeze", "softnet.time_squeeze"),
            ("rx-usecs", "irq-coalesce-rx-usecs"),
            ("rings rx", "ring-rx"),
            ("rps_cpus", "rps-cpus"),
            ("socket_rcvbuff", "SOCKET_RCVBUFF"),
            ("SKB_DROP_REASON_NO_SOCKET", "NO_SOCKET"),
            ("GRO", "GRO"),
            ("gro", "GRO"),
            ("irq affinity", "IRQ affinity"),
            ("irq-affinity", "irq-affinity"),
            ("rss", "RSS"),
            ("softirq", "softirq"),
            ("NAPI", "NAPI"),
            ("busy poll", "busy polling"),
            ("socket-queue", "socket-queue"),
            ("exit 4", "exit 4"),
            ("exit status 4", "exit 4"),
            ("udp-livelock", "udp-livelock"),
            ("delivered_pps", "delivered_pps"),
            ("listen-queue", "listen-queue"),
            ("stage", "stage"),
            ("stages", "stage"),
        ] {
            assert_eq!(best(query).first().map(String::as_str), Some(wanted), "{query}");
        }
        assert!(best("nosuchthing").is_empty());
    }

    #[test]
    fn every_exported_metric_has_a_page_and_nothing_else_begins_as_they_do() {
        let exported = topic::exported();
        for metric in rxpath_export::METRICS {
            let found = find(&exported, metric.name);
            let (fit, page) = found.first().unwrap();
            assert_eq!((*fit, page.name.as_str()), (Fit::Literal, metric.name));
            for label in metric.labels {
                assert!(page.parts.iter().any(|part| part.text.contains(label)), "{}", metric.name);
            }
        }
        let found = find(&exported, "rxpath_stage_latency_seconds_bucket");
        let (fit, page) = found.first().unwrap();
        assert_eq!((*fit, page.name.as_str()), (Fit::Alias, "rxpath_stage_latency_seconds"));
        let near = near(&exported, "rxpath_window_second_total");
        assert!(near.contains(&"rxpath_window_seconds_total".to_owned()), "{near:?}");
        for topic in topic::all().unwrap() {
            assert!(!topic.name.starts_with(topic::EXPORTED), "{}", topic.name);
        }
    }

    #[test]
    fn the_page_of_stages_names_all_of_them() {
        let topics = topic::all().unwrap();
        let page = topics.iter().find(|topic| topic.name == "stage").unwrap();
        for stage in topics.iter().filter(|topic| topic.kind == TopicKind::Stage) {
            let names = &page.parts[1].text;
            assert!(names.split(", ").any(|name| name == stage.name), "{}: {names}", stage.name);
        }
    }

    #[test]
    fn what_a_topic_points_at_exists_and_every_name_finds_its_topic() {
        let topics = topic::all().unwrap();
        for topic in &topics {
            for name in &topic.see {
                assert!(topics.iter().any(|one| one.name == *name), "{}: {name}", topic.name);
            }
            assert!(!topic.what.is_empty(), "{}", topic.name);
            assert!(
                topic.rule.is_some()
                    || topic.parts.len() >= 2
                    || topic.kind == TopicKind::ExitStatus
            );
            let found = find(&topics, &topic.name);
            assert!(found.iter().any(|(fit, one)| *fit == Fit::Literal && one.kind == topic.kind));
        }
        for kind in TopicKind::ALL {
            assert!(topics.iter().any(|topic| topic.kind == kind), "{kind:?}");
        }
    }

    #[test]
    fn a_slip_of_the_pen_gets_the_name_that_was_meant() {
        let topics = topic::all().unwrap();
        assert_eq!(near(&topics, "rmem_mxa").first().map(String::as_str), Some("rmem-max"));
        assert!(near(&topics, "TCPBacklogDorp").contains(&"TCPBacklogDrop".to_owned()));
        assert!(near(&topics, "zzz").is_empty());
    }
}
