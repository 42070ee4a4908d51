//! Addresses and settings of real hosts, in a lab: DHCP clients at the built-in server, a real DHCP
//! server behind the relay, and router advertisements for the kernel's own IPv6.
//!
//! The lab starts its parts from the program that calls it, so this test is a program of its own
//! and not run by libtest.

use crate::support::{Test, needs, shell, state_root};
use axon_lab::{Family, Lab, UpOptions};
use axon_linux::status::NodeStatus;
use axon_node::telemetry::{ControllerTelemetry, EdgeCounters, NodeTelemetry};
use std::path::PathBuf;
use std::time::Duration;

pub const TESTS: &[Test] = &[
    ("dhcp_clients_get_reserved_addresses_and_all_options", built_in),
    ("a_real_dhcp_server_behind_the_relay_serves_its_clients", relayed),
    ("kea_behind_the_relay_serves_its_clients", kea),
    ("addresses_of_dhcpv6_come_from_kea_and_from_dnsmasq", dhcpv6),
    ("hosts_reach_a_real_network_through_an_uplink_that_no_dhcp_passes", uplink),
    ("the_kernels_of_hosts_configure_themselves_for_ipv6", advertised),
];

/// A file next to the state of the labs.
fn beside(ending: &str) -> PathBuf {
    let root = state_root();
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
    axon_lab::up(&path, &options, |_| ()).expect("it comes up").0
}

/// Repeats a line of the shell until it succeeds, ten seconds at most; returns its output.
fn wait(lab: &Lab, node: &str, line: &str) -> String {
    shell(lab, node, &format!("for n in $(seq 200); do {line} && exit 0; sleep 0.05; done; exit 1"))
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

/// Writes the script that both clients call: it sets the address, and stores all received options
/// in the host's own /run.
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

/// Starts udhcpc in a host, where it keeps running.
fn udhcpc(lab: &Lab, host: &str) -> String {
    let script = script().display().to_string();
    let words = format!("udhcpc -b -t 10 -T 1 -O mtu -p /run/u.pid -i {host}-p0 -s {script}");
    shell(
        lab,
        host,
        &format!("{words} >/run/u.log 2>&1 </dev/null || {{ cat /run/u.log; exit 1; }}"),
    );
    wait(lab, host, "cat /run/lease.bound 2>/dev/null")
}

/// Starts dhclient in a host, with this identifier; it keeps running.
fn dhclient(lab: &Lab, host: &str, id: &str) -> String {
    let script = script().display().to_string();
    let conf = format!(
        "initial-delay 0; timeout 10; retry 1; send dhcp-client-identifier \\\"{id}\\\"; request \
         subnet-mask, broadcast-address, routers, domain-name-servers, domain-name, interface-mtu;"
    );
    let words = format!(
        "dhclient -4 -1 -cf /run/d.conf -lf /run/d.leases -pf /run/d.pid -sf {script} {host}-p0"
    );
    shell(lab, host, &format!("echo \"{conf}\" >/run/d.conf; {words} >/run/d.log 2>&1 </dev/null"));
    wait(lab, host, "cat /run/lease.BOUND 2>/dev/null")
}

/// Returns the option of this name that a client received.
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
    shell(&lab, "h1", "ping -c 1 -W 5 10.0.77.51");
    shell(&lab, "h1", "kill -USR1 $(cat /run/u.pid)");
    wait(&lab, "h1", "test -e /run/lease.renew");
    shell(&lab, "h2", "dhclient -4 -r -cf /run/d.conf -lf /run/d.leases -pf /run/d.pid h2-p0");
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
    axon_lab::down(Some(lab.name())).expect("it ends");
}

