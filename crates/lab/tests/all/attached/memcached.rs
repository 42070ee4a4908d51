//! The cache of scenarios/agent-memcached.yaml between a real memcached and its clients.
//!
//! Hit ratios are produced by a client of ours, `memcached.py`, which follows the protocol of
//! memcached: the clients of libmemcached do not read by UDP, and its `memcaslap`, which does,
//! cannot be set to a hit ratio. Both are run, too.

use super::{agent, down, output, scenario, until, up};
use crate::support::needs;
use axon_lab::Lab;
use std::process::Stdio;

const CLIENT: &str = include_str!("memcached.py");
/// Length of a value in bytes: its answer fits one datagram of memcached, 1,400 bytes, and one
/// frame.
const VALUE_BYTES: &str = "1300";
const SERVER: &str = "h3";
/// Requests at each hit ratio.
const REQUESTS: u64 = 1000;
/// Keys that are in the cache.
const KNOWN: u64 = 100;
/// Maximum difference between the saved share of bytes and the hit ratio.
const BOUND: f64 = 0.01;

/// Load of memcaslap: keys of 16 bytes, values of 900, one `set` and 99 `get`s. It sets each key
/// once: where it overwrites, it mistakes right values for wrong ones, by TCP and without us too.
const LOAD: &str = "key\n16 16 1\nvalue\n900 900 1\ncmd\n0 0.01\n1 0.99\n";

fn client(lab: &Lab, host: &str, words: &[&str]) -> String {
    let [command, words @ ..] = words else { panic!("a command") };
    let all = [&["python3", "-c", CLIENT, command, SERVER, VALUE_BYTES], words].concat();
    output(lab, host, &all)
}

/// Bytes of replies that the switch has received from the server, and sent to client h1.
fn replies(lab: &Lab) -> [u64; 2] {
    let (fabric, status) = (lab.fabric().expect("a fabric"), lab.status().expect("a status"));
    let switch = status.iter().find_map(|node| node.status()).expect("the switch answers");
    let port = |host: usize| &switch.ports[fabric.hosts[host].port.index()].counters;
    [port(2).rx_bytes, port(0).tx_bytes]
}

/// Value of the cache's counter of this name.
fn counted(lab: &Lab, name: &str) -> u64 {
    agent(lab).counters.expect("its process answers")[name]
}

/// Sends requests with this hit ratio, in percent; returns the share of the reply bytes that the
/// server did not send.
fn saved(lab: &Lab, percent: u64) -> f64 {
    let hits = REQUESTS * percent / 100;
    let (before, counted_before) = (replies(lab), counted(lab, "hits"));
    let kinds = [format!("known*={hits}"), format!("new{percent}={}", REQUESTS - hits)];
    let again = client(lab, "h1", &["get", &kinds[0], &kinds[1]]);
    let after = replies(lab);
    let [server, client] = [0, 1].map(|end| after[end] - before[end]);
    let saved = 1.0 - server as f64 / client as f64;
    println!(
        "memcached, {REQUESTS} requests, hit ratio {percent} %: {client} bytes to the client, \
         {server} from the server, saved {:.2} %; {} repeated",
        100.0 * saved,
        again.trim()
    );
    assert_eq!(counted(lab, "hits") - counted_before, hits, "the cache's own count");
    saved
}

/// A real client of the cache: `memccp` writes a file by UDP, without waiting for answers.
fn written_by_libmemcached(lab: &Lab) {
    let script = "cd /run && python3 -c \"$0\" value h3 \"$1\" known-8 1 > known-8 && \
                  memccp --servers=h3 --udp --set known-8";
    output(lab, "h2", &["sh", "-c", script, CLIENT, VALUE_BYTES]);
    until(lab, "the cache has seen the write", || counted(lab, "invalidated") == 2);
    // Ordered after the write on the path to the server.
    client(lab, "h1", &["same", "known-8", "1"]);
}

/// A real client that sets and reads by UDP, and compares every value. Its keys have control
/// characters, which the protocol forbids and the server accepts: the cache leaves them all to the
/// server, and discards everything at each `set`.
fn load_by_libmemcached(lab: &Lab) {
    let (hits, before) = (counted(lab, "hits"), agent(lab).port_counters.expect("a port"));
    let script = format!(
        "printf '{}' > /run/load && memcaslap -s {SERVER}:11211 -U -F /run/load -T 1 -c 4 -w 1k \
         -v 1.0 -t 2s",
        LOAD.replace('\n', "\\n")
    );
    let text = output(lab, "h1", &["sh", "-c", &script]);
    let count = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
        line.and_then(|count| count.trim().parse::<u64>().ok()).unwrap_or_else(|| panic!("{text}"))
    };
    let (gets, sets) = (count("cmd_get"), count("cmd_set"));
    let after = agent(lab).port_counters.expect("a port");
    println!("memcaslap: {gets} get, {sets} set through the agent, no wrong value");
    assert!(gets > 0 && sets > 0, "{text}");
    // The last answers may arrive after its time is over.
    assert!(after.packets - before.packets >= gets + sets, "all went by the agent: {after:?}");
    assert_eq!((counted(lab, "hits"), counted(lab, "entries")), (hits, 0));
    for wrong in ["get_misses", "verify_misses", "verify_failed"] {
        assert_eq!(count(wrong), 0, "{wrong}: {text}");
    }
}

pub fn saves_what_it_answers() {
    if !needs::programs(&["memcached", "memcaslap", "memccp", "python3"]) {
        return;
    }
    let lab = up(&scenario("agent-memcached"));
    // Root of a user namespace has no other user to change to.
    let user = if needs::is_root() { "nobody" } else { "root" };
    let words = ["memcached", "-u", user, "-U", "11211", "-m", "64"];
    let mut command = lab.command("h3", &words).expect("a node");
    let mut server = command.stdin(Stdio::null()).spawn().expect("it starts");
    let known = format!("known={KNOWN}");
    let ratios = [0, 25, 50, 75, 100];
    let new = ratios.map(|percent| format!("new{percent}={REQUESTS}"));
    let new = new.iter().map(String::as_str);
    // At the server itself, so that the cache receives no write.
    client(&lab, "h3", &["fill", &known].into_iter().chain(new).collect::<Vec<_>>());
    client(&lab, "h2", &["get", &known]);
    assert_eq!((counted(&lab, "fills"), counted(&lab, "hits")), (KNOWN, 0));
    for percent in ratios {
        let saved = saved(&lab, percent);
        let asked = percent as f64 / 100.0;
        assert!((saved - asked).abs() <= BOUND, "asked {asked}, saved {saved}");
    }
    // A write by another client is detected: both get the new value, which only the server had.
    client(&lab, "h2", &["set", "known-7", "1"]);
    assert_eq!(counted(&lab, "invalidated"), 1);
    for host in ["h1", "h2"] {
        client(&lab, host, &["same", "known-7", "1"]);
    }
    written_by_libmemcached(&lab);
    load_by_libmemcached(&lab);
    down(&lab);
    server.wait().expect("it ends with the lab");
}
