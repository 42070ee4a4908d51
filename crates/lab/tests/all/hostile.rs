//! One hostile host at each edge of a lab sends ARP, DHCP, LLDP, PFC and garbage at line rate: no
//! neighbour of any switch is lost, and the other hosts still reach each other.

use crate::support::{Test, part, state_root};
use axon_lab::{Lab, UpOptions};
use axon_linux::sys;
use axon_node::Drop;
use axon_node::telemetry::NodeTelemetry;
use axon_wire::link::FRAME_BYTES_MIN;
use axon_wire::mac_control::{MacControl, Pfc, Quanta};
use axon_wire::priority::PrioritySet;
use axon_wire::{MacAddr, host_frame};
use oorandom::Rand64;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Child, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// Rate of every link and of a hostile host, in bits per second.
const RATE: u64 = 20_000_000;
/// Duration of the attack.
const ATTACK: Duration = Duration::from_secs(8);
/// Preamble, FCS and gap.
const WIRE_OVERHEAD_BYTES: usize = 24;

pub const TESTS: &[Test] =
    &[("hostile_hosts_at_line_rate_take_no_neighbour_down", hostile_hosts_take_no_neighbour_down)];

/// Runs a program on a hostile host.
pub fn run_part(words: &[&str]) -> ExitCode {
    let [device] = *words else { return ExitCode::FAILURE };
    flood(device)
}

/// Frames that a hostile host repeats.
fn frames(seed: u64, own: MacAddr) -> Vec<Vec<u8>> {
    let mut random = Rand64::new(u128::from(seed));
    let mut frames = Vec::new();
    let bytes = |random: &mut Rand64, count: usize| -> Vec<u8> {
        (0..count).map(|_| random.rand_u64() as u8).collect()
    };
    let to_bridge = [1, 0x80, 0xc2, 0, 0, 0x0e];
    for number in 0..200u32 {
        let [.., a, b, c, d] = random.rand_u64().to_be_bytes();
        let mac = if number % 2 == 0 { own } else { MacAddr([2, 0x66, a, b, c, d]) };
        let ip = |random: &mut Rand64| Ipv4Addr::new(10, 0, 77, random.rand_u64() as u8);
        let (from, to) = (ip(&mut random), ip(&mut random));
        frames.push(host_frame::request(mac, from, MacAddr::BROADCAST, to));
        // An unknown client requests an address.
        frames.push(discover(MacAddr([2, 0x67, a, b, c, d]), number));
        // The ports of DHCP, followed by garbage.
        let mut dhcp = [&[0xff; 6][..], &mac.0, &[8, 0, 0x45, 0, 2, 0]].concat();
        dhcp.extend([0, 0, 0, 0, 64, 17, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 0, 68, 0, 67]);
        dhcp.extend(bytes(&mut random, 500));
        frames.push(dhcp);
        frames.push([&to_bridge[..], &mac.0, &[0x88, 0xcc], &bytes(&mut random, 200)].concat());
        frames.push([&to_bridge[..], &mac.0, &bytes(&mut random, 120)].concat());
        frames.push(MacControl::Pfc(Pfc::of(PrioritySet::ALL, Quanta::MAX)).emit(mac).to_vec());
        let length = 20 + random.rand_range(0..1400) as usize;
        frames.push(bytes(&mut random, length));
    }
    frames.iter_mut().for_each(|frame| frame.resize(frame.len().max(FRAME_BYTES_MIN), 0));
    frames
}

