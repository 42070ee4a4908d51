//! Frames of an agent that are shorter than the Ethernet header: each is dropped, once, in any data
//! plane of its switch.

use super::rogue::Rogue;
use super::support::Switch;
use axon_linux::agent_port::layout::{Descriptor, Kind};
use axon_node::{Action, Input, Node, PortKind};
use axon_pipeline::{Pipeline, PipelineConfig};
use axon_plane::{Plane, PlaneConfig};
use axon_wire::{FrameBuf, MacAddr, PortNo, Time};

const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);

/// Returns the actions of a node for a frame received at port 0.
fn outcome(node: &mut impl Node, frame: FrameBuf) -> Vec<Action> {
    let (port, mut out) = (PortNo(0), Vec::new());
    let input = Input::Frame { port, frame, complete_at: Time::ZERO, intact: true };
    node.handle(Time::ZERO, input, &mut out);
    out
}

pub fn frames_of_no_byte_up_to_13_end_once_in_every_data_plane() {
    let mut switch = Switch::with(|setup| setup.frame_bytes_max = 64);
    let mut rogue = Rogue::attach(&mut switch);
    let mut pipeline = Pipeline::new(PipelineConfig::with_ports(2, MAC));
    let kinds = [PortKind::default(), PortKind::Axon, PortKind::Host];
    let mut planes = kinds.map(|kind| {
        let mut plane = Plane::new(PlaneConfig::with_ports(2, MAC));
        plane.set_kind(PortNo(0), kind);
        plane
    });
    let up = |port| Input::Link { port: PortNo(port), up: true };
    for port in 0..2 {
        planes.iter_mut().for_each(|plane| plane.handle(Time::ZERO, up(port), &mut Vec::new()));
        pipeline.handle(Time::ZERO, up(port), &mut Vec::new());
    }
    for fill in [0, 0x88, 0xff] {
        rogue.memory.write(rogue.layout.buffer_at(0), &[fill; 13]);
        for bytes in 0..14 {
            let handle = axon_cache::Handle::NONE;
            rogue.answer(Descriptor { bytes, ..Descriptor::new(Kind::Send, handle) });
            let frames = switch.take();
            let [frame] = &frames[..] else { panic!("{} frames", frames.len()) };
            assert_eq!(frame.bytes(), vec![fill; bytes as usize]);
            let mut ends = vec![outcome(&mut pipeline, FrameBuf::new(frame.bytes()))];
            let ended = |plane| outcome(plane, FrameBuf::new(frame.bytes()));
            ends.extend(planes.iter_mut().map(ended));
            for end in ends {
                let ended = matches!(&end[..], [Action::Dropped { .. } | Action::Punt { .. }]);
                assert!(ended, "{bytes} bytes of {fill:#x}: {end:?}");
            }
        }
    }
}
