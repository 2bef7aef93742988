//! The result of a diagnosis: the limiting stage, the confidence, the evidence, the remedies.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

rxpath_core::named! {
    /// The stage that limits the rate of delivered datagrams.
    #[derive(
        Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
    )]
    #[serde(rename_all = "kebab-case")]
    pub enum Stage {
        /// The load generator: it offered less than the path can take.
        Sender => "sender",
        /// The receive path runs inside the sender's call; ticks cannot distinguish the two.
        SenderOrSoftirq => "sender or softirq",
        /// Softirq processing on one CPU.
        Softirq => "softirq",
        /// All flows land on one CPU, which is full, while others have time.
        OneCpu => "all flows on one CPU",
        /// One queue's CPU is full while others have time, and RPS is off.
        RpsMissing => "one queue, RPS off",
        /// RPS is on but useless: there is only one flow.
        RpsPointless => "one flow, RPS useless",
        /// The RPS backlog.
        Backlog => "RPS backlog",
        /// The network between two hosts.
        Network => "network",
        /// The device ring.
        Ring => "device ring",
        /// A filter that drops on purpose.
        Filter => "a filter",
        /// The device, IP or UDP rejects packets because of their length, header, route or fragments.
        Refused => "refused packets",
        /// The connection tracking table has no free entry.
        ConntrackFull => "full conntrack table",
        /// The socket's receive buffer: bursts or stalls overflow it while the reader has time left.
        SocketQueue => "socket queue",
        /// The reading application: it is busy all the time and still too slow.
        Application => "application",
        /// Several readers wait for the lock of the one socket that they share.
        SocketLock => "a shared socket's lock",
        /// One socket of a `SO_REUSEPORT` group gets more than its reader can take while others have time.
        ReuseportImbalance => "uneven SO_REUSEPORT group",
        /// The reading application has data waiting but does not get its CPU.
        ApplicationDescheduled => "application off its CPU",
        /// Softirqs take the reader's CPU: more offered load means less delivered.
        Livelock => "receive livelock",
        /// Datagrams arrive damaged.
        Checksum => "bad checksums",
        /// No socket listens on the port.
        NoListener => "no listener",
        /// TCP: the queue of connections that wait to be accepted, or of those being set up, is full.
        AcceptQueue => "TCP accept queue",
        /// TCP: the receive buffer or the socket's backlog is full.
        TcpReceive => "TCP receive buffer",
        /// TCP: a program does not read the data that waits in its connections, so their windows close.
        TcpReader => "TCP program does not read",
        /// TCP: segments are lost or reordered on the network and have to be retransmitted.
        TcpRetransmit => "TCP retransmissions",
        /// The path is fine, but a task outside the path loses CPU time to network softirqs.
        Victim => "nothing, but a task pays",
        /// The path is fine, but tick accounting shows a wrong CPU use.
        TickArtefact => "nothing, but ticks are wrong",
        /// The target rate was reached and nothing was lost.
        Nothing => "nothing",
        /// The evidence does not decide, or a newer version named a stage that this version does not know.
        #[serde(other)]
        Unknown => "undecided",
    }
    /// The stage in two or three words.
    pub fn words(self) -> &'static str
}

rxpath_core::named! {
    /// How strong the evidence is.
    #[derive(
        Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
    )]
    #[serde(rename_all = "kebab-case")]
    pub enum Confidence {
        /// Several explanations fit; the paired trial named in the verdict decides.
        Weak => "weak evidence",
        /// One explanation fits better than the others.
        Fair => "fair evidence",
        /// Counters and CPU time agree.
        Strong => "strong evidence",
    }
    /// In words, behind a verdict.
    pub fn words(self) -> &'static str
}

impl Confidence {
    /// Strong if this holds, else fair.
    pub fn strong_if(sure: bool) -> Self {
        if sure { Self::Strong } else { Self::Fair }
    }
}

/// One number behind a verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EvidenceLine {
    /// The statement with its number, unit and base.
    pub text: String,
    /// The counter or file that it came from.
    pub source: String,
}

/// The answer of the diagnosis for one trial or variant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiagnosisVerdict {
    /// The limiting stage.
    pub stage: Stage,
    /// The CPU concerned, if any.
    pub cpu: Option<u32>,
    /// The confidence.
    pub confidence: Confidence,
    /// One sentence: `the receiving application is the limit: CPU 1 is 100 % busy`.
    pub sentence: String,
    /// The evidence, strongest first.
    pub evidence: Vec<EvidenceLine>,
    /// What to change, most effective first.
    pub remedies: Vec<String>,
    /// Rules of `rxpath check` about the settings concerned; `rxpath explain ID` explains each.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub check_rules: Vec<String>,
    /// The next limit, once this one is removed.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub next: Vec<String>,
    /// The paired trial that would decide, if this one cannot.
    pub paired_trial: Option<PairedTrial>,
}

impl DiagnosisVerdict {
    /// Its sentence, with how strong the evidence is.
    pub fn headline(&self) -> String {
        format!("{} ({})", self.sentence, self.confidence.words())
    }
}

/// A second trial that distinguishes what this one cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PairedTrial {
    /// Move the receive softirq to another CPU by RPS.
    Rps,
    /// Move it into a NAPI kernel thread.
    NapiThread,
}

/// What the trials of a variant say of its limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Agreement {
    /// Trials with a verdict.
    pub trials_count: u32,
    /// Of these, the trials that name the stage of the variant's verdict.
    pub same_count: u32,
    /// The trial that speaks for them: of those that name this stage, the one whose main metric is nearest to the median
    /// of all.
    pub trial: u32,
    /// The other stages that trials name, with the number of trials.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub others: BTreeMap<Stage, u32>,
}

impl Agreement {
    /// How sure a verdict may be: `strong` needs four of five trials, `fair` more than half. One trial is not doubted.
    pub fn limit(&self, confidence: Confidence) -> Confidence {
        let most = if self.same_count * 5 >= self.trials_count * 4 {
            Confidence::Strong
        } else if self.same_count * 2 > self.trials_count {
            Confidence::Fair
        } else {
            Confidence::Weak
        };
        confidence.min(most)
    }

    /// In words: `4 of 5 trials; 1: device ring`.
    pub fn text(&self) -> String {
        let mut text = format!("{} of {} trials", self.same_count, self.trials_count);
        for (at, (stage, count)) in self.others.iter().enumerate() {
            let separator = if at == 0 { "; " } else { ", " };
            text += &format!("{separator}{count}: {}", stage.words());
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The schema lists the variants by the type: a variant missing from `ALL` would be missing from every table.
    #[test]
    fn all_has_every_stage() {
        let schema = schemars::schema_for!(Stage).to_value();
        let mut named = Vec::new();
        collect(&schema, &mut named);
        let mut all: Vec<String> = Stage::ALL.map(word).into();
        all.sort();
        named.sort();
        assert_eq!(named, all);
    }

    fn word(stage: Stage) -> String {
        serde_json::to_value(stage).unwrap().as_str().unwrap().to_owned()
    }

    fn collect(schema: &serde_json::Value, named: &mut Vec<String>) {
        let each = |key: &str| schema.get(key).and_then(|it| it.as_array()).into_iter().flatten();
        named.extend(each("enum").filter_map(|it| it.as_str()).map(str::to_owned));
        named.extend(schema.get("const").and_then(|it| it.as_str()).map(str::to_owned));
        each("oneOf").for_each(|one| collect(one, named));
    }
}
