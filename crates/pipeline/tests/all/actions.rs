//! Actions of entries on frames.

use crate::rig::{Fate, IPV4, MPLS, Rig, checksum, frame, mac, packet};
use axon_node::{Drop, Input, Node};
use axon_pipeline::{
    Action, Change, Field, FrameType, Group, Interface, Label, MacKey, Mirror, Modify, PortOptions,
    Prefix, Sizes, Target, TcamEntry, Tunnel, Udlk, UdlkId,
};
use axon_wire::{PortNo, Time};
use std::net::Ipv4Addr;

fn to_port(port: u16) -> Action {
    Action::from(Target::Port(PortNo(port)))
}

fn bytes(first: u8, last: u8) -> Field {
    Field::Bytes { first, last }
}

fn tcam(index: u16, udlk: u8, value: &[u8], mask: &[u8], action: Action) -> Change {
    let (value, mask) = (value.to_vec(), mask.to_vec());
    Change::Tcam(index, Some(TcamEntry { udlk: UdlkId(udlk), value, mask, action }))
}

fn interface(number: u16, port: u16) -> Change {
    Change::Interface(number, Some(Interface::of(PortNo(port))))
}

fn to(address: [u8; 4]) -> Vec<u8> {
    frame(mac(2), mac(1), IPV4, &packet(64, address))
}

#[test]
fn tcam_comes_before_exact_match_before_longest_prefix_match() {
    let mut rig = Rig::new(Sizes::default());
    let address = Ipv4Addr::new(10, 1, 2, 3);
    let prefix = Prefix { address: Ipv4Addr::new(10, 1, 0, 0), length: 16 };
    let net = Prefix { address: Ipv4Addr::new(10, 0, 0, 0), length: 8 };
    let sent = |rig: &mut Rig| rig.fate(0, &to([10, 1, 2, 3])).ports();
    rig.commit(&[Change::Miss(Some(to_port(0)))]);
    assert_eq!(sent(&mut rig), [0]);
    rig.commit(&[Change::Prefix(net, Some(to_port(1)))]);
    assert_eq!(sent(&mut rig), [1]);
    rig.commit(&[Change::Prefix(prefix, Some(to_port(2)))]);
    assert_eq!(sent(&mut rig), [2], "the longer prefix");
    rig.commit(&[Change::Mac(MacKey { bridge: 0, mac: mac(2) }, Some(to_port(3)))]);
    assert_eq!(sent(&mut rig), [3]);
    rig.commit(&[Change::Ipv4(address, Some(to_port(1)))]);
    assert_eq!(sent(&mut rig), [1], "the address before the MAC");
    let udlk = Change::Udlk(UdlkId(1), Some(Udlk::of(FrameType::Ipv4, [bytes(30, 33)])));
    rig.commit(&[udlk, tcam(7, 1, &[10, 0, 0, 0], &[255, 0, 0, 0], to_port(2))]);
    assert_eq!(sent(&mut rig), [2]);
    rig.commit(&[tcam(9, 1, &[0; 4], &[0; 4], Action::from(Target::Drop))]);
    assert_eq!(rig.fate(0, &to([10, 1, 2, 3])).dropped, [Drop::Denied], "the higher index");
    rig.commit(&[Change::Tcam(9, None), Change::Tcam(7, None), Change::Ipv4(address, None)]);
    assert_eq!(sent(&mut rig), [3]);
    let unrouted = PortOptions { routed: false, ..PortOptions::default() };
    rig.commit(&[
        Change::Mac(MacKey { bridge: 0, mac: mac(2) }, None),
        Change::Port(PortNo(0), Some(unrouted)),
    ]);
    assert_eq!(sent(&mut rig), [0], "a port that is not routed has no prefixes");
}

