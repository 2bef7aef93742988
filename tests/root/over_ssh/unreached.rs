//! Hosts that ssh does not reach or that do not let it in, by the words of the real ssh and sshd.

use std::fs;
use std::time::Instant;

use super::site;

/// Drops what comes to port 2223.
const DEAF: &str =
    "table inet t { chain c { type filter hook input priority 0; tcp dport 2223 drop; }; }";

#[test]
fn hosts_that_do_not_answer_for_10_s_and_an_sshd_that_is_full_are_named_together() {
    let Some(site) = site() else { return };
    site.filter("gen1", DEAF);
    let _mute = site.mute_port("sut", 2223);
    let _login = site.full_sshd(2224);
    site.configure_ssh(
        "Host gen1.lab sut.lab\nPort 2223\nHost full.lab\nHostName 10.78.2.2\nPort 2224\n",
    );
    let full = "[hosts.full]\nssh = \"full.lab\"\nrole = \"receiver\"\naddr = [\"10.78.3.3\"]\n";
    let inventory = site.write("unreached.toml", &(site.read_inventory() + full));
    let began = Instant::now();
    let check = site.rxpath(&["hosts", "check", &inventory]).ends(3);
    let took = began.elapsed();
    let connect = "ssh: connect to host 10.78.1.2 port 2223: Connection timed out";
    let banner = "Connection timed out during banner exchange";
    let check = check
        .warns(&format!("gen1: no answer to ssh in 10s ({connect}); try: ssh gen1.lab true\n"))
        .warns(&format!("sut: no answer to ssh in 10s ({banner}); try: ssh sut.lab true\n"))
        .warns("full: sshd refuses new connections, tried 3 times (kex_exchange_identification: ")
        .warns("MaxStartups of that sshd, or of a jump host, is too low");
    // All at once, and not for the 20 s of the user's ConnectTimeout.
    assert!((10..20).contains(&took.as_secs()), "{took:?}: {check:?}");
}

#[test]
fn keys_of_which_sshd_takes_no_more_are_named() {
    let Some(site) = site() else { return };
    // sshd takes six by default. The right one is the seventh.
    let wrong = (1..=6).map(|number| {
        let key = site.path(&format!("wrong{number}"));
        fs::copy(site.path("other_key"), &key).unwrap();
        format!("IdentityFile {key}\n")
    });
    site.configure_ssh(&format!("Host gen1.lab\n{}", wrong.collect::<String>()));
    let why = "Received disconnect from 10.78.1.2 port 22:2: Too many authentication failures";
    site.rxpath(&["hosts", "check", &site.inventory])
        .ends(3)
        .warns(&format!("gen1: ssh offered more keys than that sshd takes ({why})"))
        .warns("name the key for gen1.lab in ~/.ssh/config: IdentityFile and IdentitiesOnly yes");
}
