//! Commands of the controller for hosts of a VLAN that the switch does not have.

use crate::hostile::{Imposter, KEY, SWITCH, routed};
use axon_node::Refusal;
use axon_wire::message::{Item, Message, Segment, Stamp};
use axon_wire::vlan::VlanId;
use axon_wire::{MacAddr, PortNo};

/// Sends a segment with two commands; returns the refusals of misplaced messages so far.
fn commands(controller: &mut Imposter, first: u64, vlan: VlanId) -> u64 {
    let item = |number| Item::RemoveRoute {
        port: PortNo(0),
        destination: MacAddr([4; 6]),
        source: None,
        stamp: Stamp { epoch: u64::MAX, number },
    };
    let segment = Segment { first, ack: 0, items: vec![item(first + 1), item(first + 2)] };
    let sealed = controller.control.seal_routed(SWITCH, (vlan, &Message::Segment(segment)));
    controller.scene.frame(&routed(&sealed));
    controller.scene.switch.refusals().of(Refusal::Misplaced)
}

#[test]
fn commands_for_an_unknown_vlan_are_counted_as_one_refused_message_for_each_segment() {
    let mut controller = Imposter::new(&KEY.into());
    controller.answer();
    let unknown = VlanId::new(10).unwrap();
    assert_eq!(commands(&mut controller, 0, VlanId::NONE), 0);
    assert_eq!(commands(&mut controller, 2, unknown), 1);
    assert_eq!(commands(&mut controller, 2, unknown), 1, "a repetition has nothing new");
    assert_eq!(commands(&mut controller, 4, VlanId::NONE), 1, "the stream goes on");
    assert_eq!(commands(&mut controller, 6, unknown), 2);
}