/// Paper 004, section 3.3.2: longest prefix match on the destination MAC, for PortLand.
#[test]
fn a_prefix_of_the_mac_is_matched_by_the_tcam_and_the_interface_rewrites_it() {
    let mut rig = Rig::new(Sizes::default());
    let real = axon_wire::MacAddr([0x00, 0x1f, 0x29, 0xd4, 0x17, 0xe8]);
    let way = Interface { port: PortNo(2), destination: Some(real), source: None };
    rig.commit(&[
        Change::Udlk(UdlkId(1), Some(Udlk::new([bytes(0, 5)]))),
        Change::Interface(3, Some(way)),
        tcam(1, 1, &[0, 0, 1, 0, 0, 0], &[255, 255, 255, 0, 0, 0], Target::Interface(3).into()),
    ]);
    let before = frame(axon_wire::MacAddr([0, 0, 1, 2, 0, 1]), mac(1), IPV4, &packet(64, [1; 4]));
    let fate = rig.fate(0, &before);
    let mut after = before.clone();
    after[..6].copy_from_slice(&real.0);
    assert_eq!(fate.sent, [(2, after)]);
    let other = frame(axon_wire::MacAddr([0, 0, 2, 2, 0, 1]), mac(1), IPV4, &[]);
    assert_eq!(rig.fate(0, &other).dropped, [Drop::NoRoute]);
}

/// Paper 004, figure 2: three positions, two addresses, six entries.
#[test]
fn an_index_and_the_address_it_points_at_are_matched_in_one_step() {
    let mut rig = Rig::new(Sizes::default());
    let mut changes =
        vec![Change::Udlk(UdlkId(1), Some(Udlk::new([bytes(22, 25), bytes(34, 37)])))];
    let mut index = 0;
    for address in [1_u8, 2] {
        changes.push(interface(address.into(), address.into()));
        for place in 0..3 {
            let (mut value, mut mask) = ([0; 8], [0; 8]);
            (value[0], mask[0]) = (place + 2, 0xff);
            (value[4 + usize::from(place)], mask[4 + usize::from(place)]) = (address, 0xff);
            let action = Action::from(Target::Interface(address.into())).with(Modify::DecrementTtl);
            changes.push(tcam(index, 1, &value, &mask, action));
            index += 1;
        }
    }
    rig.commit(&changes);
    assert_eq!(index, 6);
    // The last hop is first in the header: this one goes to 1, then to 2, then to 1.
    let mut bytes = frame(mac(2), mac(1), IPV4, &packet(4, [10, 0, 0, 9]));
    bytes[34..38].copy_from_slice(&[1, 2, 1, 0]);
    let mut ways = Vec::new();
    for _ in 0..3 {
        let mut fate = rig.fate(0, &bytes);
        let (port, sent) = fate.sent.pop().expect("one frame");
        assert_eq!(checksum(&sent[14..34]), 0, "the checksum follows the TTL");
        ways.push(port);
        bytes = sent;
    }
    assert_eq!((ways, bytes[22]), (vec![1, 2, 1], 1));
    assert_eq!(rig.fate(0, &bytes).dropped, [Drop::NoRoute], "no index is 1");
}

#[test]
fn labels_are_pushed_swapped_and_popped_with_one_ttl_through() {
    let mut rig = Rig::new(Sizes::default());
    let push = to_port(1).with(Modify::DecrementTtl).with(Modify::MplsPush(Label(100)));
    rig.commit(&[
        Change::Ipv4([10, 0, 0, 9].into(), Some(push.with(Modify::MplsPush(Label(200))))),
        Change::Mpls(200, Some(to_port(2).with(Modify::MplsPop))),
        Change::Mpls(100, Some(to_port(3).with(Modify::MplsSwap(Label(300))))),
        Change::Mpls(300, Some(to_port(0).with(Modify::MplsPop))),
    ]);
    let start = frame(mac(2), mac(1), IPV4, &packet(64, [10, 0, 0, 9]));
    let pushed = rig.fate(0, &start).sent.remove(0).1;
    assert_eq!(pushed[12..22], [0x88, 0x47, 0, 0x0c, 0x80, 63, 0, 0x06, 0x41, 63]);
    let popped = rig.fate(0, &pushed).sent.remove(0);
    assert_eq!((popped.0, &popped.1[12..18]), (2, &[0x88, 0x47, 0, 0x06, 0x41, 62][..]));
    let swapped = rig.fate(0, &popped.1).sent.remove(0);
    assert_eq!((swapped.0, &swapped.1[14..18]), (3, &[0, 0x12, 0xc1, 61][..]));
    let (port, end) = rig.fate(0, &swapped.1).sent.remove(0);
    let expected = frame(mac(2), mac(1), IPV4, &packet(60, [10, 0, 0, 9]));
    assert_eq!((port, &end[..]), (0, &expected[..]), "as it came, with a TTL of 60");
    let last = frame(mac(2), mac(1), MPLS, &[0, 0x06, 0x41, 1]);
    assert_eq!(rig.fate(0, &last).dropped, [Drop::TtlExpired]);
}

