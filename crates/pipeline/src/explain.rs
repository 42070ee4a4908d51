//! Explanation of a frame's path, stage by stage, for operators (`axon trace-packet`).

use crate::action::{Action, Interface, Mirror, Target};
use crate::frame_type::{FrameType, Parsed};
use crate::modify::{self, Context};
use crate::pipeline::Pipeline;
use crate::tables::Hit;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use axon_node::Drop;
use axon_plane::HeaderKind;
use axon_plane::flow_hash::{choose, flow_hash};
use axon_wire::{FrameBuf, PortNo, vlan};
use core::fmt::Write;
use serde::{Deserialize, Serialize};

/// Maximum number of matching TCAM entries that are listed.
const MATCHES_MAX: usize = 32;

/// One stage of the pipeline, and its effect on the frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stage {
    /// Name of the stage: `parser`, `learn`, `key`, `lookup`, `mirror`, `modify`, `out`.
    pub name: String,
    /// Effect of the stage; actions are in the syntax of `axon table set`.
    pub text: String,
}

/// Path of one frame. Nothing is counted and nothing is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explanation {
    /// The stages, in order.
    pub stages: Vec<Stage>,
    /// The egress ports, each with the frame as it would leave.
    pub sent: Vec<(PortNo, Vec<u8>)>,
    /// True if the control program would get the frame, or a copy.
    pub to_cpu: bool,
}

impl Explanation {
    fn say(&mut self, name: &str, text: String) {
        self.stages.push(Stage { name: name.to_string(), text });
    }
}

impl Pipeline {
    /// Explains the path of a frame received on `ingress`, with the current tables.
    pub fn explain(&self, ingress: PortNo, frame: &[u8]) -> Explanation {
        let mut way = Explanation { stages: Vec::new(), sent: Vec::new(), to_cpu: false };
        let limit = self.config().frame_bytes_max;
        if let Some(reason) = axon_plane::ethernet::fault(frame, limit) {
            way.say("parser", format!("dropped: {}", reason.name()));
            return way;
        }
        if HeaderKind::of_ethernet(frame) == HeaderKind::MacControl {
            way.say("parser", format!("MAC control: dropped: {}", Drop::MacControl.name()));
            return way;
        }
        let parsed = self.tables().parse(frame, ingress);
        way.say("parser", describe(&parsed));
        if self.tables().learns(&parsed, ingress) {
            way.to_cpu = true;
            way.say("learn", "the source is new here: a copy to the control program".into());
        }
        let priority = match parsed.frame_type {
            FrameType::Axon => self.axon_priority(frame),
            _ => vlan::priority_of(frame),
        };
        let priority = priority.value();
        for (id, key) in self.tables().keys_of(frame, &parsed, ingress, priority) {
            way.say("key", format!("udlk {id} = {}", hex(&key)));
        }
        let matches = self.tables().matches(frame, &parsed, ingress, priority);
        let decides = |(_, action): &(Hit, &Action)| action.target != Target::Tables;
        let deciding = matches.iter().position(decides);
        for (place, (hit, action)) in matches.iter().take(MATCHES_MAX).enumerate() {
            let verdict = match place {
                _ if Some(place) == deciding => "wins",
                0 => "wins, and leaves the decision to those below",
                _ => "is overruled",
            };
            let name = self.tables().name_of(*hit);
            way.say("lookup", format!("{name} matches and {verdict}: {action}"));
        }
        if let Some(more) = matches.len().checked_sub(MATCHES_MAX).filter(|more| *more > 0) {
            way.say("lookup", format!("{more} more entries match and are overruled"));
        }
        if let Some((_, first)) = matches.first().filter(|&first| !decides(first)) {
            first.mirror.iter().for_each(|&mirror| self.explain_mirror(&mut way, frame, mirror));
        }
        match deciding.and_then(|place| matches.get(place)) {
            None if matches.is_empty() => {
                way.say("lookup", "nothing matches: dropped: no_route".into());
            }
            None => way.say("lookup", "nothing decides: dropped: no_route".into()),
            Some((_, action)) => self.explain_action(&mut way, ingress, frame, parsed, action),
        }
        way
    }

