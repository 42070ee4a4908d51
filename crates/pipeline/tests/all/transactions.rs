//! Transactions: all changes or none, and the reasons of refusal.

use crate::rig::{IPV4, Rig, frame, mac, packet};
use axon_node::Drop;
use axon_pipeline::{
    Action, Change, ChangeError, EntryName, Field, FrameType, Group, Interface, KeyError, Label,
    MacKey, Modify, Prefix, Reason, Register, RegisterError, Shown, Sizes, TableName, Target,
    TcamEntry, Tunnel, Udlk, UdlkId,
};
use axon_wire::{PortNo, Route};

fn small() -> Rig {
    let sizes = Sizes { mac: 2, ipv4: 2, mpls: 2, prefix: 2, tcam: 8, interface: 8, ..sizes() };
    Rig::new(sizes)
}

fn sizes() -> Sizes {
    Sizes { group: 4, tunnel: 4, ..Sizes::default() }
}

fn all(rig: &Rig) -> Vec<Vec<Shown>> {
    TableName::ALL.into_iter().map(|table| rig.pipeline.tables().entries(table)).collect()
}

fn drop() -> Action {
    Target::Drop.into()
}

fn key(id: u8, first: u8, last: u8) -> Change {
    Change::Udlk(UdlkId(id), Some(Udlk::new([Field::Bytes { first, last }])))
}

fn tcam(index: u16, udlk: u8, value: &[u8], mask: &[u8]) -> Change {
    let (value, mask) = (value.to_vec(), mask.to_vec());
    Change::Tcam(index, Some(TcamEntry { udlk: UdlkId(udlk), value, mask, action: drop() }))
}

fn address(last: u8, action: Action) -> Change {
    Change::Ipv4([10, 0, 0, last].into(), Some(action))
}

/// Returns a rig with an object of every kind.
fn filled() -> Rig {
    let mut rig = small();
    let tunnel = Tunnel {
        source: [1, 1, 1, 1].into(),
        destination: [2, 2, 2, 2].into(),
        protocol: 4,
        ttl: 64,
        shim: Vec::new(),
    };
    rig.commit(&[
        address(1, Action::from(Target::Group(1)).with(Modify::TunnelPush(1))),
        Change::Group(1, Some(Group { interfaces: vec![1, 2] })),
        Change::Interface(1, Some(Interface::of(PortNo(1)))),
        Change::Interface(2, Some(Interface::of(PortNo(2)))),
        Change::Tunnel(1, Some(tunnel)),
        tcam(3, 1, &[9], &[0xff]),
        key(1, 0, 0),
        Change::Miss(Some(drop())),
    ]);
    rig
}