#[test]
fn a_packet_comes_out_of_its_tunnel_as_it_went_in() {
    let mut rig = Rig::new(Sizes::default());
    let (source, destination) = ([192, 168, 0, 1].into(), [192, 168, 0, 2].into());
    let shim = vec![1, 2, 3, 4, 5, 6, 7, 8];
    let tunnel = Tunnel { source, destination, protocol: 253, ttl: 7, shim };
    rig.commit(&[
        Change::Tunnel(5, Some(tunnel)),
        Change::Ipv4([10, 0, 0, 9].into(), Some(to_port(1).with(Modify::TunnelPush(5)))),
        Change::Ipv4(destination, Some(to_port(2).with(Modify::TunnelPop { shim_bytes: 8 }))),
    ]);
    let start = to([10, 0, 0, 9]);
    let (_, outer) = rig.fate(0, &start).sent.remove(0);
    assert_eq!(outer.len(), start.len() + 28);
    assert_eq!((outer[22], outer[23], checksum(&outer[14..34])), (7, 253, 0));
    assert_eq!(outer[16..18], (start.len() as u16 + 28 - 14).to_be_bytes());
    assert_eq!(outer[34..42], [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(rig.fate(0, &outer).sent, [(2, start)]);
}

#[test]
fn a_group_gets_copies_everywhere_but_where_it_came_from_and_where_nothing_is() {
    let mut rig = Rig::new(Sizes::default());
    let members = (0..4).map(|number| interface(number, number)).collect::<Vec<_>>();
    rig.commit(&members);
    rig.commit(&[
        Change::Group(0, Some(Group { interfaces: vec![0, 1, 2, 3] })),
        Change::Miss(Some(Target::Group(0).into())),
    ]);
    let hello = frame(mac(2), mac(1), 0x88b5, &[]);
    assert_eq!(rig.fate(1, &hello).ports(), [0, 2, 3]);
    let down = Input::Link { port: PortNo(2), up: false };
    rig.pipeline.handle(Time::ZERO, down, &mut Vec::new());
    assert_eq!(rig.fate(1, &hello).ports(), [0, 3]);
    rig.commit(&[Change::Miss(Some(Target::Spread(0).into()))]);
    let mut used = [0; 4];
    for port in 0..=255 {
        let mut flow = to([10, 0, 0, 9]);
        flow[34] = port;
        used[usize::from(rig.fate(1, &flow).ports()[0])] += 1;
    }
    assert!(used[2] == 0 && [0, 1, 3].iter().all(|&port| used[port] > 50), "{used:?}");
}

#[test]
fn a_mirror_gets_the_frame_as_it_came_and_the_program_what_it_may() {
    let mut rig = Rig::new(Sizes::default());
    let action = to_port(1).with(Modify::SetDscp(46)).mirrored(Mirror::Port(PortNo(3)));
    rig.commit(&[Change::Ipv4([10, 0, 0, 9].into(), Some(action))]);
    let start = to([10, 0, 0, 9]);
    let fate = rig.fate(0, &start);
    assert_eq!((fate.ports(), &fate.sent[0].1), (vec![3, 1], &start));
    assert_eq!((fate.sent[1].1[15], checksum(&fate.sent[1].1[14..34])), (46 << 2, 0));
    rig.commit(&[Change::Miss(Some(Action::cpu().mirrored(Mirror::Cpu)))]);
    rig.pipeline.write_register(axon_pipeline::Register::CpuRate(PortNo(0)), 0).unwrap();
    let fate = rig.fate(0, &frame(mac(2), mac(1), 0x88b5, &[]));
    assert_eq!(fate, Fate { dropped: vec![Drop::PuntLimit; 2], ..Fate::default() });
    let fate = rig.fate(1, &frame(mac(2), mac(1), 0x88b5, &[]));
    assert_eq!(fate, Fate { to_cpu: 2, ..Fate::default() });
}

#[test]
fn a_source_is_learned_until_its_entry_leads_to_its_port() {
    let mut rig = Rig::new(Sizes::default());
    let options = PortOptions { learn: true, ..PortOptions::default() };
    rig.commit(&[
        Change::Port(PortNo(0), Some(options)),
        Change::Port(PortNo(1), Some(options)),
        Change::Miss(Some(Target::Drop.into())),
    ]);
    let hello = frame(mac(2), mac(1), 0x88b5, &[]);
    assert_eq!(rig.fate(0, &hello).to_cpu, 1);
    rig.commit(&[Change::Mac(MacKey { bridge: 0, mac: mac(1) }, Some(to_port(0)))]);
    assert_eq!(rig.fate(0, &hello).to_cpu, 0);
    assert_eq!(rig.fate(1, &hello).to_cpu, 1, "it has moved");
    assert_eq!(rig.fate(2, &hello).to_cpu, 0, "nobody learns there");
    // A group leads to a port if it has no other member.
    let entry = |group| Change::Mac(MacKey { bridge: 0, mac: mac(1) }, Some(group));
    rig.commit(&[
        Change::Interface(0, Some(Interface::of(PortNo(0)))),
        Change::Interface(1, Some(Interface::of(PortNo(1)))),
        Change::Group(0, Some(Group { interfaces: vec![0] })),
        Change::Group(1, Some(Group { interfaces: vec![0, 1] })),
        entry(Target::Group(0).into()),
    ]);
    assert_eq!([0, 1].map(|port| rig.fate(port, &hello).to_cpu), [0, 1]);
    rig.commit(&[entry(Target::Group(1).into())]);
    assert_eq!([0, 1].map(|port| rig.fate(port, &hello).to_cpu), [1, 1]);
}

#[test]
fn frames_of_an_axon_port_are_of_that_type_and_take_their_hops() {
    let mut rig = Rig::new(Sizes::default());
    let axon = PortOptions { axon: true, ..PortOptions::default() };
    // The next hop of an 8-bit header without a hop taken is byte 6.
    let to_next = to_port(2).with(Modify::AxonHop);
    rig.commit(&[
        Change::Port(PortNo(1), Some(axon)),
        Change::Port(PortNo(3), Some(axon)),
        Change::Mac(MacKey { bridge: 0, mac: mac(2) }, {
            let route = [2, 3].map(PortNo).into_iter().collect();
            Some(to_port(1).with(Modify::AxonPush(route)))
        }),
        Change::Udlk(UdlkId(3), Some(Udlk::of(FrameType::Axon, [bytes(6, 6), Field::Priority]))),
        tcam(7, 3, &[2, 0], &[255, 255], to_next),
        tcam(8, 3, &[3, 0], &[255, 255], to_port(0).with(Modify::AxonHop).with(Modify::AxonStrip)),
    ]);
    let plain = frame(mac(2), mac(1), IPV4, &packet(64, [10, 0, 0, 9]));
    let pushed = rig.fate(0, &plain).sent.remove(0);
    assert_eq!(pushed.0, 1);
    let (port, taken) = rig.fate(3, &pushed.1).sent.remove(0);
    assert_eq!((port, taken.len()), (2, pushed.1.len()), "the hop and the reverse hop");
    let (port, end) = rig.fate(1, &taken).sent.remove(0);
    assert_eq!((port, end), (0, plain));
    assert_eq!(rig.fate(0, &pushed.1).dropped, [Drop::NoRoute], "port 0 is none of Axon");
    let way = rig.pipeline.explain(PortNo(3), &pushed.1);
    assert_eq!(way.stages[0].text, "axon");
    assert_eq!(way.sent, [(PortNo(2), taken)]);
}

#[test]
fn a_way_names_the_entries_of_the_tcam_that_a_higher_one_hides() {
    let mut rig = Rig::new(Sizes::default());
    rig.commit(&[Change::Udlk(UdlkId(1), Some(Udlk::of(FrameType::Ipv4, [bytes(30, 33)])))]);
    let address = [10, 1, 2, 3];
    rig.commit(&[
        tcam(7, 1, &[10, 0, 0, 0], &[255, 0, 0, 0], to_port(2)),
        tcam(8, 1, &[11, 0, 0, 0], &[255, 0, 0, 0], to_port(2)),
        tcam(2000, 1, &address, &[255; 4], Action::from(Target::Drop)),
    ]);
    let way = rig.pipeline.explain(PortNo(0), &to(address));
    let lookups = way.stages.iter().filter(|stage| stage.name == "lookup");
    let lookups: Vec<&str> = lookups.filter_map(|stage| stage.text.split(':').next()).collect();
    assert_eq!(lookups, ["tcam 2000 matches and wins", "tcam 7 matches and is overruled"]);
}

#[test]
fn copies_for_the_program_take_nothing_from_what_is_trapped() {
    let mut rig = Rig::new(Sizes::default());
    let options = PortOptions { learn: true, ..PortOptions::default() };
    let bpdu = axon_wire::MacAddr([0x01, 0x80, 0xc2, 0, 0, 0]);
    rig.commit(&[
        Change::Port(PortNo(0), Some(options)),
        Change::Mac(MacKey { bridge: 0, mac: bpdu }, Some(Action::cpu())),
        Change::Mac(MacKey { bridge: 0, mac: mac(1) }, Some(to_port(0))),
        Change::Miss(Some(Action::from(Target::Drop).mirrored(Mirror::Cpu))),
    ]);
    let unknown = frame(mac(2), mac(3), 0x88b5, &[]);
    let copies: u32 = (0..300).map(|_| rig.fate(0, &unknown).to_cpu).sum();
    assert_eq!(copies, 256, "for its source and by the mirror, within one limit");
    let trapped = frame(bpdu, mac(1), 0x88b5, &[]);
    let trapped: u32 = (0..300).map(|_| rig.fate(0, &trapped).to_cpu).sum();
    assert_eq!(trapped, 256);
}

#[test]
fn the_way_of_a_mirrored_frame_says_where_its_copy_goes_in_the_words_of_operators() {
    let mut rig = Rig::new(Sizes::default());
    let entry = to_port(1).with(Modify::DecrementTtl).with(Modify::SetDscp(46));
    let address = Ipv4Addr::new(10, 0, 0, 1);
    let way = |rig: &mut Rig, mirror| {
        rig.commit(&[Change::Ipv4(address, Some(entry.clone().mirrored(mirror)))]);
        let way = rig.pipeline.explain(PortNo(0), &to([10, 0, 0, 1]));
        let stages = way.stages.iter().filter(|stage| stage.name != "parser");
        stages.map(|stage| format!("{} {}", stage.name, stage.text)).collect::<Vec<_>>()
    };
    let rest = ["modify decrement-ttl", "modify dscp 46", "out port p1"];
    let lookup = "lookup ipv4 10.0.0.1 matches and wins: port 1 decrement-ttl dscp 46 mirror";
    for (mirror, words) in [(Mirror::Port(PortNo(3)), "port 3"), (Mirror::Cpu, "cpu")] {
        let found = way(&mut rig, mirror);
        assert_eq!(found[0], format!("{lookup} {words}"));
        assert_eq!(found[1], format!("mirror {words}: a copy as it came in"));
        assert_eq!(found[2..], rest);
    }
    rig.pipeline.handle(Time::ZERO, Input::Link { port: PortNo(3), up: false }, &mut Vec::new());
    assert_eq!(way(&mut rig, Mirror::Port(PortNo(3)))[1], "mirror port 3: dropped: port_down");
}
