//! The controller's decision alone, on a torus of 1,000 switches with 10,000 hosts.

use anyhow::{Context, Result, ensure};
use axon_control::controller::Controller;
use axon_fabric::assemble;
use axon_fabric::model::{End, Fabric};
use axon_wire::message::{ArpRequest, ControllerHello, Item, Peer, PortState, Role, Target};
use axon_wire::{Hops, Life, Time};
use nix::time::{ClockId, clock_gettime};
use oorandom::Rand64;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

const FABRIC: &str = "name: torus\n\
    topology: { torus: { rows: 25, cols: 40, hosts_per_switch: 10 } }\n\
    dhcp: { subnet: 10.0.0.0/8 }\n";
/// The address of the first host; it has not to be one of the subnet's pool.
const FIRST_IP: u32 = 0x0a10_0000;

/// Set-ups before the clock starts.
const WARM_UP: usize = 1000;
/// Parts of which each is timed by itself: what else runs on the machine takes caches away.
const PARTS: usize = 20;

/// Set-ups a second of one core's time.
#[derive(Clone, Copy, Debug)]
pub struct Decisions {
    /// In the best twentieth of the run.
    pub best: f64,
    /// Over all of it.
    pub mean: f64,
}

/// Set-ups a second of one core's time: an Axon-ARP request answered, both routes chosen, kept by link and
/// written into messages. Different pairs, after the switches' distances are known.
///
/// # Errors
/// The fabric cannot be built, or a request is not answered.
pub fn decisions_per_second(seed: u64, count: usize) -> Result<Decisions> {
    let fabric = axon_fabric::parse(Path::new("torus.yaml"), FABRIC).context("the torus")?;
    let mut controller = build(&fabric, seed);
    let hosts = fabric.hosts.len() as u64;
    let mut dice = Rand64::new(u128::from(seed));
    let mut seen = BTreeSet::new();
    let pairs = std::iter::repeat_with(|| (dice.rand_range(0..hosts), dice.rand_range(0..hosts)));
    let pairs = pairs.filter(|&(a, b)| a != b && seen.insert((a.min(b), a.max(b))));
    let pairs: Vec<(u64, u64)> = pairs.take(count + WARM_UP).collect();
    let (warm, timed) = pairs.split_at(WARM_UP);
    ask(&fabric, &mut controller, warm)?;
    let mut rates = Vec::new();
    for part in timed.chunks(count.div_ceil(PARTS).max(1)) {
        let started = core_seconds()?;
        ask(&fabric, &mut controller, part)?;
        rates.push(part.len() as f64 / (core_seconds()? - started));
    }
    let best = rates.iter().copied().fold(0.0, f64::max);
    let mean = rates.len() as f64 / rates.iter().map(|rate| 1.0 / rate).sum::<f64>();
    Ok(Decisions { best, mean })
}

/// The time that this thread has had a core for: what else runs on the machine does not count.
fn core_seconds() -> Result<f64> {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).context("the clock of a thread")?;
    Ok(time.tv_sec() as f64 + time.tv_nsec() as f64 * 1e-9)
}

fn ask(fabric: &Fabric, controller: &mut Controller, pairs: &[(u64, u64)]) -> Result<()> {
    let mut out = Vec::new();
    let before = controller.counters().arp_answered;
    for &(source, target) in pairs {
        let host = &fabric.hosts[source as usize];
        let request = ArpRequest {
            id: 7,
            port: host.port,
            source_mac: host.mac,
            source_ip: Some(ip(source as usize)),
            target: Target::Ip(ip(target as usize)),
        };
        controller.arp_request(Time::ZERO, life(host.switch), request, &mut out);
        std::hint::black_box(&out);
        out.clear();
    }
    let answered = controller.counters().arp_answered - before;
    ensure!(answered == pairs.len() as u64, "{answered} of {} requests answered", pairs.len());
    Ok(())
}

fn life(switch: usize) -> Life {
    Life { node: assemble::switch_id(switch), incarnation: 1 }
}

fn ip(host: usize) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from(FIRST_IP + host as u32))
}

/// A controller to which every switch has said its neighbours and its hosts.
fn build(fabric: &Fabric, seed: u64) -> Controller {
    let mut out = Vec::new();
    let mut controller = Controller::new(&assemble::controller_config(fabric, 1, seed));
    let End { switch, port } = fabric.controller.at;
    let attached = Some((assemble::switch_id(switch), port));
    controller.attached(Time::ZERO, axon_wire::PortNo(0), attached, &mut out);
    let mut ports: Vec<Vec<PortState>> = vec![Vec::new(); fabric.switches.len()];
    for link in &fabric.links {
        for (here, there) in [(link.a, link.b), (link.b, link.a)] {
            let (node, role) = (assemble::switch_id(there.switch), Role::Switch);
            let peer = Peer::Axon { node, port: there.port, role };
            ports[here.switch].push(PortState { port: here.port, peer });
        }
    }
    for (switch, ports) in ports.into_iter().enumerate() {
        let hello = ControllerHello { version: 1, nonce: 0, ports };
        controller.controller_hello(Time::ZERO, life(switch), Hops::to_control(), hello, &mut out);
    }
    for (index, host) in fabric.hosts.iter().enumerate() {
        let seen = Item::HostSeen { port: host.port, mac: host.mac, ip: Some(ip(index)) };
        controller.item(Time::ZERO, life(host.switch), seen, &mut out);
    }
    controller
}
