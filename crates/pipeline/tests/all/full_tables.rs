//! Equality of the pipeline and the reference interpreter with the paper's tables, nearly full.

use crate::equality::Random;
use crate::rig::{IPV4, MPLS, frame, packet};
use crate::twins::{Draw, PORTS, Twins};
use axon_pipeline::{
    Action, Change, Field, FrameType, Group, Interface, Label, MacKey, Modify, Prefix, Sizes,
    TableName, Target, TcamEntry, Tunnel, Udlk, UdlkId,
};
use axon_wire::{MacAddr, PortNo};
use std::net::Ipv4Addr;

const STEPS: u32 = 400;
/// Free entries of each table before the drawn ones fill it.
const ROOM: u32 = 2;
/// The lookup key of the entries of the TCAM: source and destination of IPv4.
const KEY: UdlkId = UdlkId(0);

impl Random {
    fn below(&mut self, bound: u32) -> u32 {
        let bytes: [u8; 4] = std::array::from_fn(|_| self.byte());
        u32::from_be_bytes(bytes) % bound
    }
}

/// Different numbers have different addresses, and neighbours lie far apart.
fn address(number: u32) -> Ipv4Addr {
    let [_, a, b, c] = (number.wrapping_mul(0x9e3b) % (1 << 24)).to_be_bytes();
    Ipv4Addr::new(20, a, b, c)
}

fn mac(number: u32) -> MacAddr {
    let [_, a, b, c] = number.to_be_bytes();
    MacAddr([2, 1, 0, a, b, c])
}

/// Prefixes of 16, 20, 24 and 28 bits; of each four the first holds the others.
fn prefix(number: u32) -> Prefix {
    let length = 16 + 4 * (number % 4) as u8;
    let bits = 0x1e00_0000 + (number / 4) * 0x1_0000 + (number % 4) * 0x1110;
    Prefix { address: Ipv4Addr::from_bits(bits & u32::MAX << (32 - length)), length }
}

/// The source of frames that meet entries of the TCAM.
fn source(number: u32) -> Ipv4Addr {
    let [_, _, a, b] = number.to_be_bytes();
    Ipv4Addr::new(172, 16, a, b)
}

/// Some target, with some modification, of objects of the full tables.
fn action(random: &mut Random, sizes: &Sizes) -> Action {
    let number = |random: &mut Random, size: u32| random.below(size - ROOM) as u16;
    let target = match random.below(8) {
        0 => Target::Group(number(random, sizes.group)),
        1 => Target::Spread(number(random, sizes.group)),
        2 => Target::Port(PortNo(random.below(PORTS.into()) as u16)),
        3 => Target::Cpu,
        _ => Target::Interface(number(random, sizes.interface)),
    };
    let action = Action::from(target);
    match random.below(4) {
        0 => action.with(Modify::TunnelPush(number(random, sizes.tunnel))),
        1 => action.with(Modify::DecrementTtl),
        _ => action,
    }
}

