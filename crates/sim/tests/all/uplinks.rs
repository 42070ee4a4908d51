//! Ports to a real network, and the addresses that hosts reach there.

use crate::common::{await_addresses, fabric};
use axon_sim::{PingPlan, World};
use axon_wire::Span;
use std::net::Ipv4Addr;

#[test]
fn hosts_get_the_gateway_as_their_router_and_reach_what_is_behind_it() {
    let fabric = fabric(
        "name: up\ntopology: {ring: {switches: 3}}\nuplinks:\n  \
         - {name: up1, at: s3-p5, gateway: 10.0.0.254, dns: [10.0.0.253], domain: example.net}\n",
    );
    let outside = Ipv4Addr::new(192, 0, 2, 1);
    let gateway = fabric.uplinks[0].host;
    let mut world = World::new(&fabric, 1);
    await_addresses(&mut world);
    assert_eq!(world.address(gateway), Some(Ipv4Addr::new(10, 0, 0, 254)));
    let hosts = (0..gateway).collect::<Vec<_>>();
    let targets = [outside, Ipv4Addr::new(10, 0, 0, 254)];
    let pings: Vec<_> = hosts
        .iter()
        .flat_map(|&host| targets.map(|target| (host, target)))
        .map(|(host, target)| {
            let plan = PingPlan::until_reply(target, Span::from_millis(100), 50);
            world.ping(host, plan).expect("the host runs")
        })
        .collect();
    world.run_for(Span::from_secs(6));
    for ping in pings {
        assert_eq!(world.ping_stats(ping).expect("it has begun").received, 1);
    }
}

#[test]
fn nobody_waits_for_a_gateway_to_have_ipv6() {
    let fabric = fabric(
        "name: up\ntopology: {ring: {switches: 3}}\nipv6: {prefix: \"fd00:10::/64\"}\nuplinks:\n  \
         - {name: up1, at: s3-p5, gateway: 10.0.0.254}\n",
    );
    let report = axon_sim::run(&fabric, axon_sim::Options::default());
    assert!(report.passed() && report.warnings.is_empty(), "{report:?}");
    let [round] = &report.rounds[..] else { panic!("{report:?}") };
    // Four hosts over IPv4, three of them over IPv6.
    assert_eq!(round.pairs, 4 * 3 + 3 * 2);
}
