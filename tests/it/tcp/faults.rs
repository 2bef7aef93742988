//! What `serve tcp` and `load tcp` do when the other side dies, lies or says nothing, and under signals.

use super::*;

#[test]
fn wrong_data_are_found_with_their_offset() {
    use rxpath_load::tcp::pattern::Pattern;
    use rxpath_load::tcp::preamble::{Kind, Preamble};
    let (mut serve, addr) = server(&[]);
    let order = Preamble {
        kind: Kind::Stream,
        client_sends: true,
        verify: true,
        run: 7,
        ..Preamble::default()
    };
    let mut data = Pattern::new(100_000).unwrap().at(0, 100_000).to_vec();
    data[77_777] ^= 1;
    let mut client = TcpStream::connect(&addr).unwrap();
    client.write_all(&order.to_bytes()).unwrap();
    client.write_all(&data).unwrap();
    client.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(client.read(&mut [0]).unwrap(), 0, "the server has read all");
    serve.order("stop");
    let warning = serve.warning("payload-mismatch");
    assert!(warning["text"].as_str().unwrap().contains("offset 77777"), "{warning}");
    assert_eq!(serve.next("result")["mismatches"][0]["offset_bytes"], 77_777);
    serve.order("close");
    assert_eq!(serve.child.wait().unwrap().code(), Some(1), "a negative verdict");
}

#[test]
fn a_killed_server_ends_the_run_with_what_was_measured() {
    for args in [&["stream"][..], &["stream", "-c", "3"], &["rr"], &["rr", "-c", "3"], &["crr"]] {
        let (serve, addr) = server(&["--interval", "10ms"]);
        let mut client = Steered::start(
            &[&["load", "tcp", args[0], &addr, "--interval", "10ms"], &args[1..]].concat(),
        );
        client.next("ready");
        client.order("start 1");
        client.until(|interval| {
            interval["sent_bytes"].as_u64().unwrap() > 100_000
                || interval["transactions_total"].as_u64().unwrap() > 100
        });
        serve.signal(SIGKILL);
        let lost = client.warning("peer-lost");
        assert!(lost["text"].as_str().unwrap().contains("the server was lost"), "{lost}");
        let result = client.next("result");
        assert_eq!(result["peer_lost"], true, "{args:?}");
        assert!(result["server"].is_null() && result["duration_s"].as_f64().unwrap() > 0.0);
        client.order("close");
        assert_eq!(client.child.wait().unwrap().code(), Some(5), "{args:?}");
        let mut serve = serve;
        serve.child.wait().unwrap();
    }
}

#[test]
fn a_server_busy_with_one_client_takes_others() {
    let (mut serve, addr) = server(&["--interval", "10ms"]);
    let mut alone = Steered::start(&["load", "tcp", "rr", &addr, "--verify"]);
    alone.next("ready");
    alone.order("start 1");
    serve.until(|interval| interval["transactions_total"].as_u64().unwrap() > 1000);
    for kind in ["rr", "crr", "stream"] {
        let other = answer(&[kind, &addr, "-d", "500ms", "--verify"], 0);
        assert!(other["result"]["sent_bytes"].as_u64().unwrap() > 0, "{kind}");
    }
    let result = alone.stop();
    assert_eq!(result["errors_total"].as_object().unwrap().len(), 0, "{result}");
    assert!(result["transactions_total"].as_u64().unwrap() > 1000);
    serve.stop();
}

#[test]
fn a_killed_client_leaves_the_server_serving() {
    let (mut serve, addr) = server(&["--interval", "10ms"]);
    let mut client = Steered::start(&["load", "tcp", "rr", &addr, "-c", "10"]);
    client.next("ready");
    client.order("start 1");
    serve.until(|interval| interval["transactions_total"].as_u64().unwrap() > 100);
    client.signal(SIGKILL);
    client.child.wait().unwrap();
    serve.until(|interval| interval["connections_count"] == 0);
    let done = answer(&["rr", &addr, "-d", "500ms"], 0);
    assert!(done["result"]["transactions_total"].as_u64().unwrap() > 0);
    serve.stop();
}

#[test]
fn a_half_closed_client_in_mid_request_is_an_error_and_no_more() {
    use rxpath_load::tcp::preamble::{Kind, Preamble};
    let (serve, addr) = server(&[]);
    let order = Preamble {
        kind: Kind::Transactions,
        request_bytes: 100,
        response_bytes: 10,
        ..Preamble::default()
    };
    let mut client = TcpStream::connect(&addr).unwrap();
    client.write_all(&order.to_bytes()).unwrap();
    client.write_all(&[0; 100]).unwrap();
    let mut response = [0; 10];
    client.read_exact(&mut response).unwrap();
    client.write_all(&[0; 50]).unwrap();
    client.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(client.read(&mut response).unwrap(), 0);
    let got = serve.stop();
    assert_eq!(got["transactions_total"], 1);
    assert_eq!(got["connection_errors_total"]["EOF"], 1, "{got}");
}

#[test]
fn interrupts_print_the_result_so_far() {
    let (serve, addr) = server(&["--interval", "10ms"]);
    let (mut serve, addr) = (serve, addr);
    let mut client = Steered::start(&["load", "tcp", "stream", &addr]);
    client.next("ready");
    client.order("start 1");
    serve.until(|interval| interval["delivered_bytes"].as_u64().unwrap() > 1_000_000);
    client.signal(SIGINT);
    let result = client.next("result");
    assert!(result["delivered_bytes"].as_u64().unwrap() > 1_000_000);
    assert_eq!(client.child.wait().unwrap().code(), Some(130));
    serve.signal(SIGINT);
    assert!(serve.next("result")["delivered_bytes"].as_u64().unwrap() > 1_000_000);
    assert_eq!(serve.child.wait().unwrap().code(), Some(130));
}

#[test]
fn more_connections_than_descriptors_keep_the_server_serving() {
    // The hard limit of the server leaves room for a few connections.
    let mut serve = Command::new("sh")
        .args([
            "-c",
            "ulimit -n 40 && exec \"$0\" serve tcp 127.0.0.1:0 --control --interval 20ms",
            RXPATH,
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(serve.stdout.take().unwrap()).lines();
    let settings: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(settings["descriptors_count"], 40);
    let addr = settings["addr"].as_str().unwrap().to_owned();
    let crowd: Vec<TcpStream> = (0..60).map(|_| TcpStream::connect(&addr).unwrap()).collect();
    // It has taken as many as it can when it has no descriptor left; the next one that waits is refused.
    let held = || std::fs::read_dir(format!("/proc/{}/fd", serve.id())).unwrap().count();
    crate::http::until("full table of descriptors", || held() >= 40);
    drop(crowd);
    let done = answer(&["rr", &addr, "-d", "500ms"], 0);
    assert!(done["result"]["transactions_total"].as_u64().unwrap() > 0);
    let mut orders = serve.stdin.take().unwrap();
    writeln!(orders, "stop").unwrap();
    let result = lines
        .map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap())
        .find(|line| line["type"] == "result")
        .unwrap();
    assert!(result["accept_errors_total"]["EMFILE"].as_u64().unwrap() > 0, "{result}");
    writeln!(orders, "close").unwrap();
    assert_eq!(serve.wait().unwrap().code(), Some(0));
}
