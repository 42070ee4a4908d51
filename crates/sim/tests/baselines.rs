//! Other networks in the same world: bridges with RSTP, PortLand, static multipath.

mod common;

use axon_control::portland::Level;
use axon_fabric::model::{Fabric, FaultKind, Network};
use axon_plane::Drop;
use axon_plane::bridge::PortState;
use axon_sim::baseline::Baseline;
use axon_sim::{PingPlan, World};
use axon_wire::{PortNo, Span, Time};
use common::{pairs, unreached};
use std::net::Ipv4Addr;

/// Long enough for every bridge's port to a host to find that it is an edge.
const ETHERNET_BOOT: Span = Span::from_secs(5);
/// Long enough for PortLand's switches to be told where they are, and the hosts to announce
/// themselves a second time.
const PORTLAND_BOOT: Span = Span::from_millis(2500);

fn fabric(network: &str, topology: &str) -> Fabric {
    let text = format!(
        "name: t\nnetwork: {network}\ntopology: {topology}\ntimers: {{heartbeat: 20ms}}\n"
    );
    axon_fabric::parse("t.yaml".as_ref(), &text).unwrap()
}

fn boot(network: &str, topology: &str, span: Span) -> World {
    let mut world = World::new(&fabric(network, topology), 1);
    assert!(world.all_have_addresses(), "fixed ones");
    world.run_for(span);
    world
}

/// Every pair of connected hosts must ping; every frame must be accounted for.
fn assert_whole(world: &mut World, tries: u16, told: &str) {
    let hosts = world.connected_hosts();
    assert!(hosts.len() > 1, "{told}");
    let silent = unreached(world, &pairs(&hosts), tries);
    let drops: Vec<_> = Drop::ALL
        .iter()
        .map(|&reason| (reason.name(), world.engine().accounts().dropped[reason as usize]))
        .filter(|&(_, count)| count > 0)
        .collect();
    assert!(silent.is_empty(), "{told}: no answer: {silent:?}; {drops:?}");
    world.engine().check_conservation().unwrap_or_else(|fault| panic!("{told}: {fault}"));
}

/// Links between bridges that forward at both ends.
fn forwarding(world: &World) -> Vec<usize> {
    let forwards = |switch: usize, port: PortNo| match world.baseline(switch) {
        Some(Baseline::Bridge(node)) => node.bridge().state(port) == PortState::Forwarding,
        _ => false,
    };
    let links = world.fabric().links.iter().enumerate();
    let open = links.filter(|(_, link)| {
        forwards(link.a.switch, link.a.port) && forwards(link.b.switch, link.b.port)
    });
    open.map(|(index, _)| index).collect()
}

/// Frames that bridges have sent and that were not their own BPDUs.
fn passed(world: &World) -> u64 {
    let switches = 0..world.fabric().switches.len();
    switches
        .filter_map(|switch| world.baseline(switch))
        .map(|node| {
            let counters = node.bank().counters();
            counters.total().tx_frames - counters.port(PortNo::CONTROL).rx_frames
        })
        .sum()
}

fn sent_by_host(world: &World, host: usize) -> u64 {
    world.engine().station(world.host_station(host)).unwrap().accounts().sent
}

#[test]
fn bridges_make_a_tree_of_any_graph_and_a_broadcast_passes_each_link_of_it_once() {
    for topology in [
        "{ring: {switches: 6}}",
        "{torus: {rows: 4, cols: 4}}",
        "{random: {switches: 12, degree: 4}}",
    ] {
        let mut world = boot("ethernet", topology, ETHERNET_BOOT);
        let (switches, hosts) = (world.fabric().switches.len(), world.fabric().hosts.len());
        assert_eq!(forwarding(&world).len(), switches - 1, "{topology}");
        // An ARP request for an address that nobody has, asked as often as the host likes.
        let (before, asked) = (passed(&world), sent_by_host(&world, 0));
        let nobody = Ipv4Addr::new(10, 0, 255, 1);
        world.ping(0, PingPlan::until_reply(nobody, Span::from_millis(100), 1)).unwrap();
        world.run_for(Span::from_millis(50));
        let asked = sent_by_host(&world, 0) - asked;
        assert!(asked > 0);
        let expected = asked * (switches - 1 + hosts - 1) as u64;
        assert_eq!(passed(&world) - before, expected, "{topology}: {asked} broadcasts");
        assert_whole(&mut world, 5, topology);
    }
}
