//! What a frame goes through inside a switch: the stages of its pipeline and their times.

use axon_wire::Span;

/// A switch's timing. The plane decides what happens to a frame; this says when.
///
/// A frame's head enters the pipeline once `head_bytes` bytes of it (preamble included) are
/// in, or, without cut-through, once its last bit is in. The ingress stages then pass before
/// the plane sees it, and the egress stages between the plane's decision to transmit and the
/// first bit on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// The name in fabric files: `ideal`, `axon-netfpga`, `store-and-forward`, ...
    pub name: String,
    /// Whether a frame may leave before its tail has come.
    pub cut_through: bool,
    /// Bytes, preamble included, that must be in before the first stage of a cut-through
    /// pipeline begins; 0 where the first stage includes that time.
    pub head_bytes: u64,
    /// The stages for a frame from another switch, in order.
    pub from_switch: Vec<Stage>,
    /// The stages for a frame from a host, in order.
    pub from_host: Vec<Stage>,
}

/// One stage of a pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// What happens in it.
    pub name: String,
    /// Before or behind the output buffer.
    pub side: Side,
    /// How long it takes.
    pub time: Span,
    /// How much longer for each byte of the frame (a store-and-forward memory, say).
    pub time_per_byte: Span,
}

/// Where a stage stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// Before the plane decides.
    Ingress,
    /// Between the output buffer and the wire.
    Egress,
}

impl Device {
    /// Store and forward in no time at all: what the wires add is all there is.
    pub fn ideal() -> Device {
        Device {
            name: "ideal".into(),
            cut_through: false,
            head_bytes: 0,
            from_switch: Vec::new(),
            from_host: Vec::new(),
        }
    }
}
