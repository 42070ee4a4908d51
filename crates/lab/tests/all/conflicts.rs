//! Two real hosts with one address: the first holder keeps it while it answers, an alarm names
//! both, and the second host gets it as soon as the first has given it up.

use crate::support::{Pinging, Test, needs, replies, shell, state_root};
use axon_lab::{Lab, UpOptions, alarms::alarms};
use axon_node::telemetry::NodeTelemetry;
use axon_wire::MacAddr;
use std::time::{Duration, Instant};

const NAME: &str = "test-conflicts";
/// Limit of every wait.
const LIMIT: Duration = Duration::from_secs(60);
/// Address that both hosts have, outside of the pool.
const SHARED: &str = "10.0.82.100";

pub const TESTS: &[Test] = &[
    ("the_first_of_two_hosts_with_one_address_keeps_it", || held(true)),
    ("so_it_does_in_a_fabric_without_a_controller", || held(false)),
];

/// A line of three switches with a host each.
fn up(controller: bool) -> Lab {
    let alone = if controller { "" } else { "controller: { mode: static }\n" };
    let pool = if controller { "dhcp: { pool: [10.0.1.0, 10.0.1.255] }\n" } else { "" };
    let text = format!(
        "name: {NAME}\ntopology:\n  listed:\n    switches: [s1, s2, s3]\n    hosts:\n      \
         h1: {{ at: s1-p0, ip: 10.0.82.1 }}\n      h2: {{ at: s2-p0, ip: 10.0.82.2 }}\n      \
         h3: {{ at: s3-p0, ip: 10.0.82.3 }}\n    links: [[s1-p8, s2-p9], [s2-p8, s3-p9]]\n\
         {pool}{alone}"
    );
    let root = state_root();
    let path = root.with_extension("yaml");
    std::fs::write(&path, text).expect("a file");
    let (lab, report) = axon_lab::up(&path, &UpOptions::default(), |_| ()).expect("it comes up");
    assert!(report.missing.is_empty(), "without controller: {:?}", report.missing);
    lab
}

/// Sends a gratuitous ARP for the address.
fn announce(lab: &Lab, host: &str) {
    let program = format!(
        "import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW); s.bind(('{host}-p0', 0x806))
mac = s.getsockname()[4]; ip = socket.inet_aton('{SHARED}')
arp = bytes.fromhex('0806000108000604' + '0001')
s.send(b'\\xff' * 6 + mac + arp + mac + ip + bytes(6) + ip)
"
    );
    let mut command = lab.command(host, &["python3", "-c", &program]).expect("a command");
    assert!(command.status().expect("it starts").success());
}

/// Holders of the address, as reported by each node that has one.
fn owners(lab: &Lab) -> Vec<MacAddr> {
    let status = lab.status().expect("daemons answer");
    let shared: std::net::IpAddr = SHARED.parse().expect("an address");
    let hosts = status.iter().filter_map(|status| match status.node()? {
        NodeTelemetry::Controller(controller) => Some(&controller.hosts),
        NodeTelemetry::Switch(switch) => Some(&switch.alone.as_ref()?.hosts),
        _ => None,
    });
    hosts.flatten().filter(|host| host.ips.contains(&shared)).map(|host| host.mac).collect()
}

fn await_owner(lab: &Lab, mac: MacAddr) {
    let limit = Instant::now() + LIMIT;
    loop {
        let owners = owners(lab);
        if !owners.is_empty() && owners.iter().all(|&owner| owner == mac) {
            return;
        }
        assert!(Instant::now() < limit, "{owners:?} have it, not {mac}");
    }
}

/// Waits until the status has `count` lines about conflicts.
fn await_alarms(lab: &Lab, count: usize) -> String {
    let limit = Instant::now() + LIMIT;
    loop {
        let text = alarms(&lab.status().expect("daemons answer"));
        let of_conflicts = text.lines().filter(|line| line.contains("two hosts use")).count();
        if of_conflicts == count {
            return text;
        }
        assert!(Instant::now() < limit, "{count} conflicts are expected:\n{text}");
    }
}

/// Echo requests that a host has received.
fn echoed(lab: &Lab, host: &str) -> u64 {
    let line = "awk '/^Icmp:/ { for (n = 1; n <= NF; n++) { if ($n == \"InEchos\") at = n; else if \
                (at && $at + 0 == $at) { print $at; exit } } }' /proc/net/snmp";
    let text = shell(lab, host, line);
    text.trim().parse().unwrap_or_else(|_| panic!("{host}: {text:?}"))
}

/// Sets a host's kernel to keep an ARP entry reachable for at most a second and a half, and to
/// probe it a second later. The defaults add up to 50 s.
fn forget_soon(lab: &Lab, host: &str) {
    let conf = format!("/proc/sys/net/ipv4/neigh/{host}-p0");
    let [believed, asked] = ["base_reachable_time_ms", "delay_first_probe_time"];
    shell(lab, host, &format!("echo 1000 >{conf}/{believed}; echo 1 >{conf}/{asked}"));
}

fn held(controller: bool) {
    if !needs::programs(&["python3", "ping", "awk"]) {
        return;
    }
    let lab = &up(controller);
    let fabric = lab.fabric().expect("its file is there");
    let macs: Vec<MacAddr> = fabric.hosts.iter().map(|host| host.mac).collect();
    ["h1", "h2", "h3"].into_iter().for_each(|host| forget_soon(lab, host));
    shell(lab, "h2", "ping -c 1 -W 5 10.0.82.3");
    shell(lab, "h1", &format!("ip address add {SHARED}/16 dev h1-p0"));
    announce(lab, "h1");
    await_owner(lab, macs[0]);
    shell(lab, "h3", &format!("ping -c 2 -i 0.2 -W 5 {SHARED}"));
    let before = echoed(lab, "h2");
    let pinging = Pinging::start(lab, "h3", &format!("-i 0.1 {SHARED}"));
    // Host 2 announces the address, and pings with it for longer than an ARP entry stays reachable.
    shell(lab, "h2", &format!("ip address add {SHARED}/16 dev h2-p0"));
    announce(lab, "h2");
    shell(lab, "h2", &format!("ping -q -c 5 -W 1 -I {SHARED} 10.0.82.3 || true"));
    announce(lab, "h2");
    let text = await_alarms(lab, 1);
    let line = text.lines().find(|line| line.contains("two hosts use")).expect("a line");
    for part in [SHARED, "s1-p0", "s2-p0", &macs[0].to_string(), &macs[1].to_string()] {
        assert!(line.contains(part), "{part}: {line}");
    }
    let sum = pinging.end();
    let numbers = replies(&sum);
    assert_eq!(numbers, (1..=numbers.len() as u32).collect::<Vec<_>>(), "{sum}");
    assert_eq!(echoed(lab, "h2"), before, "host 2 has been sent none of these:\n{sum}");
    let entry = shell(lab, "h3", &format!("ip neighbour show {SHARED}"));
    assert!(entry.contains(&macs[0].to_string()), "{entry}");
    assert!(owners(lab).iter().all(|&owner| owner == macs[0]));

    shell(lab, "h1", &format!("ip address del {SHARED}/16 dev h1-p0"));
    announce(lab, "h2");
    let since = Instant::now();
    await_owner(lab, macs[1]);
    println!("host 2 has the address after {:?}", since.elapsed());
    await_alarms(lab, 0);
    shell(lab, "h3", &format!("ip neighbour flush dev h3-p0; ping -c 3 -i 0.2 -W 5 {SHARED}"));
    assert_eq!(echoed(lab, "h2"), before + 3);
    axon_lab::down(Some(NAME)).expect("it ends");
}