fn relayed() {
    if !needs::programs(&["udhcpc", "dhclient", "dnsmasq", "python3"]) {
        return;
    }
    let lab = up("dhcp: { relay: h3 }");
    shell(
        &lab,
        "h3",
        "dnsmasq --conf-file=/dev/null --port=0 --user=root --interface=h3-p0 --bind-interfaces \
         --dhcp-range=10.0.77.100,10.0.77.120,255.255.0.0,1h --dhcp-authoritative --no-ping \
         --dhcp-circuitid=set:first,s1-p0 --dhcp-option=tag:first,option:domain-name,first.example \
         --dhcp-host=id:printer,10.0.77.110 --dhcp-leasefile=/run/dnsmasq.leases \
         --pid-file=/run/dnsmasq.pid --log-facility=/run/dnsmasq.log --log-dhcp",
    );
    let one = udhcpc(&lab, "h1");
    let log = || shell(&lab, "h3", "cat /run/dnsmasq.log");
    assert_eq!(given(&one, "domain"), Some("first.example"), "option 82: {one}\n{}", log());
    assert_eq!(given(&one, "serverid"), Some("10.0.0.1"), "it renews through the relay");
    let two = dhclient(&lab, "h2", "printer");
    assert_eq!(given(&two, "new_ip_address"), Some("10.0.77.110"), "{two}\n{}", log());
    shell(&lab, "h1", "ping -c 1 -W 5 10.0.77.110");
    let before = controller(&lab).dhcp;
    shell(&lab, "h1", "kill -USR1 $(cat /run/u.pid)");
    wait(&lab, "h1", "test -e /run/lease.renew");
    shell(&lab, "h2", "dhclient -4 -r -cf /run/d.conf -lf /run/d.leases -pf /run/d.pid h2-p0");
    wait(&lab, "h3", "grep -q DHCPRELEASE /run/dnsmasq.log");
    // A host that acts as a server: its answers are dropped at its edge.
    let forged = "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); \
                  s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1); \
                  s.bind(('10.0.77.4', 67)); s.sendto(b'x' * 300, ('10.0.255.255', 68))";
    shell(&lab, "h4", &format!("python3 -c \"{forged}\""));
    // Its frames to the relay do not come from the server.
    let to_relay = forged.replace("10.0.255.255', 68", "10.0.0.1', 67").replace(
        "b'x' * 300",
        "bytes([2, 1, 6]) + bytes(21) + bytes([10, 0, 0, 1]) + bytes(208) + \
         bytes([0x63, 0x82, 0x53, 0x63, 53, 1, 2, 255])",
    );
    shell(&lab, "h4", &format!("python3 -c \"{to_relay}\""));
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
    axon_lab::down(Some(lab.name())).expect("it ends");
}

/// Starts a server of kea in h3 and waits until it listens.
fn start_kea(lab: &Lab, server: &str, config: &str) {
    let lines = config.replace(
        "LOG",
        &format!(
            r#""loggers": [{{ "name": "kea-{server}", "severity": "INFO",
            "output_options": [{{ "output": "/run/kea.log", "flush": true }}] }}]"#
        ),
    );
    let path = beside("json");
    std::fs::write(&path, lines).expect("a file");
    let path = path.display();
    shell(
        lab,
        "h3",
        &format!(
            "cp {path} /run/kea.json; export KEA_PIDFILE_DIR=/run KEA_LOCKFILE_DIR=/run; \
         kea-{server} -c /run/kea.json >/run/kea.out 2>&1 </dev/null & echo $! >/run/kea.pid"
        ),
    );
    wait(lab, "h3", "grep -q _STARTED /run/kea.log 2>/dev/null");
}

