//! Describes inputs and actions as text, to show differences.

use axon_capture::recording::{encode_action, hash};
use axon_node::{Action, Input};
use axon_wire::{FrameBuf, PortNo, Time};
use std::fmt::Write;

/// Maximum number of frame bytes shown.
const SHOWN_BYTES_MAX: usize = 64;

/// Returns the name of a port.
fn name(ports: &[String], port: PortNo) -> String {
    ports.get(port.index()).cloned().unwrap_or_else(|| format!("port {port}"))
}

fn shown(frame: &FrameBuf) -> String {
    let bytes = frame.bytes();
    let mut text = format!("{} bytes: ", bytes.len());
    for byte in bytes.iter().take(SHOWN_BYTES_MAX) {
        let _ = write!(text, "{byte:02x}");
    }
    if bytes.len() > SHOWN_BYTES_MAX {
        text.push_str("...");
    }
    text
}

/// Describes an input that arrives at `at`.
pub(super) fn input(ports: &[String], at: Time, input: &Input) -> String {
    match input {
        Input::Frame { port, frame, complete_at, intact } => {
            let port = name(ports, *port);
            let later = if *complete_at > at {
                format!(", complete at {complete_at}")
            } else {
                String::new()
            };
            let fcs = if *intact { "" } else { ", FCS wrong" };
            format!("a frame received at {port}{later}{fcs}, {}", shown(frame))
        }
        Input::TxDone { port } => format!("{} is ready for the next frame", name(ports, *port)),
        Input::Link { port, up: true } => format!("{} has carrier", name(ports, *port)),
        Input::Link { port, up: false } => format!("{} has lost carrier", name(ports, *port)),
        Input::Timeout => "a deadline has come".into(),
        Input::Command(command) => format!("a command: {:?}", command.request),
    }
}

/// Describes an action of a node. A hash distinguishes frames of the same length.
pub(super) fn action(ports: &[String], action: &Action) -> String {
    let mut bytes = Vec::new();
    encode_action(action, &mut bytes);
    let hash = hash(&bytes);
    let text = match action {
        Action::Transmit { port, frame, .. } => {
            format!("transmit at {}, {}", name(ports, *port), shown(frame))
        }
        Action::Dropped { ingress, reason, frame } => {
            let (port, reason) = (name(ports, *ingress), reason.name());
            format!("drop ({reason}) a frame that came in by {port}, {}", shown(frame))
        }
        Action::Note(note) => format!("note {note:?}"),
        Action::Reply(reply) => format!("reply {:?}", reply.result),
        Action::Store(change) => format!("store {change:?}"),
        Action::Punt { .. } | Action::RouteChanged(_) | Action::Lost => {
            "an action of a bare data plane".into()
        }
    };
    format!("{text} ({hash:016x})")
}
