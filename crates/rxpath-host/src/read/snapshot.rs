//! Every protocol and softnet counter at one moment, by name: the raw material of a ledger.
//!
//! Names are `Udp.RcvbufErrors`, `IpExt.InNoECTPkts`, `TcpExt.IPReversePathFilter`, `Udp6.InErrors`,
//! `softnet.cpu1.dropped`, `energy.package-0.uj`. A source that can't be read is a gap with its reason, never a row of zeros.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::Root;
use crate::parse::ParseError;
use crate::read::energy::EnergyMeter;
use crate::read::procfs::snmp::{self, SnmpCounter};
use crate::read::procfs::snmp6;
use crate::read::procfs::softnet::{self, CpuLine};
use crate::read::root::MAX_FILE_BYTES;

/// Rows of `/proc/net/snmp` that are settings and not counters (RFC 1213 has them in one table).
const SETTINGS: [(&str, &str); 6] = [
    ("Ip", "Forwarding"),
    ("Ip", "DefaultTTL"),
    ("Tcp", "RtoAlgorithm"),
    ("Tcp", "RtoMin"),
    ("Tcp", "RtoMax"),
    ("Tcp", "MaxConn"),
];

/// Counters by name and what could not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Values by name. `softnet.*` are 32-bit and wrap; `softnet.*_len` and `Tcp.CurrEstab` are levels.
    pub values: BTreeMap<String, u64>,
    /// Reason by source (`snmp`, `snmp6`, `netstat`, `softnet`, `energy`).
    pub gaps: BTreeMap<String, String>,
}

/// The counters of one network namespace, with its files held open.
///
/// `/proc/net` files belong to the namespace they were opened in (`fs/proc/proc_net.c`, `seq_open_net`), so
/// a reader that was opened inside one can be read from any thread afterwards.
///
/// **Cost** of a reading: measured 0.35 ms for all four files on a busy 2-CPU machine.
#[derive(Debug)]
pub struct Reader {
    /// A file, or why it could not be opened.
    sources: Vec<(Kind, Result<File, String>)>,
    /// An empty one where nobody asked for it.
    energy: Result<EnergyMeter, String>,
    /// CPUs online when it was opened: kernels before 5.10 don't name them in `softnet_stat`.
    online: Vec<u32>,
    buffer: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Snmp,
    Netstat,
    Snmp6,
    Softnet,
}

impl Kind {
    /// Its name and its path.
    fn file(self) -> (&'static str, &'static str) {
        match self {
            Self::Snmp => ("snmp", snmp::SNMP),
            Self::Netstat => ("netstat", snmp::NETSTAT),
            Self::Snmp6 => ("snmp6", snmp6::PATH),
            Self::Softnet => ("softnet", softnet::PATH),
        }
    }
}

impl Reader {
    /// The protocol counters of the namespace that `root` shows: `snmp`, `netstat`, `snmp6`.
    ///
    /// A file that can't be opened becomes a gap of every reading.
    pub fn protocols(root: &Root) -> Self {
        Self::open(root, &[Kind::Snmp, Kind::Netstat, Kind::Snmp6])
    }

    /// The machine's `softnet_stat` and its energy, which no namespace separates.
    pub fn machine(root: &Root) -> Self {
        Self::open(root, &[Kind::Softnet]).with_energy(root)
    }

    /// The protocol counters and `softnet_stat`.
    pub fn all(root: &Root) -> Self {
        Self::open(root, &[Kind::Snmp, Kind::Netstat, Kind::Snmp6, Kind::Softnet])
    }

    /// The machine's energy as well. Each reading then reads a register on one CPU of each package.
    #[must_use]
    pub fn with_energy(self, root: &Root) -> Self {
        let energy = EnergyMeter::open(root).map_err(|error| error.with_cause());
        Self { energy, ..self }
    }

    /// Whether it reads any energy.
    pub fn counts_energy(&self) -> bool {
        self.energy.as_ref().is_ok_and(EnergyMeter::counts)
    }

    fn open(root: &Root, kinds: &[Kind]) -> Self {
        let open = |kind: &Kind| root.open(kind.file().1).map_err(|error| error.with_cause());
        let sources = kinds.iter().map(|kind| (*kind, open(kind))).collect();
        let online = root.cpus("/sys/devices/system/cpu/online").unwrap_or_default().0;
        Self { sources, energy: Ok(EnergyMeter::default()), online, buffer: Vec::new() }
    }

    /// Reads every counter once.
    pub fn read(&mut self) -> Counters {
        let mut counters = Counters::default();
        for (kind, file) in &self.sources {
            let (name, path) = kind.file();
            let result = match file {
                Err(why) => Err(why.clone()),
                Ok(file) => whole(file, &mut self.buffer)
                    .map_err(|e| format!("cannot read {path}: {e}"))
                    .and_then(|()| {
                        let text = str::from_utf8(&self.buffer)
                            .map_err(|_| format!("{path}: not text"))?;
                        add(*kind, text, &self.online, &mut counters.values)
                            .map_err(|e| e.at(path).to_string())
                    }),
            };
            if let Err(why) = result {
                counters.gaps.insert(name.to_owned(), why);
            }
        }
        let energy = self.energy.as_mut().map_err(|why| why.clone());
        match energy.and_then(|meter| meter.read().map_err(|error| error.with_cause())) {
            Ok(used) => {
                let used = used.into_iter().map(|(zone, uj)| (format!("energy.{zone}.uj"), uj));
                counters.values.extend(used);
            }
            Err(why) => drop(counters.gaps.insert("energy".into(), why)),
        }
        counters
    }
}

