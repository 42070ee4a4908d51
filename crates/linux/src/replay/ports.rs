//! Pcapng capture of the frames at the ports of a recorded node.

use super::node::Rebuilt;
use axon_capture::pcap::{CaptureOptions, Direction, LinkType, Writer};
use axon_capture::recording::Header;
use axon_node::{Action, Input, PortKind};
use axon_wire::{FrameBuf, PortNo, Time};
use std::io;
use std::path::Path;

/// Capture of all ports, or none.
pub(super) struct Capture {
    writer: Option<Writer>,
    names: Vec<String>,
    unix_nanos: u64,
}

impl Capture {
    /// Creates the file, readable only by its owner. An existing file is overwritten.
    pub(super) fn open(path: Option<&Path>, header: &Header) -> io::Result<Capture> {
        let options = path
            .map(|path| CaptureOptions { file_bytes_max: u64::MAX, ..CaptureOptions::to(path) });
        let writer = options.as_ref().map(Writer::create).transpose()?;
        Ok(Capture { writer, names: header.ports.clone(), unix_nanos: header.unix_nanos })
    }

    pub(super) fn input(&mut self, node: &Rebuilt, at: Time, input: &Input) -> io::Result<()> {
        match input {
            Input::Frame { port, frame, .. } => {
                self.frame(node, at, *port, Direction::Inbound, frame)
            }
            _ => Ok(()),
        }
    }

    pub(super) fn actions(
        &mut self,
        node: &Rebuilt,
        at: Time,
        actions: &[Action],
    ) -> io::Result<()> {
        for action in actions {
            if let Action::Transmit { port, frame, .. } = action {
                self.frame(node, at, *port, Direction::Outbound, frame)?;
            }
        }
        Ok(())
    }

    fn frame(
        &mut self,
        node: &Rebuilt,
        at: Time,
        port: PortNo,
        direction: Direction,
        frame: &FrameBuf,
    ) -> io::Result<()> {
        let (Some(writer), Some(name)) = (&mut self.writer, self.names.get(port.index())) else {
            return Ok(());
        };
        let link_type = match node.port_kind(port) {
            PortKind::Axon => LinkType::between_switches(frame.bytes()),
            _ => LinkType::ETHERNET,
        };
        let nanos = self.unix_nanos.saturating_add(at.as_nanos());
        writer.record((port.index(), name), link_type, direction, nanos, frame.bytes())
    }

    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.writer.as_mut().map_or(Ok(()), Writer::flush)
    }
}