/// A DHCPDISCOVER of a client.
fn discover(mac: MacAddr, transaction: u32) -> Vec<u8> {
    const BYTES: u16 = 342;
    let mut frame = vec![0; usize::from(BYTES)];
    frame[..6].fill(0xff);
    frame[6..12].copy_from_slice(&mac.0);
    frame[12..14].copy_from_slice(&[8, 0]);
    let ip_bytes = (BYTES - 14).to_be_bytes();
    frame[14..18].copy_from_slice(&[0x45, 0, ip_bytes[0], ip_bytes[1]]);
    frame[22..24].copy_from_slice(&[64, 17]);
    frame[30..34].fill(0xff);
    let words = frame[14..34].chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
    let sum: u32 = words.sum();
    let checksum = !((sum >> 16) + (sum & 0xffff)) as u16;
    frame[24..26].copy_from_slice(&checksum.to_be_bytes());
    let udp_bytes = (BYTES - 34).to_be_bytes();
    frame[34..40].copy_from_slice(&[0, 68, 0, 67, udp_bytes[0], udp_bytes[1]]);
    // A request over Ethernet.
    frame[42..45].copy_from_slice(&[1, 1, 6]);
    frame[46..50].copy_from_slice(&transaction.to_be_bytes());
    frame[70..76].copy_from_slice(&mac.0);
    frame[278..282].copy_from_slice(&[99, 130, 83, 99]);
    frame[282..286].copy_from_slice(&[53, 1, 1, 255]);
    frame
}

/// Sends at line rate through a device until its standard input ends.
fn flood(device: &str) -> ExitCode {
    let own = MacAddr(sys::device_mac(device).expect("a device"));
    let frames = frames(own.0[5].into(), own);
    let socket = sys::packet_socket().expect("a socket");
    let index = nix::net::if_::if_nametoindex(device).expect("a device");
    sys::bind_packet(socket.as_fd(), index, 0).expect("it is up");
    println!("ready");
    let (began, mut bits) = (Instant::now(), 0);
    for batch in frames.chunks(16).cycle() {
        let due = Duration::from_nanos(bits * 1_000_000_000 / RATE);
        if due > ATTACK {
            return ExitCode::SUCCESS;
        }
        std::thread::sleep(due.saturating_sub(began.elapsed()));
        let batch: Vec<&[u8]> = batch.iter().map(Vec::as_slice).collect();
        // A flood fills the queue of the device.
        let _ = sys::send_many(socket.as_fd(), &batch);
        let bytes: usize = batch.iter().map(|frame| frame.len() + WIRE_OVERHEAD_BYTES).sum();
        bits += 8 * bytes as u64;
    }
    ExitCode::FAILURE
}

/// Three switches with three hosts each, of which the last is hostile. Neighbours may be silent for
/// more than a second, so that none is lost because a busy machine does not schedule its daemon.
fn fabric_file() -> PathBuf {
    let host = |n: usize| format!("      h{n}: {{ at: s{}, ip: 10.0.77.{n} }}\n", (n - 1) / 3 + 1);
    let hosts: String = (1..=9).map(host).collect();
    let text = format!(
        "name: hostile-lab\ntopology:\n  listed:\n    switches: [s1, s2, s3]\n    hosts:\n{hosts}\
         {:4}links: [[s1, s2], [s2, s3], [s3, s1]]\nlinks: {{ rate: {RATE}bps }}\n\
         timers: {{ heartbeat: 500ms }}\n",
        ""
    );
    let root = state_root();
    let path = root.with_extension("yaml");
    std::fs::write(&path, text).expect("a file");
    path
}

/// Mean time of the first ping between hosts without a route to each other, over these pairs, in
/// milliseconds.
fn set_ups(lab: &Lab, pairs: &[(usize, usize)]) -> f64 {
    let mut sum = 0.0;
    for &(from, to) in pairs {
        let line = format!("ping -c 1 -W 10 10.0.77.{to}");
        let words: Vec<&str> = line.split(' ').collect();
        let output =
            lab.command(&format!("h{from}"), &words).expect("a command").output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "h{from} to h{to}: {text}");
        let time = text.split("time=").nth(1).and_then(|rest| rest.split(' ').next());
        sum += time.and_then(|time| time.parse::<f64>().ok()).expect("a time");
    }
    sum / pairs.len() as f64
}