fn kea() {
    if !needs::programs(&["udhcpc", "dhclient", "kea-dhcp4", "python3"]) {
        return;
    }
    let lab = up("dhcp: { relay: h3 }");
    start_kea(
        &lab,
        "dhcp4",
        r#"{ "Dhcp4": {
        "interfaces-config": { "interfaces": ["h3-p0"], "dhcp-socket-type": "udp" },
        "lease-database": { "type": "memfile", "persist": false },
        "valid-lifetime": 3600,
        "client-classes": [{ "name": "first", "test": "relay4[1].hex == 's1-p0'",
            "option-data": [{ "name": "domain-name", "data": "first.example" }] }],
        "subnet4": [{ "subnet": "10.0.0.0/16",
            "pools": [{ "pool": "10.0.77.100 - 10.0.77.120" }],
            "option-data": [{ "name": "domain-name-servers", "data": "10.0.77.53" }] }],
        LOG } }"#,
    );
    let one = udhcpc(&lab, "h1");
    let log = || shell(&lab, "h3", "cat /run/kea.log /run/kea.out");
    assert_eq!(given(&one, "domain"), Some("first.example"), "option 82: {one}\n{}", log());
    assert_eq!(given(&one, "serverid"), Some("10.0.0.1"), "it renews through the relay");
    let two = dhclient(&lab, "h2", "printer");
    assert_eq!(given(&two, "new_domain_name_servers"), Some("10.0.77.53"), "{two}\n{}", log());
    let [one, two] = [given(&one, "ip"), given(&two, "new_ip_address")].map(|ip| ip.expect("one"));
    shell(&lab, "h1", &format!("ping -c 1 -W 5 {two}"));
    shell(&lab, "h1", "kill -USR1 $(cat /run/u.pid)");
    wait(&lab, "h1", "test -e /run/lease.renew");
    // A host with an address requests the other settings; the server answers to that address.
    let inform = format!(
        "import socket as s; c = s.socket(s.AF_INET, s.SOCK_DGRAM); c.settimeout(5); \
         c.setsockopt(s.SOL_SOCKET, s.SO_REUSEADDR, 1); \
         c.setsockopt(s.SOL_SOCKET, s.SO_BROADCAST, 1); c.bind(('', 68)); \
         mac = bytes.fromhex(open('/sys/class/net/h1-p0/address').read().replace(':', '')); \
         c.sendto(bytes([1, 1, 6, 0, 9, 9, 9, 9, 0, 0, 0, 0]) + s.inet_aton('{one}') + bytes(12) \
         + mac + bytes(202) + bytes([99, 130, 83, 99, 53, 1, 8, 55, 1, 6, 255]), \
         ('10.0.255.255', 67)); \
         print(c.recv(1500)[240:].hex())"
    );
    let answer = shell(&lab, "h1", &format!("python3 -c \"{inform}\""));
    assert!(answer.starts_with("350105") || answer.contains("350105"), "an ACK: {answer}");
    assert!(answer.contains("06040a004d35"), "its name server: {answer}");
    shell(&lab, "h2", "dhclient -4 -r -cf /run/d.conf -lf /run/d.leases -pf /run/d.pid h2-p0");
    wait(&lab, "h3", "grep -q DHCP4_RELEASE /run/kea.log");
    let counters = controller(&lab).dhcp;
    println!("kea: {counters:?}");
    assert_eq!((counters.released, counters.relay_conflicts), (1, 0), "{}", log());
    let third = networkd(&lab, "h2");
    assert!(third.contains(" 10.0.77.1"), "{third}\n{}", log());
    axon_lab::down(Some(lab.name())).expect("it ends");
}

/// Starts systemd-networkd in a host, without systemd; as /sys is not writable, it uses devices as
/// they are. Returns the address that it sets.
fn networkd(lab: &Lab, host: &str) -> String {
    shell(
        lab,
        host,
        &format!(
            "ip address flush dev {host}-p0; mkdir -p /run/systemd/network /run/systemd/netif; \
             chown systemd-network:systemd-network /run/systemd/netif; \
             printf '[Match]\\nName={host}-p0\\n[Network]\\nDHCP=ipv4\\nIPv6AcceptRA=no\\n\
             LinkLocalAddressing=no\\n' >/run/systemd/network/a.network; \
             mount --bind /sys /sys; mount -o remount,bind,ro /sys; \
             /lib/systemd/systemd-networkd >/run/networkd.log 2>&1 </dev/null &"
        ),
    );
    wait(lab, host, &format!("ip -4 -o address show dev {host}-p0 | grep inet"))
}

