//! Traffic of hosts: the `traffic` section of a fabric file.
//!
//! An entry gives the application (`udp`, `tcp`, ...), the hosts (`from` and `to`, a list of
//! `pairs`, or a `pattern` over `hosts`), and the times. Loading converts it to plain data: hosts
//! by index, every pattern expanded, every number checked.

mod check;
mod entry;
mod flows;
mod pattern;
mod place;
mod sizes;

pub use entry::{AppEntry, ArpPattern, Entry};
pub use pattern::arp_questions;
pub use sizes::Sizes;

use crate::capture::CapturedFrame;
use axon_wire::priority::Priority;
use axon_wire::{Bytes, Span};
use schemars::JsonSchema;
use serde::Deserialize;
use std::path::PathBuf;
use std::sync::Arc;

pub(crate) use check::resolve;

/// One entry, with every host by its index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// Name in results.
    pub name: String,
    /// Start, counted from when the network is ready.
    pub start: Span,
    /// Stop, counted from when the network is ready; `None` for the end of the run.
    pub stop: Option<Span>,
    /// Hosts that take part, by index, in the order of the file.
    pub hosts: Vec<usize>,
    /// Flows from one host to another, by index.
    pub flows: Vec<(usize, usize)>,
    /// Priority of all its frames, in both directions.
    pub priority: Priority,
    /// Application.
    pub app: App,
}

impl Traffic {
    /// Returns the time at which its first flows have something to send, as far as that is known in
    /// advance; `None` for a replay without frames.
    pub fn first_at(&self) -> Option<Span> {
        match &self.app {
            App::Replay { frames, .. } => frames.first().map(|frame| self.start + frame.at),
            _ => Some(self.start),
        }
    }
}

/// Transport protocol of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// On TCP connections.
    Tcp(Tcp),
    /// In UDP datagrams.
    Udp,
}

/// Settings of TCP connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tcp {
    /// Congestion control, in addition to the window; only streams have others than Reno and none.
    pub congestion: Congestion,
    /// Size of the send buffer and of the receive buffer, in bytes.
    pub buffer: Bytes,
}

/// Congestion control algorithm of TCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "CongestionName")]
pub enum Congestion {
    /// Slow start and congestion avoidance (RFC 5681).
    #[default]
    Reno,
    /// CUBIC: a cubic function of the time since the last loss (RFC 9438).
    Cubic,
    /// DCTCP (RFC 8257); hosts send ECN-capable packets.
    Dctcp,
    /// No algorithm: the buffers are the only limit.
    None,
}

/// Algorithm of an all-reduce.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reduction {
    /// Around a ring in 2 (N - 1) steps of an N-th of the data each.
    #[default]
    Ring,
    /// Up a binary tree and down again, all of the data on each edge.
    Tree,
}

/// Fields that replay rewrites in the frames of a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rewrite {
    /// Source and destination MAC become those of the two hosts.
    #[default]
    Macs,
    /// MACs and IPv4 addresses become those of the two hosts, and checksums are updated.
    Addresses,
    /// Frames are sent as they were captured.
    Nothing,
}

/// A PostMark-like file service: a client that creates, reads, extends and deletes files on a
/// server, one call after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileService {
    /// Transport protocol of calls.
    pub transport: Transport,
    /// Number of files before the transactions begin.
    pub files: u32,
    /// Number of transactions; `None` for until the end of the run.
    pub transactions: Option<u64>,
    /// Size of the smallest file.
    pub size_min: Bytes,
    /// Size of the largest file.
    pub size_max: Bytes,
    /// Maximum bytes of a file that one call reads or writes.
    pub block: Bytes,
    /// Number of ten transactions that read; the others append.
    pub read_bias: u32,
    /// Number of ten transactions that create; the others delete.
    pub create_bias: u32,
    /// Processor time of the server for each call.
    pub server: Span,
    /// Processor time of the client between calls.
    pub client: Span,
}

/// Application that runs between hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum App {
    /// Datagrams at a constant rate on each flow.
    Udp {
        /// Bytes of payload in each datagram.
        payload: u32,
        /// Interval between datagrams.
        interval: Span,
        /// Number of datagrams; `None` for until the end.
        count: Option<u64>,
    },
    /// A byte stream on each flow.
    Tcp {
        /// Bytes to send; `None` for until the end.
        bytes: Option<Bytes>,
        /// Settings of the connections.
        tcp: Tcp,
    },
    /// Requests from the first host of each flow to the second.
    RequestResponse {
        /// Transport protocol of requests and responses.
        transport: Transport,
        /// Bytes of a request.
        request: u32,
        /// Bytes of a response.
        response: u32,
        /// Time from a response to the next request.
        think: Span,
        /// Processor time of the server for each request.
        service: Span,
        /// Number of requests; `None` for until the end.
        count: Option<u64>,
    },
    /// Requests from the second host of all flows to the first hosts at once; the next round
    /// follows when all have answered.
    Incast {
        /// Transport protocol of requests and responses.
        transport: Transport,
        /// Bytes of each response.
        bytes: u32,
        /// Time from the last response to the next round.
        think: Span,
        /// Number of rounds; `None` for until the end.
        rounds: Option<u64>,
    },
    /// Bursts of datagrams with pauses between them on each flow.
    OnOff {
        /// Bytes of payload in each datagram.
        payload: u32,
        /// Interval between datagrams of a burst.
        interval: Span,
        /// Bytes of payload in a burst.
        on: Sizes,
        /// Duration of a pause, in ticks of 10 ps.
        off: Sizes,
    },
    /// Sum over all hosts.
    AllReduce {
        /// Algorithm of the reduction.
        reduction: Reduction,
        /// Bytes at each host.
        bytes: Bytes,
        /// Number of rounds, one after the other.
        rounds: u64,
        /// Settings of the connections.
        tcp: Tcp,
    },
    /// File service with the first host of each flow as a client of the second.
    FileService(FileService),
    /// ARP requests from the first host of each flow for the second's MAC. A host sends its
    /// requests in order, at this pace.
    Arp {
        /// Interval between requests of a host.
        interval: Span,
    },
    /// Frames of a capture, sent by the first host of each flow.
    Replay {
        /// File of the capture; empty if the frames are from none.
        file: PathBuf,
        /// Frames, each with its time relative to the first.
        frames: Arc<[CapturedFrame]>,
        /// Fields rewritten in the frames.
        rewrite: Rewrite,
    },
    /// Echo requests from the first host of each flow to the second.
    Ping {
        /// Interval between requests.
        interval: Span,
        /// Number of requests, up to 65,535.
        count: u16,
    },
}

impl App {
    /// Returns the key of the application in the file.
    pub const fn name(&self) -> &'static str {
        match self {
            App::Udp { .. } => "udp",
            App::Tcp { .. } => "tcp",
            App::RequestResponse { .. } => "request_response",
            App::Incast { .. } => "incast",
            App::OnOff { .. } => "on_off",
            App::AllReduce { .. } => "all_reduce",
            App::FileService(_) => "file_service",
            App::Arp { .. } => "arp",
            App::Replay { .. } => "replay",
            App::Ping { .. } => "ping",
        }
    }
}