#[test]
fn what_is_refused_is_named_and_leaves_the_tables_as_they_were() {
    let port = |port| Interface::of(PortNo(port));
    let prefix = |address: [u8; 4], length| {
        Change::Prefix(Prefix { address: address.into(), length }, Some(drop()))
    };
    let shim = |shim: usize, ttl| {
        let (source, destination) = ([1; 4].into(), [2; 4].into());
        Change::Tunnel(
            2,
            Some(Tunnel { source, destination, protocol: 4, ttl, shim: vec![0; shim] }),
        )
    };
    let of_port = |number| address(2, Target::Port(PortNo(number)).into());
    let label = Modify::MplsPush(Label(1 << 20));
    let cases: Vec<(Change, Reason)> = vec![
        (key(2, 120, 128), Reason::Key(KeyError::Beyond(128))),
        (key(2, 0, 16), Reason::Key(KeyError::Blocks(5))),
        (key(16, 0, 0), Reason::NoSuchNumber { last: 15 }),
        (key(1, 1, 1), Reason::InUse { users: 1 }),
        (Change::Udlk(UdlkId(1), None), Reason::InUse { users: 1 }),
        (Change::Interface(1, None), Reason::InUse { users: 1 }),
        (Change::Group(1, None), Reason::InUse { users: 1 }),
        (Change::Tunnel(1, None), Reason::InUse { users: 1 }),
        (Change::Interface(8, Some(port(0))), Reason::NoSuchNumber { last: 7 }),
        (Change::Interface(3, Some(port(4))), Reason::NoSuchPort(PortNo(4))),
        (Change::Group(2, Some(Group { interfaces: vec![6] })), Reason::NoSuchInterface(6)),
        (Change::Group(2, Some(Group { interfaces: vec![1, 1] })), Reason::TwiceInGroup(1)),
        (tcam(8, 1, &[9], &[0xff]), Reason::NoSuchNumber { last: 7 }),
        (tcam(4, 2, &[9], &[0xff]), Reason::NoSuchUdlk(UdlkId(2))),
        (tcam(4, 1, &[9, 9], &[0xff]), Reason::ValueBytes { expected: 1, found: 2 }),
        (tcam(4, 1, &[9], &[]), Reason::ValueBytes { expected: 1, found: 0 }),
        (tcam(4, 1, &[9], &[0xf0]), Reason::ValueOutsideMask { byte: 0 }),
        (of_port(4), Reason::NoSuchPort(PortNo(4))),
        (address(2, Target::Interface(5).into()), Reason::NoSuchInterface(5)),
        (address(2, Target::Spread(3).into()), Reason::NoSuchGroup(3)),
        (address(2, drop().with(Modify::TunnelPush(3))), Reason::NoSuchTunnel(3)),
        (address(2, drop().with(label)), Reason::Label),
        (address(2, drop().with(Modify::SetDscp(64))), Reason::Dscp),
        (Change::Mpls(1 << 20, Some(drop())), Reason::Label),
        (prefix([10, 0, 0, 1], 31), Reason::Prefix),
        (prefix([0; 4], 33), Reason::Prefix),
        (shim(36, 1), Reason::Tunnel),
        (shim(6, 1), Reason::Tunnel),
        (shim(4, 0), Reason::Tunnel),
        (Change::Mpls(5, None), Reason::Contradiction { first: 1 }),
    ];
    let mut rig = filled();
    let before = all(&rig);
    // Each transaction begins and ends with changes that are valid.
    for (change, reason) in cases {
        let entry = change.entry();
        let first = Change::Mpls(5, Some(drop()));
        let last = Change::Interface(7, Some(port(0)));
        let refused = rig.pipeline.commit(&[first, change, last]).unwrap_err();
        assert_eq!(refused, ChangeError { position: 2, entry, reason });
        assert_eq!(all(&rig), before, "{refused}");
    }
}

#[test]
fn a_full_table_takes_no_more_but_what_is_there_may_change() {
    let mut rig = small();
    rig.commit(&[address(1, drop()), address(2, drop())]);
    let refused = rig.pipeline.commit(&[address(3, drop())]).unwrap_err();
    assert_eq!(refused.reason, Reason::Full { size: 2 });
    assert_eq!(
        refused.to_string(),
        "change 1 (ipv4 10.0.0.3): the table is full: it holds 2 entries"
    );
    rig.commit(&[address(1, Action::cpu())]);
    rig.commit(&[address(3, drop()), Change::Ipv4([10, 0, 0, 1].into(), None)]);
    let left = rig.pipeline.tables().count(TableName::Ipv4);
    assert_eq!((left.entries, left.size), (2, 2));
}

#[test]
fn what_uses_each_other_can_go_in_one_transaction_in_any_order() {
    let mut rig = filled();
    rig.commit(&[
        Change::Interface(1, None),
        Change::Interface(2, None),
        Change::Tunnel(1, None),
        Change::Group(1, None),
        Change::Udlk(UdlkId(1), None),
        Change::Ipv4([10, 0, 0, 1].into(), None),
        Change::Tcam(3, None),
        Change::Miss(None),
    ]);
    assert!(all(&rig).iter().all(Vec::is_empty));
    let two = |id| Change::Udlk(UdlkId(id), Some(Udlk::of(FrameType::Arp, [Field::Ingress])));
    rig.commit(&[two(1), two(2)]);
    let refused = rig.pipeline.commit(&[key(3, 0, 5)]).unwrap_err();
    assert_eq!(refused.reason, Reason::TooManyKeys(FrameType::Arp), "one of all types");
}

