//! Detects deadlocked lossless buffers in a running lab.
//!
//! Each switch reports its blocked buffers, but the reports are from different moments, so a cycle
//! combined from them may never have existed. All switches are therefore queried twice, the second
//! time after the last one has answered the first query. A buffer counts as blocked if both reports
//! agree on the buffers it waits for and on the number of frames that have ever left it. It was
//! then also blocked in between. So all counted buffers were blocked at one moment between the two
//! rounds, and [`axon_prove::deadlock`] finds whether they wait for each other forever. A switch
//! that does not answer counts as one without blocked buffers. A cycle that is found is therefore
//! real. The absence of cycles is certain only if all switches have answered.

use anyhow::{Result, bail};
use axon_controller::topology::SwitchIndex;
use axon_fabric::cycle as cycle_names;
use axon_fabric::model::{End, Fabric};
use axon_linux::status::{Answer, NodeStatus};
use axon_node::telemetry::{BlockedBuffer, NodeTelemetry, PausedQueue};
use axon_prove::Buffer;
use axon_wire::{PortNo, Priority};
use serde::Serialize;

/// Cycle of buffers that wait for each other forever.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Deadlock {
    /// Time for which no frame has entered or left any of the buffers, in milliseconds.
    pub blocked_ms: u64,
    /// Ingress ports of the buffers, each waiting for the next; the first is repeated at the end.
    pub cycle: Vec<String>,
}

/// Blocked buffer, as its switch reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    blocked: axon_prove::BlockedBuffer,
    left_frames: u64,
    blocked_us: u64,
}

impl Seen {
    fn agrees_with(&self, earlier: &Seen) -> bool {
        (&self.blocked, self.left_frames) == (&earlier.blocked, earlier.left_frames)
    }
}

/// Returns a cycle on which two rounds of answers agree, if there is one (see the module).
/// Comparing one round with itself shows whether a second round is needed.
pub fn deadlock(fabric: &Fabric, first: &[NodeStatus], second: &[NodeStatus]) -> Option<Deadlock> {
    let earlier = seen(fabric, first);
    let mut blocked = seen(fabric, second);
    blocked.retain(|now| earlier.iter().any(|before| now.agrees_with(before)));
    let buffers: Vec<axon_prove::BlockedBuffer> =
        blocked.iter().map(|seen| seen.blocked.clone()).collect();
    let cycle = axon_prove::deadlock(&buffers)?;
    let on_cycle = |seen: &&Seen| cycle.waits.iter().any(|wait| wait.buffer == seen.blocked.buffer);
    let blocked_us = blocked.iter().filter(on_cycle).map(|seen| seen.blocked_us).min()?;
    let cycle = cycle_names::ingress_ports(fabric, &cycle);
    Some(Deadlock { blocked_ms: blocked_us / 1_000, cycle })
}

/// If there are lossless classes, checks that all switches have answered.
///
/// # Errors
/// A switch has not answered.
pub(crate) fn check_answers(fabric: &Fabric, status: &[NodeStatus]) -> Result<()> {
    if fabric.dcb.as_ref().is_none_or(|dcb| dcb.lossless.is_empty()) {
        return Ok(());
    }
    for switch in fabric.switches.iter().map(|switch| switch.name.as_str()) {
        let error = match status.iter().find(|status| status.name() == switch) {
            None => "not there",
            Some(NodeStatus { answer: Answer::Failed { error, .. }, .. }) => error,
            Some(_) => continue,
        };
        bail!("{switch} does not report whether any of its buffers is blocked: {error}");
    }
    Ok(())
}

/// Returns every blocked buffer at the end of a link between switches. Each is named by the port at
/// the sending end.
fn seen(fabric: &Fabric, status: &[NodeStatus]) -> Vec<Seen> {
    let directions = fabric.links.iter().flat_map(|link| [(link.a, link.b), (link.b, link.a)]);
    let of_direction = |(from, to): (End, End)| {
        let name = fabric.switches[to.switch].name.as_str();
        let answer = status.iter().find(|status| status.name() == name);
        let plane = answer.and_then(NodeStatus::node).and_then(NodeTelemetry::plane);
        let port = plane.and_then(|plane| plane.ports.get(to.port.index()));
        let flow_control = port.and_then(|port| port.flow_control.as_ref());
        let blocked = flow_control.map_or(&[][..], |flow| &flow.blocked);
        blocked.iter().map(move |blocked| read(from, to.switch, blocked))
    };
    directions.flat_map(of_direction).collect()
}

