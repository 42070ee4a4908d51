//! Entries that mirror frames and leave the decision to the tables below.

use crate::rig::{IPV4, Rig, frame, mac, packet};
use axon_node::Drop;
use axon_pipeline::{
    Action, Change, EntryName, Field, FrameType, MacKey, Mirror, Modify, Prefix, Reason, Sizes,
    Target, TcamEntry, Udlk, UdlkId,
};
use axon_wire::PortNo;
use std::net::Ipv4Addr;

const COPIES: u16 = 3;

fn to_port(port: u16) -> Action {
    Action::from(Target::Port(PortNo(port)))
}

fn mirrors() -> Action {
    Action::from(Target::Tables).mirrored(Mirror::Port(PortNo(COPIES)))
}

/// An entry for datagrams to 10.0.0.0/8.
fn tcam(index: u16, action: Action) -> Change {
    let (value, mask) = (vec![10, 0, 0, 0], vec![255, 0, 0, 0]);
    Change::Tcam(index, Some(TcamEntry { udlk: UdlkId(1), value, mask, action }))
}

/// Returns a switch that mirrors these datagrams and has no other entries.
fn rig() -> Rig {
    let mut rig = Rig::new(Sizes::default());
    let field = Field::Bytes { first: 30, last: 33 };
    let key = Change::Udlk(UdlkId(1), Some(Udlk::of(FrameType::Ipv4, [field])));
    rig.commit(&[key, tcam(1000, mirrors())]);
    rig
}

fn to(address: [u8; 4]) -> Vec<u8> {
    frame(mac(2), mac(1), IPV4, &packet(64, address))
}

#[test]
fn the_tables_decide_about_a_mirrored_frame_as_if_the_entry_were_not_there() {
    let mut rig = rig();
    let bytes = to([10, 1, 2, 3]);
    let fate = rig.fate(0, &bytes);
    assert_eq!((fate.ports(), fate.dropped), (vec![COPIES], vec![Drop::NoRoute]), "no decision");
    let net = Prefix { address: Ipv4Addr::new(10, 0, 0, 0), length: 8 };
    let lower = [
        (Change::Prefix(net, Some(to_port(0))), 0),
        (Change::Mac(MacKey { bridge: 0, mac: mac(2) }, Some(to_port(1))), 1),
        (Change::Ipv4(Ipv4Addr::new(10, 1, 2, 3), Some(to_port(2))), 2),
        (tcam(7, to_port(1)), 1),
        (tcam(600, mirrors()), 1),
        (tcam(601, to_port(0)), 0),
    ];
    for (change, port) in lower {
        rig.commit(std::slice::from_ref(&change));
        let fate = rig.fate(0, &bytes);
        assert_eq!((fate.ports(), fate.dropped), (vec![COPIES, port], vec![]), "{change:?}");
    }
    rig.commit(&[tcam(602, Target::Drop.into())]);
    let fate = rig.fate(0, &bytes);
    assert_eq!((fate.ports(), fate.dropped), (vec![COPIES], vec![Drop::Denied]));
    // Not selected: the decision alone counts.
    rig.commit(&[Change::Miss(Some(to_port(2)))]);
    let other = frame(mac(9), mac(1), IPV4, &packet(64, [11, 0, 0, 1]));
    assert_eq!(rig.fate(0, &other).ports(), [2]);
}

#[test]
fn the_copy_is_as_the_frame_came_in_and_what_decides_changes_the_frame() {
    let mut rig = rig();
    let entry = to_port(1).with(Modify::SetDscp(46)).mirrored(Mirror::Cpu);
    rig.commit(&[Change::Ipv4(Ipv4Addr::new(10, 1, 2, 3), Some(entry))]);
    let bytes = to([10, 1, 2, 3]);
    let fate = rig.fate(0, &bytes);
    assert_eq!((fate.ports(), fate.to_cpu), (vec![COPIES, 1], 1), "both mirrors");
    assert_eq!(fate.sent[0].1, bytes);
    assert_eq!((fate.sent[1].1[15], bytes[15]), (46 << 2, 0));
}

#[test]
fn the_mirror_and_what_decides_count_the_frame_and_no_other_entry_does() {
    let mut rig = rig();
    rig.commit(&[tcam(600, mirrors()), tcam(7, to_port(1)), tcam(6, to_port(2))]);
    rig.fate(0, &to([10, 1, 2, 3]));
    let frames = |index| rig.pipeline.tables().counters(EntryName::Tcam(index)).unwrap().0;
    assert_eq!([1000, 600, 7, 6].map(frames), [1, 0, 1, 0]);
}

#[test]
fn an_entry_that_does_not_decide_is_refused_where_nothing_is_below_or_with_modifications() {
    let mut rig = rig();
    let net = Prefix { address: Ipv4Addr::new(10, 0, 0, 0), length: 8 };
    let address = Ipv4Addr::new(10, 1, 2, 3);
    for change in [
        Change::Mac(MacKey { bridge: 0, mac: mac(2) }, Some(mirrors())),
        Change::Ipv4(address, Some(mirrors())),
        Change::Mpls(9, Some(mirrors())),
        Change::Prefix(net, Some(mirrors())),
        Change::Miss(Some(mirrors())),
        tcam(7, mirrors().with(Modify::SetDscp(1))),
    ] {
        let refused = rig.pipeline.commit(&[change]).unwrap_err();
        assert_eq!(refused.reason, Reason::Tables, "{refused}");
    }
    rig.commit(&[tcam(7, Target::Tables.into())]);
}

#[test]
fn the_way_of_a_mirrored_frame_names_the_entry_that_decides() {
    let mut rig = rig();
    rig.commit(&[tcam(600, mirrors()), tcam(7, to_port(1)), tcam(6, to_port(2))]);
    let way = rig.pipeline.explain(PortNo(0), &to([10, 1, 2, 3]));
    let stages = way.stages.iter().filter(|stage| !["parser", "key"].contains(&&*stage.name));
    let said: Vec<String> = stages.map(|stage| format!("{} {}", stage.name, stage.text)).collect();
    assert_eq!(
        said,
        [
            "lookup tcam 1000 matches and wins, and leaves the decision to those below: \
             tables mirror port 3",
            "lookup tcam 600 matches and is overruled: tables mirror port 3",
            "lookup tcam 7 matches and wins: port 1",
            "lookup tcam 6 matches and is overruled: port 2",
            "mirror port 3: a copy as it came in",
            "out port p1",
        ]
    );
    assert_eq!(way.sent.iter().map(|(port, _)| port.0).collect::<Vec<_>>(), [COPIES, 1]);
}
