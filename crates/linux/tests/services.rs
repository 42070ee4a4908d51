//! Addresses and settings of real hosts, in a lab: DHCP clients at the built-in server, a real DHCP
//! server behind the relay, and router advertisements for the kernel's own IPv6.
//!
//! The lab starts its parts from the program that calls it, so this test is a program of its own
//! and not run by libtest.

mod support;

use axon_linux::lab::{self, Family, Lab, UpOptions};
use axon_linux::status::NodeStatus;
use axon_node::telemetry::{ControllerTelemetry, EdgeCounters, NodeTelemetry};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use support::needs;

fn main() -> ExitCode {
    support::run(&[
        ("dhcp_clients_get_reserved_addresses_and_all_options", built_in),
        ("a_real_dhcp_server_behind_the_relay_serves_its_clients", relayed),
        ("the_kernels_of_hosts_configure_themselves_for_ipv6", advertised),
    ])
}

/// A file next to the state of the labs.
fn beside(ending: &str) -> PathBuf {
    let root = PathBuf::from(std::env::var_os(lab::STATE_VARIABLE).expect("it is set"));
    root.with_extension(ending)
}

/// Two switches and four hosts, of which two have fixed addresses.
fn up(rest: &str) -> Lab {
    let text = format!(
        "name: test-services
topology:
  listed:
    switches: [s1, s2]
    hosts:
      h1: s1
      h2: s2
      h3: {{ at: s2, ip: 10.0.77.3 }}
      h4: {{ at: s1, ip: 10.0.77.4 }}
    links: [[s1, s2]]
links: {{ rate: 100Mbps }}
{rest}
"
    );
    let path = beside("yaml");
    std::fs::write(&path, text).expect("a file");
    let options = UpOptions { bare: true, ..UpOptions::default() };
    lab::up(&path, &options, |_| ()).expect("it comes up").0
}

/// Runs a line of the shell in a node, which must succeed; returns what it prints.
fn run(lab: &Lab, node: &str, line: &str) -> String {
    let mut command = lab.command(node, &["sh", "-c", line]).expect("a command");
    let output = command.output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{node}: {line}\n{text}{errors}");
    text
}

/// Waits until a line of the shell succeeds, ten seconds at the most; returns what it prints.
fn wait(lab: &Lab, node: &str, line: &str) -> String {
    run(lab, node, &format!("for n in $(seq 200); do {line} && exit 0; sleep 0.05; done; exit 1"))
}

fn controller(lab: &Lab) -> ControllerTelemetry {
    let nodes = lab.status().expect("daemons answer");
    let of = |node: &NodeStatus| match &node.status()?.node {
        NodeTelemetry::Controller(controller) => Some((**controller).clone()),
        _ => None,
    };
    nodes.iter().find_map(of).expect("a controller")
}

fn edges(lab: &Lab) -> Vec<EdgeCounters> {
    let nodes = lab.status().expect("daemons answer");
    let of = |node: &NodeStatus| match &node.status()?.node {
        NodeTelemetry::Switch(switch) => Some(switch.edge),
        _ => None,
    };
    nodes.iter().filter_map(of).collect()
}

/// Writes the script that both clients call: it sets the address and keeps all that it was given in
/// the host's own /run.
fn script() -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let text = r#"#!/bin/sh
case "${reason:-$1}" in
BOUND | RENEW | REBIND | REBOOT | bound | renew)
    address=${new_ip_address:-$ip}
    ip address replace "$address/16" dev "$interface"
    env >/run/new
    mv /run/new "/run/lease.${reason:-$1}"
    ;;
esac
exit 0
"#;
    let path = beside("sh");
    std::fs::write(&path, text).expect("a file");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("it is ours");
    path
}

/// Starts udhcpc in a host; it stays.
fn udhcpc(lab: &Lab, host: &str) -> String {
    let script = script().display().to_string();
    let words = format!("udhcpc -b -t 10 -T 1 -O mtu -p /run/u.pid -i {host}-p0 -s {script}");
    run(
        lab,
        host,
        &format!("{words} >/run/u.log 2>&1 </dev/null || {{ cat /run/u.log; exit 1; }}"),
    );
    wait(lab, host, "cat /run/lease.bound 2>/dev/null")
}

/// Starts dhclient in a host, with this identifier; it stays.
fn dhclient(lab: &Lab, host: &str, id: &str) -> String {
    let script = script().display().to_string();
    let conf = format!(
        "initial-delay 0; timeout 10; retry 1; send dhcp-client-identifier \\\"{id}\\\"; request \
         subnet-mask, broadcast-address, routers, domain-name-servers, domain-name, interface-mtu;"
    );
    let words = format!(
        "dhclient -4 -1 -cf /run/d.conf -lf /run/d.leases -pf /run/d.pid -sf {script} {host}-p0"
    );
    run(lab, host, &format!("echo \"{conf}\" >/run/d.conf; {words} >/run/d.log 2>&1 </dev/null"));
    wait(lab, host, "cat /run/lease.BOUND 2>/dev/null")
}

