//! Latency of packets that real drivers deliver in lists (`napi_gro_receive`): each is timed by its own entry.

use serde_json::Value;

use crate::reading::json;
use crate::{Machine, root, run};

#[test]
fn each_datagram_of_a_drivers_list_is_timed() {
    let script = format!("{}:/lists.sh", root().join("tests/rig/lists.sh").display());
    for driver in ["igb", "virtio_net"] {
        let nics = format!("{driver} e1000e");
        let machine = Machine {
            kernel: "6.12",
            nics: &nics,
            adds: &[&script],
            wire: true,
            ..Machine::default()
        };
        let Some(out) = run(machine, &["sh", "/lists.sh", driver]) else { return };
        let (serve, trace) = (json(&out, "serve"), json(&out, "trace"));
        let received = serve["result"]["delivered_packets"].as_u64().unwrap();
        let dropped = serve["result"]["socket_drops_packets"].as_u64().unwrap();
        assert!(received > 1_000, "{driver}: {received}");

        let rows = |list: &str| trace["result"][list].as_array().unwrap();
        let count = |row: &Value, key: &str| row[key].as_u64().unwrap();
        let polled =
            rows("napis").iter().map(|napi| (count(napi, "packets"), count(napi, "polls_count")));
        let (packets, polls) = polled.max().unwrap();
        assert!(
            packets * 10 > polls * 12,
            "{driver}: {packets} packets in {polls} polls are no lists"
        );

        let ready =
            rows("stages").iter().find(|stage| stage["stage"] == "receive-to-socket").unwrap();
        let (timed, untimed) = (count(ready, "latencies_count"), count(ready, "untimed_count"));
        assert_eq!(dropped, 0, "{driver}: a dropped datagram becomes ready for nobody");
        assert_eq!(timed + untimed, received, "{driver}: each became ready once");
        assert!(timed * 100 >= received * 95, "{driver}: {timed} of {received}");
    }
}