/// Starts the DHCPv6 client in a host; returns the address that it sets.
fn dhclient6(lab: &Lab, host: &str) -> String {
    let conf = "timeout 10; retry 1;";
    let script = beside("6.sh");
    let text = "#!/bin/sh\n[ -z \"$new_ip6_address\" ] || { ip -6 address replace \
                \"$new_ip6_address/128\" dev \"$interface\"; env >/run/new6; mv /run/new6 \
                /run/lease6; env >/run/lease6.$reason; }\nexit 0\n";
    std::fs::write(&script, text).expect("a file");
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).expect("it is ours");
    let script = script.display();
    shell(
        lab,
        host,
        &format!(
            "echo '{conf}' >/run/6.conf; dhclient -6 -1 -cf /run/6.conf -lf /run/6.leases -pf \
             /run/6.pid -sf {script} {host}-p0 >/run/6.log 2>&1 </dev/null || \
             {{ cat /run/6.log; exit 1; }}"
        ),
    );
    let lease = wait(lab, host, "cat /run/lease6 2>/dev/null");
    given(&lease, "new_ip6_address").unwrap_or_else(|| panic!("{lease}")).into()
}

/// Kills the controller; h2, which takes the address of h1, does not get it from the next one.
fn leases_of_dhcpv6_outlive_the_controller(lab: &Lab, address: &str) {
    shell(
        lab,
        "c1",
        "for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline 2>/dev/null | \
         grep -q 'lab-part node /run/lab c1 $' && kill -9 ${p#/proc/}; done; true",
    );
    let of_controller = |status: &NodeStatus| match &status.status()?.node {
        NodeTelemetry::Controller(controller) => Some(controller.restored),
        _ => None,
    };
    let restored = || lab.status().expect("daemons answer").iter().find_map(of_controller);
    let mut found = None;
    for _ in 0..400 {
        found = restored().filter(|restored| restored.leases >= 2);
        if found.is_some_and(|restored| restored.hosts_provisional == 0) {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(found.is_some(), "{:?}", restored());
    shell(
        lab,
        "h2",
        &format!(
            "ip -6 address add {address}/128 dev h2-p0 nodad; \
             ping -6 -c 3 -i 0.2 -W 1 -I {address} 2001:db8:0:1::9; \
             ip -6 address del {address}/128 dev h2-p0"
        ),
    );
    let fabric = lab.fabric().expect("its file is there");
    let ip: std::net::IpAddr = address.parse().expect("an address");
    let telemetry = controller(lab);
    let owners: Vec<_> =
        telemetry.hosts.iter().filter(|host| host.ips.contains(&ip)).map(|host| host.mac).collect();
    assert_eq!(owners, [fabric.hosts[0].mac], "{:?}", telemetry.counters);
    assert!(telemetry.counters.ip_refused > 0, "{:?}", telemetry.counters);
}

fn dhcpv6() {
    if !needs::programs(&["dhclient", "kea-dhcp6", "dnsmasq"]) {
        return;
    }
    let ipv6 = "ipv6:
  prefix: 2001:db8:0:1::/64
  dhcp: { relay: h3, slaac: false }
  interval: 4s";
    let lab = up(ipv6);
    for host in ["h1", "h2", "h3"] {
        shell(&lab, host, &format!("echo 0 >/proc/sys/net/ipv6/conf/{host}-p0/disable_ipv6"));
        let show = format!("ip -6 -o address show dev {host}-p0 scope link -tentative");
        wait(&lab, host, &format!("{show} | grep -q fe80"));
    }
    shell(&lab, "h3", "ip -6 address add 2001:db8:0:1::9/64 dev h3-p0 nodad");
    start_kea(
        &lab,
        "dhcp6",
        r#"{ "Dhcp6": {
        "interfaces-config": { "interfaces": ["h3-p0"] },
        "lease-database": { "type": "memfile", "persist": false },
        "server-id": { "type": "LL", "persist": false },
        "preferred-lifetime": 1800, "valid-lifetime": 3600,
        "subnet6": [{ "subnet": "2001:db8:0:1::/64",
            "pools": [{ "pool": "2001:db8:0:1::a00 - 2001:db8:0:1::aff" }],
            "option-data": [{ "name": "dns-servers", "data": "2001:db8:0:1::53" }] }],
        LOG } }"#,
    );
    let log = || shell(&lab, "h3", "cat /run/kea.log /run/kea.out");
    let own = [dhclient6(&lab, "h1"), dhclient6(&lab, "h2")];
    assert!(own.iter().all(|ip| ip.starts_with("2001:db8:0:1::a")), "{own:?}\n{}", log());
    for host in ["h1", "h2"] {
        shell(&lab, host, &format!("ip -6 route replace 2001:db8:0:1::/64 dev {host}-p0"));
    }
    shell(&lab, "h1", &format!("ping -6 -c 1 -W 5 {}", own[1]));
    let count = shell(&lab, "h1", "ip -6 -o address show scope global | wc -l");
    assert_eq!(count.trim(), "1", "no SLAAC");
    leases_of_dhcpv6_outlive_the_controller(&lab, &own[0]);
    shell(&lab, "h2", "dhclient -6 -r -cf /run/6.conf -lf /run/6.leases -pf /run/6.pid h2-p0");
    wait(&lab, "h3", "grep -q DHCP6_RELEASE_NA /run/kea.log");
    let address: std::net::IpAddr = own[0].parse().expect("an address");
    let telemetry = controller(&lab);
    println!("kea, DHCPv6: {:?}", telemetry.dhcp);
    assert!(telemetry.hosts.iter().any(|host| host.ips.contains(&address)), "it is learned");
    assert_eq!(telemetry.dhcp.released, 1);
    // The same client, served by dnsmasq instead.
    shell(
        &lab,
        "h1",
        "dhclient -6 -x -cf /run/6.conf -lf /run/6.leases -pf /run/6.pid h1-p0; \
                     rm -f /run/lease6 /run/6.leases",
    );
    shell(
        &lab,
        "h3",
        "kill $(cat /run/kea.pid); while kill -0 $(cat /run/kea.pid) 2>/dev/null; do \
                     sleep 0.05; done",
    );
    shell(
        &lab,
        "h3",
        "dnsmasq --conf-file=/dev/null --port=0 --user=root --interface=h3-p0 \
         --dhcp-range=2001:db8:0:1::b00,2001:db8:0:1::bff,64,1h --dhcp-leasefile=/run/6.leases \
         --pid-file=/run/dnsmasq.pid --log-facility=/run/dnsmasq.log --log-dhcp",
    );
    let third = dhclient6(&lab, "h1");
    assert!(third.starts_with("2001:db8:0:1::b"), "{third}");
    axon_lab::down(Some(lab.name())).expect("it ends");
}