    fn explain_mirror(&self, way: &mut Explanation, frame: &[u8], mirror: Mirror) {
        let fate = match mirror {
            Mirror::Cpu => {
                way.to_cpu = true;
                "a copy as it came in"
            }
            Mirror::Port(port) if self.ports().wires().is_up(port) => {
                way.sent.push((port, frame.to_vec()));
                "a copy as it came in"
            }
            Mirror::Port(_) => "dropped: port_down",
        };
        way.say("mirror", format!("{mirror}: {fate}"));
    }

    fn explain_action(
        &self,
        way: &mut Explanation,
        ingress: PortNo,
        frame: &[u8],
        mut parsed: Parsed,
        action: &Action,
    ) {
        action.mirror.iter().for_each(|&mirror| self.explain_mirror(way, frame, mirror));
        let (objects, mut buffer) = (self.tables().objects(), FrameBuf::new(frame));
        let tunnel = |number| objects.tunnel(number);
        let hop_width = self.config().hop_width;
        let context = Context { ingress, hop_width, tunnel: &tunnel };
        for change in &action.modify {
            if let Err(reason) = modify::modify(&mut buffer, &mut parsed, change, context) {
                return way.say("modify", format!("{change}: dropped: {}", reason.name()));
            }
            way.say("modify", change.to_string());
        }
        let interface = |number: u16| objects.interface(number).copied();
        let is_open = |port: PortNo| self.ports().wires().is_up(port);
        match action.target {
            Target::Drop | Target::Tables => way.say("out", "dropped: denied".into()),
            Target::Cpu => {
                way.to_cpu = true;
                way.say("out", "to the control program".into());
            }
            Target::Port(port) => self.explain_out(way, &buffer, parsed, &Interface::of(port)),
            Target::Interface(number) => match interface(number) {
                Some(one) => self.explain_out(way, &buffer, parsed, &one),
                None => way.say("out", format!("no interface {number}: dropped: denied")),
            },
            Target::Group(number) => {
                let members = objects.members(number).iter().filter_map(|&one| interface(one));
                let open = |one: &Interface| one.port != ingress && is_open(one.port);
                let open: Vec<Interface> = members.filter(open).collect();
                if open.is_empty() {
                    way.say("out", "no other member has carrier: dropped: filtered".into());
                }
                open.iter().for_each(|one| self.explain_out(way, &buffer, parsed, one));
            }
            Target::Spread(number) => {
                let hash = flow_hash(self.config().seed, frame);
                let usable = |one: u16| interface(one).is_some_and(|one| is_open(one.port));
                match choose(hash, objects.members(number), usable).and_then(interface) {
                    Some(one) => self.explain_out(way, &buffer, parsed, &one),
                    None => way.say("out", "no member has carrier: dropped: port_down".into()),
                }
            }
        }
    }

    fn explain_out(
        &self,
        way: &mut Explanation,
        frame: &FrameBuf,
        mut parsed: Parsed,
        interface: &Interface,
    ) {
        let mut frame = frame.clone();
        let mut text = format!("port {}", interface.port);
        if let Some(mac) = interface.destination {
            let _ = write!(text, ", destination {mac}");
        }
        if let Some(mac) = interface.source {
            let _ = write!(text, ", source {mac}");
        }
        if let Err(reason) = modify::rewrite(&mut frame, &mut parsed, interface) {
            let _ = write!(text, ": dropped: {}", reason.name());
        } else if !self.ports().wires().is_up(interface.port) {
            text.push_str(": dropped: port_down");
        } else {
            way.sent.push((interface.port, frame.bytes().to_vec()));
        }
        way.say("out", text);
    }
}

fn describe(parsed: &Parsed) -> String {
    let mut text = format!("{}", parsed.frame_type);
    if parsed.inner != parsed.frame_type {
        let _ = write!(text, " {}", parsed.inner);
    }
    if let Some(mac) = parsed.destination {
        let _ = write!(text, ", destination {mac}");
    }
    if let Some(address) = parsed.ipv4 {
        let _ = write!(text, ", address {address}");
    }
    if let Some(label) = parsed.label {
        let _ = write!(text, ", label {label}");
    }
    text
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}