fn read(from: End, switch: usize, blocked: &BlockedBuffer) -> Seen {
    let queue = |queue: &PausedQueue| {
        queue.paused.iter().map(|priority| buffer(switch, queue.egress, priority)).collect()
    };
    Seen {
        blocked: axon_prove::BlockedBuffer {
            buffer: buffer(from.switch, from.port, blocked.priority),
            waits: blocked.queues.iter().map(queue).collect(),
        },
        left_frames: blocked.left_frames,
        blocked_us: blocked.blocked_us,
    }
}

/// Returns the buffer at the far end of a switch's port.
fn buffer(from: usize, egress: PortNo, priority: Priority) -> Buffer {
    Buffer { from: SwitchIndex(from as u32), egress, priority }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use axon_node::telemetry::FlowControl;
    use axon_wire::PrioritySet;

    /// Ring of three switches, each with a host on port 0. The links join s1-p1 and s2-p1, s2-p2
    /// and s3-p1, and s3-p2 and s1-p2.
    fn ring() -> Fabric {
        let text = "name: ring
dcb: { classes: [{ priorities: [0, 1, 2, 4, 5, 6, 7] }, { priorities: [3], lossless: true }] }
topology:
  listed:
    switches: [s1, s2, s3]
    hosts: { h1: { at: s1 }, h2: { at: s2 }, h3: { at: s3 } }
    links: [[s1, s2], [s2, s3], [s3, s1]]
";
        axon_fabric::parse("ring.yaml".as_ref(), text).expect("a fabric")
    }

    /// Returns the status of a switch on which another, paused port blocks frames from one port.
    fn switch(name: &str, ingress: usize, egress: u16, left: u64, blocked_ms: u64) -> NodeStatus {
        let three = Priority::ALL[3];
        let queue = PausedQueue { egress: PortNo(egress), paused: PrioritySet::only(three) };
        let blocked = BlockedBuffer {
            priority: three,
            left_frames: left,
            blocked_us: blocked_ms * 1_000,
            queues: vec![queue],
        };
        let mut switch = testing::switch(3);
        switch.plane.ports[ingress].flow_control =
            Some(FlowControl { blocked: vec![blocked], ..FlowControl::default() });
        testing::status(name, switch)
    }

    /// Returns the status of three switches that wait for each other clockwise. s2 has sent `left`
    /// frames.
    fn look(left: u64) -> Vec<NodeStatus> {
        vec![switch("s1", 2, 1, 4, 90), switch("s2", 1, 2, left, 70), switch("s3", 1, 2, 0, 80)]
    }

    #[test]
    fn a_cycle_that_two_looks_agree_on_is_a_deadlock_since_its_last_frame_moved() {
        let found = deadlock(&ring(), &look(7), &look(7)).unwrap();
        assert_eq!(found.cycle, ["s2-p1", "s3-p1", "s1-p2", "s2-p1"]);
        assert_eq!(found.blocked_ms, 70);
    }

    #[test]
    fn a_frame_that_left_in_between_shows_that_they_were_not_blocked_at_once() {
        assert_eq!(deadlock(&ring(), &look(7), &look(8)), None);
    }

    #[test]
    fn a_switch_that_may_send_or_does_not_answer_is_on_no_cycle() {
        let mut look = look(7);
        let Answer::Status(status) = &mut look[2].answer else { unreachable!() };
        let NodeTelemetry::Switch(s3) = &mut status.node else { unreachable!() };
        let flow_control = s3.plane.ports[1].flow_control.as_mut().unwrap();
        flow_control.blocked[0].queues[0].paused = PrioritySet::EMPTY;
        assert_eq!(deadlock(&ring(), &look, &look), None);
        assert!(check_answers(&ring(), &look).is_ok());
        look[2] = testing::failed("s3", "refused");
        assert_eq!(deadlock(&ring(), &look, &look), None);
        let silent = check_answers(&ring(), &look).unwrap_err().to_string();
        let expected = "s3 does not report whether any of its buffers is blocked: refused";
        assert_eq!(silent, expected);
        // The host at s3-p0 has paused its switch, but hosts always drain eventually.
        look[2] = switch("s3", 1, 0, 0, 80);
        assert_eq!(deadlock(&ring(), &look, &look), None);
    }
}