fn uplink() {
    if !needs::programs(&["dhclient", "udhcpc", "dnsmasq", "python3"]) {
        return;
    }
    let lab = up("uplinks:
  - { name: up1, at: s2-p7, gateway: 10.0.77.254, dns: [10.0.77.253], domain: example.net }");
    // The outside: an address beyond the gateway, a name server, and a rogue DHCP server.
    shell(
        &lab,
        "up1",
        "ip address add 10.0.77.253/16 dev up1-p0; ip address add 192.0.2.1/32 dev lo; \
         dnsmasq --conf-file=/dev/null --no-resolv --no-hosts --user=root --interface=up1-p0 \
         --bind-interfaces --address=/www.example.net/192.0.2.1 \
         --dhcp-range=10.0.88.1,10.0.88.99,255.255.0.0,1h --dhcp-authoritative --no-ping \
         --dhcp-leasefile=/run/dnsmasq.leases --pid-file=/run/dnsmasq.pid \
         --log-facility=/run/dnsmasq.log --log-dhcp",
    );
    let serve = "import socket as s; l = s.create_server(('192.0.2.1', 7000)); \
                 open('/run/serves', 'w').close(); c, a = l.accept(); c.sendall(c.recv(9) + b'!')";
    shell(&lab, "up1", &format!("python3 -c \"{serve}\" >/dev/null 2>&1 </dev/null &"));
    let lease = dhclient(&lab, "h1", "one");
    let of = |name| given(&lease, name).unwrap_or_else(|| panic!("no {name}: {lease}"));
    assert_eq!((of("new_routers"), of("new_domain_name")), ("10.0.77.254", "example.net"));
    assert_eq!(of("new_domain_name_servers"), "10.0.77.253");
    assert_eq!(of("new_dhcp_server_identifier"), "10.0.0.1");
    shell(&lab, "h1", "ip route add default via 10.0.77.254");
    shell(&lab, "h1", "echo nameserver 10.0.77.253 >/etc/resolv.conf");
    assert!(shell(&lab, "h1", "getent ahostsv4 www.example.net").starts_with("192.0.2.1 "));
    shell(&lab, "h1", "ping -c 1 -W 5 192.0.2.1");
    shell(&lab, "up1", &format!("ping -c 1 -W 5 {}", of("new_ip_address")));
    wait(&lab, "up1", "test -e /run/serves");
    let connect = "import socket as s; c = s.create_connection(('www.example.net', 7000), 5); \
                   c.sendall(b'hello'); print(c.recv(9).decode())";
    assert_eq!(shell(&lab, "h1", &format!("python3 -c \"{connect}\"")).trim(), "hello!");
    // The fabric's own address answers, inside and outside, and leases nothing to the outside.
    shell(&lab, "h1", "ping -c 1 -W 5 10.0.0.1");
    shell(&lab, "up1", "ping -c 1 -W 5 10.0.0.1");
    shell(&lab, "up1", "! udhcpc -n -q -t 3 -T 1 -i up1-p0 -s /bin/true >/dev/null 2>&1");
    let asked = shell(&lab, "up1", "grep -c DHCPDISCOVER /run/dnsmasq.log; true");
    assert_eq!(asked.trim(), "0", "no request of a host comes out");
    assert_eq!(controller(&lab).dhcp.malformed, 0);
    axon_lab::down(Some(lab.name())).expect("it ends");
}

/// Switches IPv6 on at a host and waits for its address of the prefix, after duplicate address
/// detection; returns that address.
fn with_ipv6(lab: &Lab, host: &str) -> String {
    shell(lab, host, &format!("echo 0 > /proc/sys/net/ipv6/conf/{host}-p0/disable_ipv6"));
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
    shell(&lab, "h1", &format!("ping -6 -c 1 -W 5 {}", own[1]));
    // To the router, which has no address of the prefix, at its link-local one.
    let fabric = lab.fabric().expect("its file is there");
    let pairs = [(0, 1), (1, 0), (0, 2)];
    let pings = lab.ping_over(Family::V6, &fabric, &pairs, Duration::from_secs(5), || ());
    let pings = pings.expect("hosts can ping");
    assert!(pings.iter().all(|ping| ping.rtt_ns.is_some()), "{pings:?}");
    let local = axon_wire::nd::link_local(lab.fabric().expect("its file is there").hosts[2].mac);
    let default = shell(&lab, "h1", "ip -6 route show default");
    assert!(default.contains(&format!("via {local} ")), "{default}");
    assert_eq!(shell(&lab, "h1", "cat /proc/sys/net/ipv6/conf/h1-p0/mtu").trim(), "1400");
    // A second decoder of the formats, besides the kernel.
    let filter = "icmp6 and ip6[40] == 134";
    let line = format!("timeout 30 tshark -V -l -i h1-p0 -c 1 -f '{filter}' 2>/run/t.log");
    let text = shell(&lab, "h1", &line);
    for part in ["2001:db8:0:1::53", "lab.example", "2001:db8:0:1::", "1400"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("Malformed") && !text.to_lowercase().contains("bad checksum"), "{text}");
    // A host that advertises itself as a router.
    let forged = "import socket as s; f = s.socket(s.AF_INET6, s.SOCK_RAW, 58); \
                  f.setsockopt(s.IPPROTO_IPV6, s.IPV6_MULTICAST_HOPS, 255); \
                  f.sendto(bytes([134, 0, 0, 0, 64, 0, 7, 8]) + bytes(8), \
                  ('ff02::1', 0, 0, s.if_nametoindex('h2-p0')))";
    shell(&lab, "h2", &format!("python3 -c \"{forged}\""));
    wait(&lab, "h2", "sleep 0.2");
    let edges = edges(&lab);
    println!("edges: {edges:?}");
    assert_eq!(edges.iter().map(|edge| edge.advertisements_refused).sum::<u64>(), 1);
    assert!(edges.iter().all(|edge| edge.advertisements >= 3));
    assert_eq!(shell(&lab, "h1", "ip -6 route show default").lines().count(), 1);
    axon_lab::down(Some(lab.name())).expect("it ends");
}
