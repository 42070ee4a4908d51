//! A switch and its control program.

use crate::rig::{frame, mac};
use axon_node::{Action as NodeAction, Drop, Input, Node};
use axon_pipeline::{
    Action, Change, Control, PipelineConfig, Program, ProgramNode, Received, Register,
};
use axon_wire::{FrameBuf, PortNo, Time};

/// Sends each packet as the tables decide: to itself.
struct Echo;

impl Program for Echo {
    fn start(&mut self, _: Time, control: &mut dyn Control) {
        control.commit(&[Change::Miss(Some(Action::cpu()))]).unwrap();
    }

    fn receive_packet(&mut self, _: Time, received: Received<'_>, control: &mut dyn Control) {
        control.inject_packet(None, received.frame);
    }
}

#[test]
fn what_a_program_sends_to_itself_ends_and_every_frame_is_counted_once() {
    let config = PipelineConfig::with_ports(2, mac(99));
    let mut node: ProgramNode = ProgramNode::new(config, Box::new(Echo));
    let (now, mut out) = (Time::ZERO, Vec::new());
    node.handle(now, Input::Link { port: PortNo(0), up: true }, &mut out);
    let frame = FrameBuf::new(&frame(mac(2), mac(1), 0x88b5, &[]));
    let input = Input::Frame { port: PortNo(0), frame, complete_at: now, intact: true };
    node.handle(now, input, &mut out);
    let reasons: Vec<Drop> = out
        .iter()
        .map(|action| match action {
            NodeAction::Dropped { reason, .. } => *reason,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(reasons.last(), Some(&Drop::PuntLimit));
    assert!(reasons[..reasons.len() - 1].iter().all(|reason| *reason == Drop::Consumed));
    let total = node.pipeline().ports().counters().total();
    assert_eq!(total.rx_frames, reasons.len() as u64, "its own frames come in too");
    assert_eq!(node.pipeline().read_register(Register::Dropped(PortNo(0))), Ok(0));
}
