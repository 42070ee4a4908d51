//! Files with port traffic and node inputs. [`pcap::Writer`] writes pcapng files, and
//! [`pcap::Reader`] reads pcap and pcapng files. [`recording`] stores every input of a node for
//! replay. All of them are streams with bounded memory.
#![forbid(unsafe_code)]

pub mod pcap;
pub mod recording;

use axon_wire::Span;

/// A frame of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturedFrame {
    /// Time of the frame, relative to the first of the capture. A step back of the clock counts as
    /// zero.
    pub at: Span,
    /// Captured bytes, without FCS.
    pub bytes: Vec<u8>,
    /// Length of the frame on the wire, in bytes.
    pub wire_bytes: usize,
}
