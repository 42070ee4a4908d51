//! Applications in hosts: each does what its name says, and no frame is unaccounted for.

mod common;

use axon_sim::World;
use axon_sim::apps::{
    AppId, Congestion, FlowStats, Protocol, RequestPlan, RespondPlan, TcpOptions, TcpPlan,
    Transport, UdpPlan,
};
use axon_wire::{Bytes, Span};
use common::{assert_sound, boot, line, ring};
use std::net::Ipv4Addr;

const PORT: u16 = 5001;

fn give(
    world: &mut World,
    host: usize,
    work: impl FnOnce(&mut axon_sim::host::Host, axon_wire::Time) -> AppId,
) -> AppId {
    world.give(host, work).expect("the host has power")
}

fn ip(world: &World, host: usize) -> Ipv4Addr {
    world.address(host).expect("it has an address")
}

fn stats(world: &World, host: usize, id: AppId) -> &FlowStats {
    world.flow_stats(host, id).expect("it runs")
}

#[test]
fn tcp_fills_a_gigabit_link_and_every_byte_is_right() {
    let mut world = boot(&line(2, 1, true));
    let sink = give(&mut world, 1, |host, _| host.tcp_listen(PORT, TcpOptions::default(), None));
    let plan = TcpPlan {
        target: ip(&world, 1),
        port: PORT,
        bytes: Some(10_000_000),
        options: TcpOptions::default(),
    };
    let sender = give(&mut world, 0, |host, now| host.tcp_send(plan, now));
    world.run_for(Span::from_millis(200));
    let sent = stats(&world, 0, sender);
    let received = &stats(&world, 1, sink).received;
    println!(
        "{:?} {:?} {:?} rt {}",
        sent.times.max(),
        received.goodput(),
        received.bytes,
        sent.retransmits
    );
    assert_eq!((received.bytes, received.wrong_bytes), (Bytes(10_000_000), 0));
    assert_eq!((sent.completed, sent.retransmits), (1, 0));
    assert_sound(&world);
}

#[test]
fn requests_over_tcp_and_udp_take_one_round_trip() {
    for transport in [Transport::Tcp(TcpOptions::default()), Transport::Udp] {
        let mut world = boot(&line(2, 1, true));
        let protocol = Protocol::Fixed { request: 1, response: 1 };
        let plan = RespondPlan {
            port: PORT,
            options: TcpOptions::default(),
            protocol,
            service: Span::ZERO,
        };
        let server = give(&mut world, 1, |host, _| host.respond(plan));
        let plan = RequestPlan {
            targets: vec![ip(&world, 1)],
            port: PORT,
            transport,
            request: 1,
            response: 1,
            think: Span::ZERO,
            count: Some(100),
            timeout: Span::from_millis(10),
        };
        let client = give(&mut world, 0, |host, now| host.request(plan, now));
        world.run_for(Span::from_millis(100));
        let asked = stats(&world, 0, client);
        println!("{:?} {:?} {:?}", asked.completed, asked.times.min(), asked.times.max());
        assert_eq!((asked.completed, asked.failed), (100, 0));
        assert_eq!(stats(&world, 1, server).completed, 100);
        assert_sound(&world);
    }
}
