//! A congestion responder of the fabric file between real hosts: a host marks its datagrams with a
//! DSCP, and receives congestion notification messages at its port.

use super::{agent, down, output, up};
use crate::support::needs;
use crate::support::state_root;

/// Sends bursts of marked datagrams to h2 until a message has arrived, and prints the number of
/// messages.
const SOURCE: &str = r#"
import socket, time
seen = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.ntohs(3))
seen.settimeout(0.2)
marked = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
marked.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 0x20)
to = (socket.gethostbyname("h2"), 9)
end, cnms = time.monotonic() + 30, 0
while cnms == 0 and time.monotonic() < end:
    for _ in range(60):
        marked.sendto(bytes(1400), to)
    try:
        while True:
            cnms += b"\x22\xe7" in seen.recv(2048)[12:24]
    except TimeoutError:
        pass
print(cnms)
"#;

const FABRIC: &str = "name: agent-congestion\nprogram: bridge\n\
    topology: { listed: { switches: [s1], hosts: { h1: s1, h2: s1 }, links: [] } }\n\
    overrides: [{ between: [h2, s1], rate: 10Mbps }]\n\
    agents:\n- at: s1\n  congestion: { egress: h2, set_point: 10kB }\n  \
    select: [{ ethertype: 0x0800, bytes: [{ at: 15, value: '20', mask: 'fc' }] }]\n";

pub fn is_answered() {
    if !needs::programs(&["python3"]) {
        return;
    }
    let root = state_root();
    let folder = root.with_extension("congestion");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("fabric.yaml"), FABRIC).expect("a file");
    let lab = up(&folder.join("fabric.yaml"));
    let seen: u64 = output(&lab, "h1", &["python3", "-c", SOURCE]).trim().parse().expect("a count");
    let counters = agent(&lab).counters.expect("its process answers");
    assert!(seen > 0 && counters["cnms"] >= seen, "{seen}: {counters:?}");
    assert!(counters["samples"] >= counters["cnms"], "{counters:?}");
    let unused = ["unread", "other", "no_room"].map(|name| counters[name]);
    assert_eq!(unused, [0; 3], "{counters:?}");
    down(&lab);
    std::fs::remove_dir_all(&folder).expect("it is there");
}