/// Reads every counter of `root` once; for more than one reading keep a [`Reader`].
pub fn read(root: &Root) -> Counters {
    Reader::all(root).read()
}

/// Reads `file` from its beginning into `buffer`, keeping the buffer's memory.
fn whole(file: &File, buffer: &mut Vec<u8>) -> io::Result<()> {
    if buffer.len() < 1 << 14 {
        buffer.resize(1 << 14, 0);
    } else {
        buffer.resize(buffer.capacity(), 0);
    }
    let mut filled = 0;
    loop {
        let got = file.read_at(&mut buffer[filled..], filled as u64)?;
        filled += got;
        if got == 0 {
            buffer.truncate(filled);
            return Ok(());
        }
        if filled == buffer.len() {
            if filled as u64 >= MAX_FILE_BYTES {
                return Err(io::Error::other("larger than any such file"));
            }
            buffer.resize(filled * 2, 0);
        }
    }
}

fn add(
    kind: Kind,
    text: &str,
    online: &[u32],
    values: &mut BTreeMap<String, u64>,
) -> Result<(), ParseError> {
    match kind {
        Kind::Snmp | Kind::Netstat => insert(&snmp::parse(text)?, values),
        Kind::Snmp6 => insert(&snmp6::parse(text)?, values),
        Kind::Softnet => {
            for (cpu, line) in softnet::numbered(softnet::parse(text)?, online)? {
                softnet_line(cpu, &line, values);
            }
        }
    }
    Ok(())
}

fn insert(entries: &[SnmpCounter<'_>], values: &mut BTreeMap<String, u64>) {
    for entry in entries.iter().filter(|entry| !SETTINGS.contains(&(entry.group, entry.name))) {
        if let Ok(value) = u64::try_from(entry.value) {
            values.insert([entry.group, ".", entry.name].concat(), value);
        }
    }
}

fn softnet_line(cpu: u32, line: &CpuLine, values: &mut BTreeMap<String, u64>) {
    let mut put = |name: &str, value: Option<u32>| {
        if let Some(value) = value {
            values.insert(format!("softnet.cpu{cpu}.{name}"), u64::from(value));
        }
    };
    put("processed", Some(line.processed));
    put("dropped", Some(line.dropped));
    put("time_squeeze", Some(line.time_squeeze));
    put("received_rps", line.received_rps);
    put("flow_limit", line.flow_limit);
    put("backlog_len", line.backlog_len);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::net::UdpSocket;

    #[test]
    fn a_datagram_moves_this_hosts_counters() {
        let mut reader = Reader::all(&Root::host());
        let before = reader.read();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..10 {
            socket.send_to(b"x", socket.local_addr().unwrap()).unwrap();
        }
        let after = reader.read();
        assert!(after.values["Udp.OutDatagrams"] >= before.values["Udp.OutDatagrams"] + 10);
        assert!(after.values.contains_key("TcpExt.IPReversePathFilter"));
        assert!(after.values.contains_key("IpExt.InNoECTPkts"));
        assert!(after.values.keys().any(|name| name.starts_with("softnet.cpu")));
        assert!(!after.values.contains_key("Tcp.MaxConn"));
    }

    #[test]
    fn a_missing_or_broken_source_is_a_gap_and_not_a_zero() {
        let dir = tempfile::tempdir().unwrap();
        let net = dir.path().join("proc/net");
        fs::create_dir_all(&net).unwrap();
        fs::write(net.join("snmp"), "Udp: NoPorts\nUdp: 5\n").unwrap();
        fs::write(net.join("netstat"), "\u{0}\u{1}garbage").unwrap();
        fs::write(net.join("softnet_stat"), "1 2 3 0 0 0 0 0 0 4 5\n").unwrap();
        let counters = read(&Root::tree(dir.path()).unwrap());
        assert_eq!(
            counters.values.into_iter().collect::<Vec<_>>(),
            [("Udp.NoPorts".to_owned(), 5)]
        );
        assert!(counters.gaps["netstat"].contains("expected `Group"));
        assert!(counters.gaps["snmp6"].contains("no such file"));
        assert!(counters.gaps["softnet"].contains("1 lines for 0 online CPUs"));
    }

    #[test]
    fn energy_is_read_where_it_is_asked_for_and_a_gap_where_it_cannot_be() {
        let dir = tempfile::tempdir().unwrap();
        let zone = dir.path().join("sys/class/powercap/intel-rapl:0");
        fs::create_dir_all(&zone).unwrap();
        for (file, text) in
            [("name", "package-0"), ("energy_uj", "12"), ("max_energy_range_uj", "262143328850")]
        {
            fs::write(zone.join(file), text).unwrap();
        }
        let root = Root::tree(dir.path()).unwrap();
        assert_eq!(Reader::machine(&root).read().values["energy.package-0.uj"], 12);
        assert!(Reader::all(&root).read().values.is_empty());
        assert!(!read(&root).gaps.contains_key("energy"));
        fs::remove_file(zone.join("energy_uj")).unwrap();
        let gap = &Reader::all(&root).with_energy(&root).read().gaps["energy"];
        assert!(gap.contains("intel-rapl:0/energy_uj"), "{gap}");
    }

    #[test]
    fn a_file_larger_than_the_buffer_is_read_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        fs::write(&path, vec![b'x'; 70_000]).unwrap();
        let mut buffer = Vec::new();
        for _ in 0..2 {
            whole(&File::open(&path).unwrap(), &mut buffer).unwrap();
            assert_eq!(buffer.len(), 70_000);
        }
    }
}