/// Neighbours of each node, and the number of restarts of its daemon, which would hide a loss.
fn neighbours(lab: &Lab) -> Vec<(String, usize, u32)> {
    let status = lab.status().expect("daemons answer");
    let of = |node: &axon_linux::status::NodeStatus| {
        let count = match node.node() {
            Some(NodeTelemetry::Switch(switch)) => switch.neighbours.len(),
            Some(NodeTelemetry::Controller(controller)) => controller.neighbours.len(),
            _ => 0,
        };
        (node.name().to_owned(), count, node.restarts)
    };
    status.iter().map(of).collect()
}

/// Number of switches that have refused excess control frames of a host.
fn limited(lab: &Lab) -> usize {
    let status = lab.status().expect("daemons answer");
    let limited = |status: &&axon_linux::status::NodeStatus| match status.node() {
        Some(NodeTelemetry::Switch(switch)) => switch.plane.total.dropped(Drop::PuntLimit) > 0,
        _ => false,
    };
    status.iter().filter(limited).count()
}

/// Number of lines in the daemons' logs that report a lost neighbour.
fn losses(lab: &Lab) -> usize {
    let mut count = 0;
    let mut folders = vec![lab.state().path().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.path().is_dir() {
                folders.push(entry.path());
            } else if entry.path().extension().is_some_and(|ending| ending == "log") {
                let text = std::fs::read(entry.path()).unwrap_or_default();
                count += String::from_utf8_lossy(&text).matches("NeighbourDown").count();
            }
        }
    }
    count
}

fn hostile_hosts_take_no_neighbour_down() {
    let (lab, report) =
        axon_lab::up(&fabric_file(), &UpOptions::default(), |_| ()).expect("it is up");
    assert!(report.missing.is_empty(), "without controller: {:?}", report.missing);
    let quiet = set_ups(&lab, &[(1, 4), (2, 8), (4, 7), (5, 1)]);
    let (before, lost) = (neighbours(&lab), losses(&lab));
    assert_eq!(before.iter().map(|(_, count, _)| count).sum::<usize>(), 2 * 4, "{before:?}");
    let flooder = |host: usize| -> Child {
        let words = part("hostile", [&format!("h{host}-p0")]);
        let mut command = lab.command(&format!("h{host}"), &words).expect("a command");
        command.stdout(Stdio::null()).spawn().expect("it starts")
    };
    let mut flooders: Vec<Child> = [3, 6, 9].map(flooder).into();
    let began = Instant::now();
    while limited(&lab) < 3 {
        assert!(began.elapsed() < 20 * ATTACK, "no edge cuts its host off");
        std::thread::sleep(Duration::from_millis(20));
    }
    let attacked = set_ups(&lab, &[(2, 4), (1, 8), (5, 7), (4, 1)]);
    println!(
        "set-ups: {quiet:.2} ms, under attack {attacked:.2} ms: {:.2} times",
        attacked / quiet
    );
    while flooders.iter_mut().any(|child| child.try_wait().is_ok_and(|status| status.is_none())) {
        assert!(began.elapsed() < 20 * ATTACK, "the hostile hosts do not end");
        assert_eq!(neighbours(&lab), before);
        std::thread::sleep(Duration::from_millis(100));
    }
    for mut child in flooders {
        assert!(child.wait().expect("it has ended").success());
    }
    assert_eq!((neighbours(&lab), losses(&lab)), (before, lost));
    let status = lab.status().expect("daemons answer");
    let served = |status: &axon_linux::status::NodeStatus| match status.node() {
        Some(NodeTelemetry::Controller(controller)) => {
            let dhcp = controller.dhcp;
            Some(dhcp.offers + dhcp.exhausted + dhcp.port_full + dhcp.misplaced)
        }
        _ => None,
    };
    let served: u64 = status.iter().filter_map(served).sum();
    assert!(served > 0, "no request for an address has come to the controller");
    assert_eq!(limited(&lab), 3, "each edge has cut its host off");
    axon_lab::down(Some(lab.name())).expect("it ends");
}
