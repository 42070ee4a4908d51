//! What hosts send: the `traffic` section of a fabric file.
//!
//! An entry says what runs (`udp`, `tcp`, ...), between which hosts (`from` and `to`, a list
//! of `pairs`, or a `pattern` over `hosts`), and when. Loading makes plain data of it:
//! hosts by index, every pattern written out, every number checked.

mod check;
mod entry;
mod flows;
mod pattern;
mod sizes;

pub use entry::{
    AllReduceEntry, ArpEntry, ArpPattern, Entry, FileServiceEntry, IncastEntry, OnOffEntry,
    Pattern, PingEntry, ReplayEntry, RequestEntry, SizesEntry, SpansEntry, TcpEntry, TransportName,
    UdpEntry,
};
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

/// One entry, every host by its index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// Its name in results.
    pub name: String,
    /// When it starts, after the network is ready.
    pub start: Span,
    /// When it stops, after the network is ready; at the end of the run without.
    pub stop: Option<Span>,
    /// The hosts that take part, by index, in the order of the file.
    pub hosts: Vec<usize>,
    /// From which host to which, by index.
    pub flows: Vec<(usize, usize)>,
    /// The priority of all its frames, both ways.
    pub priority: Priority,
    /// What they run.
    pub app: App,
}

impl Traffic {
    /// When its first flows have something to send, as far as that is known beforehand; `None`
    /// for a replay without frames.
    pub fn first_at(&self) -> Option<Span> {
        match &self.app {
            App::Replay { frames, .. } => frames.first().map(|frame| self.start + frame.at),
            _ => Some(self.start),
        }
    }
}

/// How an application talks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// On connections.
    Tcp(Tcp),
    /// In datagrams.
    Udp,
}

/// How connections behave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tcp {
    /// What holds the sender back, beside the window; Reno or nothing but for streams.
    pub congestion: Congestion,
    /// Bytes of the send and of the receive buffer.
    pub buffer: Bytes,
}

/// What decides how much of a stream may be in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "CongestionName")]
pub enum Congestion {
    /// Slow start and congestion avoidance (RFC 5681).
    #[default]
    Reno,
    /// CUBIC: a cubic function of the time since the last loss (RFC 9438).
    Cubic,
    /// DCTCP (RFC 8257); the hosts send packets that switches may mark.
    Dctcp,
    /// No algorithm: the buffers alone hold the sender back.
    None,
}

/// How an all-reduce moves its data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reduction {
    /// Around a ring in 2 (N - 1) steps of an N-th of the data each.
    #[default]
    Ring,
    /// Up a binary tree and down again, all of the data on each edge.
    Tree,
}

/// What replay changes in the frames of a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rewrite {
    /// Source and destination MAC become those of the two hosts.
    #[default]
    Macs,
    /// MACs and IPv4 addresses become those of the two hosts, checksums with them.
    Addresses,
    /// Frames are sent as they were captured.
    Nothing,
}

/// A PostMark-like file service: a client that creates, reads, extends and deletes files on a
/// server, one call after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileService {
    /// The transport protocol that calls use.
    pub transport: Transport,
    /// Files before the transactions begin.
    pub files: u32,
    /// Transactions; until the end of the run without.
    pub transactions: Option<u64>,
    /// The smallest file.
    pub size_min: Bytes,
    /// The largest size of a file.
    pub size_max: Bytes,
    /// The most of a file that one call reads or writes.
    pub block: Bytes,
    /// Of ten transactions, how many read; the others append.
    pub read_bias: u32,
    /// Of ten transactions, how many create; the others delete.
    pub create_bias: u32,
    /// The server's processor time for each call.
    pub server: Span,
    /// The client's processor time between calls.
    pub client: Span,
}

/// What runs between hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum App {
    /// Datagrams at a constant rate on each flow.
    Udp {
        /// Bytes of payload in each.
        payload: u32,
        /// From one to the next.
        interval: Span,
        /// How many; until the end without.
        count: Option<u64>,
    },
    /// A byte stream on each flow.
    Tcp {
        /// How many bytes; until the end without.
        bytes: Option<Bytes>,
        /// How connections behave.
        tcp: Tcp,
    },
    /// The first host of each flow asks the second.
    RequestResponse {
        /// The transport protocol of requests and answers.
        transport: Transport,
        /// Bytes of a request.
        request: u32,
        /// Bytes of an answer.
        response: u32,
        /// From an answer to the next request.
        think: Span,
        /// The server's processor time for each request.
        service: Span,
        /// How many requests; until the end without.
        count: Option<u64>,
    },
    /// The second host of all flows asks the first hosts of all at once, and waits for all of
    /// them before it asks again.
    Incast {
        /// The transport protocol of requests and answers.
        transport: Transport,
        /// Bytes of each answer.
        bytes: u32,
        /// From the last answer to the next round.
        think: Span,
        /// How many rounds; until the end without.
        rounds: Option<u64>,
    },
    /// Bursts of datagrams with pauses between them on each flow.
    OnOff {
        /// Bytes of payload in each datagram.
        payload: u32,
        /// From one datagram of a burst to the next.
        interval: Span,
        /// Bytes of payload in a burst.
        on: Sizes,
        /// Ticks of 10 ps of a pause.
        off: Sizes,
    },
    /// All hosts sum up what each has.
    AllReduce {
        /// The algorithm of the reduction.
        reduction: Reduction,
        /// Bytes at each host.
        bytes: Bytes,
        /// How often, one after the other.
        rounds: u64,
        /// How connections behave.
        tcp: Tcp,
    },
    /// The first host of each flow is a client of the second.
    FileService(FileService),
    /// The first host of each flow asks for the second's MAC. A host's questions are asked in
    /// order, at this pace.
    Arp {
        /// From one question of a host to its next.
        interval: Span,
    },
    /// The first host of each flow sends the frames of a capture.
    Replay {
        /// The capture's file; empty if the frames are from none.
        file: PathBuf,
        /// The frames, and when each is sent after the first.
        frames: Arc<[CapturedFrame]>,
        /// What is changed in them.
        rewrite: Rewrite,
    },
    /// The first host of each flow pings the second.
    Ping {
        /// From one request to the next.
        interval: Span,
        /// How many, up to 65,535.
        count: u16,
    },
}

impl App {
    /// The key in the file that says this.
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