/// Entries of all tables.
fn entries(random: &mut Random, sizes: &Sizes) -> Vec<Change> {
    let key = [Field::Bytes { first: 26, last: 29 }, Field::Bytes { first: 30, last: 33 }];
    let mut all = vec![Change::Udlk(KEY, Some(Udlk::of(FrameType::Ipv4, key)))];
    let interface = |number: u32| Interface {
        port: PortNo(number as u16 % PORTS),
        destination: (!number.is_multiple_of(3)).then(|| mac(number)),
        source: (!number.is_multiple_of(5)).then_some(MacAddr([2; 6])),
    };
    let of = |size: u32| 0..size - ROOM;
    all.extend(of(sizes.interface).map(|at| Change::Interface(at as u16, Some(interface(at)))));
    all.extend(of(sizes.group).map(|at| {
        let members = (0..at % 6).map(|more| (at * 4 + more * 5) % (sizes.interface - ROOM));
        let interfaces = members.map(|member| member as u16).collect();
        Change::Group(at as u16, Some(Group { interfaces }))
    }));
    all.extend(of(sizes.tunnel).map(|at| {
        let (source, destination) = (address(at), address(at + 1));
        let shim = vec![at as u8; 4 * (at as usize % 9)];
        let tunnel = Tunnel { source, destination, protocol: 4, ttl: 1 + at as u8 % 255, shim };
        Change::Tunnel(at as u16, Some(tunnel))
    }));
    for at in of(sizes.tcam) {
        let mask = u64::MAX << random.below(40);
        let key = u64::from(source(at / 8).to_bits()) << 32 | u64::from(address(at).to_bits());
        let (value, mask) = ((key & mask).to_be_bytes().to_vec(), mask.to_be_bytes().to_vec());
        let entry = TcamEntry { udlk: KEY, value, mask, action: action(random, sizes) };
        all.push(Change::Tcam(at as u16, Some(entry)));
    }
    let mut some = || Some(action(random, sizes));
    let macs = of(sizes.mac).map(|at| MacKey { bridge: 0, mac: mac(at) });
    all.extend(macs.map(|key| Change::Mac(key, some())));
    all.extend(of(sizes.ipv4).map(|at| Change::Ipv4(address(at), some())));
    all.extend(of(sizes.mpls).map(|at| Change::Mpls(Label(100 + at).0, some())));
    all.extend(of(sizes.prefix).map(|at| Change::Prefix(prefix(at), some())));
    all
}

/// A frame that meets some entry, mostly.
fn some_frame(random: &mut Random, sizes: &Sizes) -> Vec<u8> {
    let to = mac(random.below(4 * sizes.mac));
    let from = MacAddr([2, 0, 0, 0, 0, 1]);
    let ttl = 1 + random.byte() % 3;
    let mut to_address = |address: Ipv4Addr, source: Option<Ipv4Addr>| {
        let mut packet = packet(ttl, address.octets());
        if let Some(source) = source {
            packet[12..16].copy_from_slice(&source.octets());
        }
        packet[20] = random.byte();
        packet
    };
    match to.0[5] % 5 {
        0 => frame(to, from, 0x88b5, &[]),
        1 => {
            let packet = to_address(address(1), None);
            let [_, a, b, c] = ((100 + random.below(sizes.mpls)) << 4).to_be_bytes();
            frame(to, from, MPLS, &[&[a, b, c | 1, 64], &packet[..]].concat())
        }
        2 => {
            let place = u32::from(to.0[3]) << 8 | u32::from(to.0[4]);
            let prefix = prefix(place % sizes.prefix).address.to_bits();
            frame(to, from, IPV4, &to_address(Ipv4Addr::from_bits(prefix | 1), None))
        }
        3 => {
            let number = u32::from(to.0[4]) << 4;
            frame(to, from, IPV4, &to_address(address(number), Some(source(number / 8))))
        }
        _ => {
            let number = u32::from(to.0[3]) << 8 | u32::from(to.0[4]);
            frame(to, from, IPV4, &to_address(address(number % sizes.ipv4), None))
        }
    }
}

#[test]
fn the_pipeline_equals_the_reference_with_tables_of_the_paper_that_are_full() {
    let sizes = Sizes::default();
    for seed in [1, 2] {
        eprintln!("seed {seed}");
        let mut random = Random(seed << 32);
        let mut twins = Twins::of_sizes(sizes, seed);
        twins.fill(entries(&mut random, &sizes));
        for _ in 0..STEPS {
            for _ in 0..4 {
                let port = PortNo(random.below(PORTS.into()) as u16);
                twins.receive(port, some_frame(&mut random, &sizes), true);
            }
            let mut bytes = || Some(random.byte());
            twins.step(&mut Draw(&mut bytes)).expect("random bytes do not end");
        }
        let seen = twins.finish();
        println!("met {:?}, refused {:?}", seen.met, seen.refused);
        let tables = [TableName::Tcam, TableName::Mpls, TableName::Ipv4, TableName::Mac];
        for table in tables.into_iter().chain([TableName::Prefix]) {
            assert!(seen.met[&Some(table)] > 100, "{table}: {:?}", seen.met);
        }
        assert!(seen.refused.get("Full").is_some_and(|&count| count > 2), "{:?}", seen.refused);
    }
}
