//! Whether lossless buffers of a running lab have stopped one another for good.
//!
//! Each switch tells what stands still in it, but their answers are of different moments, and a
//! circle put together from those may never have been there at once. So all are asked twice, the
//! second time after the last has answered the first. A buffer counts as standing if it says the
//! same both times, what it waits for and how many frames have ever left it: then it has
//! stood still in between as well. So all that count did at one and the same moment, the one
//! between the two rounds, and whether these wait for each other for ever is what
//! [`axon_prove::deadlock`] knows. A switch that does not answer counts as one in which
//! nothing stands; so a circle that was found is one, and that there is none is known only
//! if all have answered.

use anyhow::{Result, bail};
use axon_control::controller::topology::SwitchIndex;
use axon_fabric::cycle as cycle_names;
use axon_fabric::model::{End, Fabric};
use axon_prove::{BlockedBuffer, Buffer};
use axon_wire::{PortNo, Priority};
use serde::Serialize;
use serde_json::Value;

/// Buffers that wait for each other for ever.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Deadlock {
    /// For how long no frame has come into any of them or left it, in milliseconds.
    pub still_ms: u64,
    /// Their ingress ports, each waiting for the next, the first once more at the end.
    pub round: Vec<String>,
}

/// What a switch says of a buffer whose sender is to stop.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    standing: BlockedBuffer,
    left_frames: u64,
    still_ms: u64,
}

impl Seen {
    fn agrees_with(&self, earlier: &Seen) -> bool {
        (&self.standing, self.left_frames) == (&earlier.standing, earlier.left_frames)
    }
}

/// The circle that two rounds of answers agree on, if there is one; see the module. One round
/// compared with itself says whether it is worth while to ask again.
pub fn deadlock(fabric: &Fabric, first: &[Value], second: &[Value]) -> Option<Deadlock> {
    let earlier = seen(fabric, first);
    let mut stood = seen(fabric, second);
    stood.retain(|now| earlier.iter().any(|before| now.agrees_with(before)));
    let standing: Vec<BlockedBuffer> = stood.iter().map(|seen| seen.standing.clone()).collect();
    let cycle = axon_prove::deadlock(&standing)?;
    let on_circle =
        |seen: &&Seen| cycle.waits.iter().any(|wait| wait.buffer == seen.standing.buffer);
    let still_ms = stood.iter().filter(on_circle).map(|seen| seen.still_ms).min()?;
    Some(Deadlock { still_ms, round: cycle_names::ingress_ports(fabric, &cycle) })
}

/// Whether all switches have answered, where there are lossless classes at all.
///
/// # Errors
/// One has not.
pub fn check_answers(fabric: &Fabric, status: &[Value]) -> Result<()> {
    if fabric.dcb.as_ref().is_none_or(|dcb| dcb.lossless.is_empty()) {
        return Ok(());
    }
    for switch in fabric.switches.iter().map(|switch| switch.name.as_str()) {
        let answer = status.iter().find(|answer| answer["name"] == switch);
        let error = answer.map_or(Some("not there"), |answer| answer["error"].as_str());
        if let Some(error) = error {
            bail!("{switch} does not say whether anything stands still in it: {error}");
        }
    }
    Ok(())
}

/// Every buffer at the end of a link between switches that is said to stand still. It is named by
/// the end that sends.
fn seen(fabric: &Fabric, status: &[Value]) -> Vec<Seen> {
    let ways = fabric.links.iter().flat_map(|link| [(link.a, link.b), (link.b, link.a)]);
    let of_way = |(from, to): (End, End)| {
        let name = fabric.switches[to.switch].name.as_str();
        let answer = status.iter().find(|answer| answer["name"] == name);
        let port = answer.map(|answer| &answer["node"]["plane"]["flow_control"][to.port.index()]);
        let standing = port.and_then(|port| port["standing"].as_array()).into_iter().flatten();
        standing.filter_map(move |told| read(from, to.switch, told))
    };
    ways.flat_map(of_way).collect()
}

fn read(from: End, switch: usize, told: &Value) -> Option<Seen> {
    let mut waits = Vec::new();
    for queue in told["waits"].as_array()? {
        let egress = PortNo(queue["egress"].as_u64()?.try_into().ok()?);
        let stopped = queue["stopped"].as_array()?.iter();
        waits.push(stopped.map(|of| buffer(switch, egress, of)).collect::<Option<_>>()?);
    }
    Some(Seen {
        standing: BlockedBuffer {
            buffer: buffer(from.switch, from.port, &told["priority"])?,
            waits,
        },
        left_frames: told["left_frames"].as_u64()?,
        still_ms: told["still_ms"].as_u64()?,
    })
}

/// The buffer at the far end of a switch's port.
fn buffer(from: usize, egress: PortNo, priority: &Value) -> Option<Buffer> {
    let priority = Priority::new(priority.as_u64()?.try_into().ok()?)?;
    Some(Buffer { from: SwitchIndex(from as u32), egress, priority })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A ring of three, each with a host on port 0: s1-p1 and s2-p1 are a link, s2-p2 and s3-p1,
    /// s3-p2 and s1-p2.
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

    /// What came in by one port stands still and waits for another, which is stopped.
    fn switch(name: &str, ingress: usize, egress: u16, left: u64, still_ms: u64) -> Value {
        let mut ports = [json!({}), json!({}), json!({})];
        let waits = json!([{ "egress": egress, "stopped": [3] }]);
        ports[ingress] = json!({ "standing": [{ "priority": 3, "left_frames": left,
            "still_ms": still_ms, "waits": waits }] });
        json!({ "name": name, "node": { "plane": { "flow_control": ports } } })
    }

    /// All three wait clockwise; s2 has let `left` frames go.
    fn look(left: u64) -> Vec<Value> {
        vec![switch("s1", 2, 1, 4, 90), switch("s2", 1, 2, left, 70), switch("s3", 1, 2, 0, 80)]
    }

    #[test]
    fn a_circle_that_two_looks_agree_on_is_a_deadlock_since_its_last_frame_moved() {
        let found = deadlock(&ring(), &look(7), &look(7)).unwrap();
        assert_eq!(found.round, ["s2-p1", "s3-p1", "s1-p2", "s2-p1"]);
        assert_eq!(found.still_ms, 70);
    }

    #[test]
    fn a_frame_that_left_in_between_shows_that_they_did_not_stand_at_once() {
        assert_eq!(deadlock(&ring(), &look(7), &look(8)), None);
    }

    #[test]
    fn who_may_send_or_does_not_answer_is_on_no_circle() {
        let mut look = look(7);
        look[2]["node"]["plane"]["flow_control"][1]["standing"][0]["waits"][0]["stopped"] =
            json!([]);
        assert_eq!(deadlock(&ring(), &look, &look), None);
        assert!(check_answers(&ring(), &look).is_ok());
        look[2] = json!({ "name": "s3", "error": "refused" });
        assert_eq!(deadlock(&ring(), &look, &look), None);
        let silent = check_answers(&ring(), &look).unwrap_err().to_string();
        assert_eq!(silent, "s3 does not say whether anything stands still in it: refused");
        // The host at s3-p0 has stopped its switch: hosts take what they get, sooner or later.
        look[2] = switch("s3", 1, 0, 0, 80);
        assert_eq!(deadlock(&ring(), &look, &look), None);
    }
}
