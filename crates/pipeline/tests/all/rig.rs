//! A pipeline of four ports with carrier, and frames for it.

use axon_node::{Action, Drop, Input, Node};
use axon_pipeline::{Change, Pipeline, PipelineConfig, Sizes};
use axon_wire::{FrameBuf, MacAddr, PortNo, Time};

/// Frame types of IPv4 and of a label.
pub const IPV4: u16 = 0x0800;
pub const MPLS: u16 = 0x8847;

pub fn mac(last: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, last])
}

/// Fate of a frame.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Fate {
    pub sent: Vec<(u16, Vec<u8>)>,
    pub to_cpu: u32,
    pub dropped: Vec<Drop>,
}

impl Fate {
    pub fn ports(&self) -> Vec<u16> {
        self.sent.iter().map(|(port, _)| *port).collect()
    }
}

pub struct Rig {
    pub pipeline: Pipeline,
}

impl Rig {
    pub fn new(sizes: Sizes) -> Rig {
        let config = PipelineConfig { sizes, ..PipelineConfig::with_ports(4, mac(99)) };
        let mut pipeline = Pipeline::new(config);
        for port in (0..4).map(PortNo) {
            let up = Input::Link { port, up: true };
            pipeline.handle(Time::ZERO, up, &mut Vec::new());
        }
        Rig { pipeline }
    }

    pub fn commit(&mut self, changes: &[Change]) {
        self.pipeline.commit(changes).unwrap_or_else(|error| panic!("{error}"));
    }

    /// Returns the fate of a frame from a port; wires are free again at once.
    pub fn fate(&mut self, port: u16, frame: &[u8]) -> Fate {
        let (now, mut out) = (Time::ZERO, Vec::new());
        let frame = FrameBuf::new(frame);
        let input = Input::Frame { port: PortNo(port), frame, complete_at: now, intact: true };
        self.pipeline.handle(now, input, &mut out);
        let mut fate = Fate::default();
        for action in out {
            match action {
                Action::Transmit { port, frame, .. } => {
                    fate.sent.push((port.0, frame.bytes().to_vec()));
                    self.pipeline.handle(now, Input::TxDone { port }, &mut Vec::new());
                }
                Action::Dropped { reason, .. } => fate.dropped.push(reason),
                Action::Punt { .. } => fate.to_cpu += 1,
                other => panic!("{other:?}"),
            }
        }
        fate
    }
}

/// A frame between two hosts, of at least 60 bytes.
pub fn frame(to: MacAddr, from: MacAddr, ethertype: u16, rest: &[u8]) -> Vec<u8> {
    let mut bytes = [&to.0[..], &from.0, &ethertype.to_be_bytes(), rest].concat();
    bytes.resize(bytes.len().max(60), 0);
    bytes
}

/// Builds an IPv4 packet with this TTL to this address and a correct checksum.
pub fn packet(ttl: u8, to: [u8; 4]) -> Vec<u8> {
    let mut header = vec![0x45, 0, 0, 40, 0, 0, 0, 0, ttl, 17, 0, 0, 10, 0, 0, 1];
    header.extend(to);
    let sum = !checksum(&header);
    header[10..12].copy_from_slice(&(!sum).to_be_bytes());
    header.resize(40, 0xab);
    header
}

/// The checksum of RFC 1071.
pub fn checksum(header: &[u8]) -> u16 {
    let words = header.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
