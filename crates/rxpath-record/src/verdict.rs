//! What a diagnosis says: which stage limits, how sure, by what evidence, what to change.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The stage that limits the rate of delivered datagrams.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// The load generator: it offered less than the path can take.
    Sender,
    /// The receive path runs inside the sender's call and the two cannot be told apart by ticks.
    SenderOrSoftirq,
    /// Softirq processing on one CPU.
    Softirq,
    /// All flows land on one CPU, which is full, while others have time.
    OneCpu,
    /// One queue's CPU is full while others have time, and RPS is off.
    RpsMissing,
    /// RPS is on and spreads nothing: one flow.
    RpsPointless,
    /// The RPS backlog.
    Backlog,
    /// The device ring.
    Ring,
    /// A filter that drops on purpose.
    Filter,
    /// The device, IP or UDP refuses it: its length, header, route or fragments.
    Refused,
    /// Connection tracking has no room for another entry.
    ConntrackFull,
    /// The socket's receive buffer: bursts or stalls overflow it while the reader has time left.
    SocketQueue,
    /// The reading application: it is busy all the time and still too slow.
    Application,
    /// Several readers wait for the lock of the one socket that they share.
    SocketLock,
    /// One socket of a `SO_REUSEPORT` group gets more than its reader can take while others have time.
    ReuseportImbalance,
    /// The reading application has work waiting and is not given its CPU.
    ApplicationDescheduled,
    /// Softirqs take the reader's CPU: more offered load means less delivered.
    Livelock,
    /// Datagrams arrive damaged.
    Checksum,
    /// Nobody listens.
    NoListener,
    /// Of TCP: the queue of connections that wait to be accepted, or of those that are being set up.
    AcceptQueue,
    /// Of TCP: the receive buffer or the socket's backlog has no room.
    TcpReceive,
    /// Of TCP: a program does not read what waits in its connections, so that their windows close.
    TcpReader,
    /// Of TCP: segments are lost or overtaken on the network and have to be sent again.
    TcpRetransmit,
    /// The path is well, and a task that is no part of it loses its CPU to network softirqs.
    Victim,
    /// The path is well, and tick accounting shows another CPU use than there is.
    TickArtefact,
    /// The asked rate was reached and nothing was lost.
    Nothing,
    /// The evidence does not decide; or a newer version named a stage that this one does not know.
    #[serde(other)]
    Unknown,
}

impl Stage {
    /// Every stage, in the order of the way.
    pub const ALL: [Self; 27] = [
        Self::Sender,
        Self::SenderOrSoftirq,
        Self::Softirq,
        Self::OneCpu,
        Self::RpsMissing,
        Self::RpsPointless,
        Self::Backlog,
        Self::Ring,
        Self::Filter,
        Self::Refused,
        Self::ConntrackFull,
        Self::SocketQueue,
        Self::Application,
        Self::SocketLock,
        Self::ReuseportImbalance,
        Self::ApplicationDescheduled,
        Self::Livelock,
        Self::Checksum,
        Self::NoListener,
        Self::AcceptQueue,
        Self::TcpReceive,
        Self::TcpReader,
        Self::TcpRetransmit,
        Self::Victim,
        Self::TickArtefact,
        Self::Nothing,
        Self::Unknown,
    ];
}

/// How far the evidence carries.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// Several readings fit; the paired trial named in the verdict decides.
    Weak,
    /// One reading fits better than the others.
    Fair,
    /// Counters and CPU time say the same.
    Strong,
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
pub struct Verdict {
    /// The limiting stage.
    pub stage: Stage,
    /// The CPU concerned, where one is.
    pub cpu: Option<u32>,
    /// How sure.
    pub confidence: Confidence,
    /// One sentence: `the receiving application is the limit: CPU 1 is 100 % busy`.
    pub sentence: String,
    /// What it rests on, strongest first.
    pub evidence: Vec<EvidenceLine>,
    /// What to change, most effective first.
    pub remedies: Vec<String>,
    /// Rules of `rxpath check` about the settings concerned; `rxpath explain ID` tells of each.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub check_rules: Vec<String>,
    /// What would limit next, once this limit is gone.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub next: Vec<String>,
    /// The paired trial that would decide, when this one cannot.
    pub paired_trial: Option<PairedTrial>,
}

/// A second trial that tells apart what this one cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PairedTrial {
    /// Move the receive softirq to another CPU by RPS.
    Rps,
    /// Move it into a NAPI kernel thread.
    NapiThread,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The schema lists the variants by the type: one that `ALL` lacks would be left out of every table.
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