#[test]
fn a_refused_transaction_keeps_counters_and_an_accepted_one_those_of_other_entries() {
    let mut rig = small();
    rig.commit(&[address(1, drop()), address(2, drop())]);
    let to = |last| frame(mac(2), mac(1), IPV4, &packet(64, [10, 0, 0, last]));
    for last in [1, 1, 2] {
        rig.fate(0, &to(last));
    }
    let frames = |rig: &Rig, last| {
        let entry = EntryName::Ipv4([10, 0, 0, last].into());
        rig.pipeline.read_register(Register::EntryFrames(entry))
    };
    rig.pipeline.commit(&[address(1, Action::cpu()), address(3, drop())]).unwrap_err();
    assert_eq!((frames(&rig, 1), frames(&rig, 2)), (Ok(2), Ok(1)));
    rig.commit(&[address(1, Action::cpu())]);
    assert_eq!((frames(&rig, 1), frames(&rig, 2)), (Ok(0), Ok(1)));
    let none = EntryName::Mac(MacKey { bridge: 0, mac: mac(1) });
    let missing = rig.pipeline.read_register(Register::EntryBytes(none));
    assert_eq!(missing, Err(RegisterError::NoSuchEntry(none)));
    let read_only = Register::QueueBytes(PortNo(0));
    let written = rig.pipeline.write_register(read_only, 1);
    assert_eq!(written, Err(RegisterError::ReadOnly(read_only)));
}

#[test]
fn a_refused_change_of_a_key_puts_the_key_and_its_entries_back() {
    let mut rig = filled();
    let before = all(&rig);
    let nowhere = address(9, Action::from(Target::Interface(7)));
    let changes = [key(1, 1, 1), tcam(3, 1, &[8], &[0xff]), tcam(4, 1, &[9], &[0xff]), nowhere];
    let error = rig.pipeline.commit(&changes).unwrap_err();
    assert_eq!((error.position, error.reason), (4, Reason::NoSuchInterface(7)));
    assert_eq!(all(&rig), before);
    let mut to_nine = frame(mac(1), mac(2), IPV4, &packet(64, [10, 0, 0, 1]));
    to_nine[0] = 9;
    rig.fate(0, &to_nine);
    assert_eq!(
        rig.pipeline.tables().counters(EntryName::Tcam(3)).map(|(frames, _)| frames),
        Some(1)
    );
    rig.commit(&[Change::Tcam(3, None), Change::Udlk(UdlkId(1), None)]);
}

#[test]
fn an_entry_that_names_a_tunnel_twice_is_one_user_of_it() {
    let mut rig = filled();
    rig.commit(&[address(2, drop().with(Modify::TunnelPush(1)).with(Modify::TunnelPush(1)))]);
    let error = rig.pipeline.commit(&[Change::Tunnel(1, None)]).unwrap_err();
    assert_eq!(error.reason, Reason::InUse { users: 2 });
    rig.commit(&[
        Change::Tunnel(1, None),
        Change::Ipv4([10, 0, 0, 1].into(), None),
        Change::Ipv4([10, 0, 0, 2].into(), None),
    ]);
}

#[test]
fn a_route_that_no_frame_can_carry_is_refused() {
    let mut rig = filled();
    let before = all(&rig);
    let push = |hops: Vec<u16>| {
        let route: Route = hops.into_iter().map(PortNo).collect();
        address(2, Action::from(Target::Drop).with(Modify::AxonPush(route)))
    };
    // Hops of 8 bits name ports 0 to 254; a header has 6 bytes beside them.
    for hops in [vec![1, 255], vec![1; 123], vec![1; 5000]] {
        let error = rig.pipeline.commit(&[push(hops)]).unwrap_err();
        assert_eq!((error.position, error.reason), (1, Reason::Route));
        assert_eq!(all(&rig), before);
    }
    rig.commit(&[push(vec![254; 122])]);
    let to = frame(mac(2), mac(1), IPV4, &packet(64, [10, 0, 0, 2]));
    assert_eq!(rig.fate(0, &to).dropped, [Drop::Denied]);
}