/// What a client was given under a name.
fn given<'a>(lease: &'a str, name: &str) -> Option<&'a str> {
    lease.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
}

fn built_in() {
    if !needs::programs(&["udhcpc", "dhclient"]) {
        return;
    }
    let lab = up("dhcp:
  reservations: { h1: 10.0.77.50, 'id:printer': 10.0.77.51 }
  router: 10.0.77.254
  dns: [10.0.77.53, 10.0.77.54]
  domain: lab.example
  mtu: 1400
  lease: 10min");
    let one = udhcpc(&lab, "h1");
    let of_one = |name| given(&one, name).unwrap_or_else(|| panic!("no {name}: {one}"));
    assert_eq!((of_one("ip"), of_one("serverid")), ("10.0.77.50", "10.0.0.1"));
    assert_eq!((of_one("router"), of_one("dns")), ("10.0.77.254", "10.0.77.53 10.0.77.54"));
    assert_eq!((of_one("domain"), of_one("mtu"), of_one("lease")), ("lab.example", "1400", "600"));
    let two = dhclient(&lab, "h2", "printer");
    let of_two = |name| given(&two, name).unwrap_or_else(|| panic!("no {name}: {two}"));
    assert_eq!(of_two("new_ip_address"), "10.0.77.51");
    assert_eq!(of_two("new_domain_name"), "lab.example");
    assert_eq!((of_two("new_interface_mtu"), of_two("new_dhcp_renewal_time")), ("1400", "300"));
    assert_eq!(of_two("new_dhcp_rebinding_time"), "525");
    run(&lab, "h1", "ping -c 1 -W 5 10.0.77.51");
    run(&lab, "h1", "kill -USR1 $(cat /run/u.pid)");
    wait(&lab, "h1", "test -e /run/lease.renew");
    run(&lab, "h2", "dhclient -4 -r -cf /run/d.conf -lf /run/d.leases -pf /run/d.pid h2-p0");
    let mut counters = controller(&lab).dhcp;
    for _ in 0..100 {
        if counters.released == 1 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
        counters = controller(&lab).dhcp;
    }
    println!("built-in server: {counters:?}");
    assert_eq!((counters.released, counters.naks), (1, 0));
    lab::down(Some(lab.name())).expect("it ends");
}

fn relayed() {
    if !needs::programs(&["udhcpc", "dhclient", "dnsmasq", "python3"]) {
        return;
    }
    let lab = up("dhcp: { relay: h3 }");
    run(
        &lab,
        "h3",
        "dnsmasq --conf-file=/dev/null --port=0 --user=root --interface=h3-p0 --bind-interfaces \
         --dhcp-range=10.0.77.100,10.0.77.120,255.255.0.0,1h --dhcp-authoritative --no-ping \
         --dhcp-circuitid=set:first,s1-p0 --dhcp-option=tag:first,option:domain-name,first.example \
         --dhcp-host=id:printer,10.0.77.110 --dhcp-leasefile=/run/dnsmasq.leases \
         --pid-file=/run/dnsmasq.pid --log-facility=/run/dnsmasq.log --log-dhcp",
    );
    let one = udhcpc(&lab, "h1");
    let log = || run(&lab, "h3", "cat /run/dnsmasq.log");
    assert_eq!(given(&one, "domain"), Some("first.example"), "option 82: {one}\n{}", log());
    assert_eq!(given(&one, "serverid"), Some("10.0.0.1"), "it renews through the relay");
    let two = dhclient(&lab, "h2", "printer");
    assert_eq!(given(&two, "new_ip_address"), Some("10.0.77.110"), "{two}\n{}", log());
    run(&lab, "h1", "ping -c 1 -W 5 10.0.77.110");
    let before = controller(&lab).dhcp;
    run(&lab, "h1", "kill -USR1 $(cat /run/u.pid)");
    wait(&lab, "h1", "test -e /run/lease.renew");
    run(&lab, "h2", "dhclient -4 -r -cf /run/d.conf -lf /run/d.leases -pf /run/d.pid h2-p0");
    wait(&lab, "h3", "grep -q DHCPRELEASE /run/dnsmasq.log");
    // A host that plays the server: its answers end at its edge.
    let forged = "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); \
                  s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1); \
                  s.bind(('10.0.77.4', 67)); s.sendto(b'x' * 300, ('10.0.255.255', 68))";
    run(&lab, "h4", &format!("python3 -c \"{forged}\""));
    // What it sends to the relay is not the server's.
    let to_relay = forged.replace("10.0.255.255', 68", "10.0.0.1', 67").replace(
        "b'x' * 300",
        "bytes([2, 1, 6]) + bytes(21) + bytes([10, 0, 0, 1]) + bytes(208) + \
         bytes([0x63, 0x82, 0x53, 0x63, 53, 1, 2, 255])",
    );
    run(&lab, "h4", &format!("python3 -c \"{to_relay}\""));
    wait(&lab, "h4", "sleep 0.2");
    let telemetry = controller(&lab);
    let after = telemetry.dhcp;
    println!("relay: {after:?}");
    assert!(after.relayed >= before.relayed + 2 && after.returned > before.returned, "{after:?}");
    assert_eq!((after.relay_refused, after.relay_conflicts), (1, 0), "{after:?}");
    let refused: u64 = edges(&lab).iter().map(|edge| edge.dhcp_servers_refused).sum();
    assert_eq!(refused, 1);
    let address = given(&one, "ip").expect("an address").parse().expect("an address");
    assert!(telemetry.hosts.iter().any(|host| host.ips.contains(&address)), "it is learned");
    lab::down(Some(lab.name())).expect("it ends");
}

/// Switches IPv6 on at a host and waits for its address of the prefix, after duplicate address
/// detection; returns it.
fn with_ipv6(lab: &Lab, host: &str) -> String {
    run(lab, host, &format!("echo 0 > /proc/sys/net/ipv6/conf/{host}-p0/disable_ipv6"));
    let show = format!("ip -6 -o address show dev {host}-p0 scope global -tentative");
    let state = wait(lab, host, &format!("{show} | grep 2001:db8:0:1:"));
    let address = state.split_whitespace().skip_while(|word| *word != "inet6").nth(1);
    let address = address.and_then(|address| address.split('/').next());
    address.unwrap_or_else(|| panic!("no address: {state}")).into()
}

fn advertised() {
    if !needs::programs(&["tshark", "python3"]) {
        return;
    }
    let lab = up("ipv6:
  prefix: 2001:db8:0:1::/64
  router: h3
  dns: [2001:db8:0:1::53]
  domain: lab.example
  mtu: 1400
  interval: 4s");
    let own = [with_ipv6(&lab, "h1"), with_ipv6(&lab, "h2")];
    run(&lab, "h1", &format!("ping -6 -c 1 -W 5 {}", own[1]));
    // To the router, which has no address of the prefix, over its link-local one.
    let fabric = lab.fabric().expect("its file is there");
    let pairs = [(0, 1), (1, 0), (0, 2)];
    let pings = lab.ping_over(Family::V6, &fabric, &pairs, Duration::from_secs(5), || ());
    let pings = pings.expect("hosts can ping");
    assert!(pings.iter().all(|ping| ping.rtt_ns.is_some()), "{pings:?}");
    let local = axon_wire::nd::link_local(lab.fabric().expect("its file is there").hosts[2].mac);
    let default = run(&lab, "h1", "ip -6 route show default");
    assert!(default.contains(&format!("via {local} ")), "{default}");
    assert_eq!(run(&lab, "h1", "cat /proc/sys/net/ipv6/conf/h1-p0/mtu").trim(), "1400");
    // Another reader of the formats, beside the kernel.
    let filter = "icmp6 and ip6[40] == 134";
    let line = format!("timeout 30 tshark -V -l -i h1-p0 -c 1 -f '{filter}' 2>/run/t.log");
    let text = run(&lab, "h1", &line);
    for part in ["2001:db8:0:1::53", "lab.example", "2001:db8:0:1::", "1400"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("Malformed") && !text.to_lowercase().contains("bad checksum"), "{text}");
    // A host that says it is a router.
    let forged = "import socket as s; f = s.socket(s.AF_INET6, s.SOCK_RAW, 58); \
                  f.setsockopt(s.IPPROTO_IPV6, s.IPV6_MULTICAST_HOPS, 255); \
                  f.sendto(bytes([134, 0, 0, 0, 64, 0, 7, 8]) + bytes(8), \
                  ('ff02::1', 0, 0, s.if_nametoindex('h2-p0')))";
    run(&lab, "h2", &format!("python3 -c \"{forged}\""));
    wait(&lab, "h2", "sleep 0.2");
    let edges = edges(&lab);
    println!("edges: {edges:?}");
    assert_eq!(edges.iter().map(|edge| edge.advertisements_refused).sum::<u64>(), 1);
    assert!(edges.iter().all(|edge| edge.advertisements >= 3));
    assert_eq!(run(&lab, "h1", "ip -6 route show default").lines().count(), 1);
    lab::down(Some(lab.name())).expect("it ends");
}
