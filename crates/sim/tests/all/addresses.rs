//! DHCP from the edge to the controller and back.

use crate::common::{self, assert_whole, boot, ring};
use axon_wire::Span;
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

#[test]
fn dhcp_gives_every_host_an_address_of_its_own() {
    let mut builder = ring(3, 2, false);
    let reserved = Ipv4Addr::new(10, 0, 2, 99);
    builder.fabric.dhcp.reservations.insert(common::mac(4), reserved);
    let mut world = boot(&builder);
    let addresses: BTreeSet<_> = (0..6).map(|host| world.address(host)).collect();
    assert_eq!(addresses.len(), 6, "{addresses:?}");
    assert_eq!(world.address(4), Some(reserved));
    let dhcp = &builder.fabric.dhcp;
    for host in [0, 1, 2, 3, 5] {
        let address = world.address(host).unwrap();
        assert!((dhcp.pool_first..=dhcp.pool_last).contains(&address), "{address}");
    }
    assert_whole(&mut world);
}

#[test]
fn renewals_come_back_to_the_controller_and_addresses_stay() {
    let mut builder = ring(3, 1, false);
    builder.fabric.dhcp.lease = Span::from_secs(4);
    let mut world = boot(&builder);
    assert_whole(&mut world);
    let before: Vec<_> = (0..3).map(|host| world.address(host)).collect();
    world.run_for(Span::from_secs(12));
    for (host, &address) in before.iter().enumerate() {
        assert_eq!(world.address(host), address);
        let acks = world.host(host).unwrap().dhcp_acks();
        assert!(acks >= 4, "h{}: the lease is renewed at half its time, {acks} acks", host + 1);
    }
    assert_whole(&mut world);
}
