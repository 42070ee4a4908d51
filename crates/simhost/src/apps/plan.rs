//! Applications to start on a host.

use super::app::App;
use super::id::AppId;
use super::replay_sink::{Likenesses, ReplaySink};
use super::stream::Source;
use super::tcp::{TcpOptions, TcpPlan};
use super::{arp, collective, files, iscsi, raw, replay, request, respond, tcp_stream, udp};
use crate::stack::Stack;
use axon_wire::{MacAddr, Time};
use std::collections::BTreeSet;

/// Application to start on a host.
pub enum Plan {
    /// Stream of datagrams.
    Udp(udp::UdpPlan),
    /// Counter of datagrams on a UDP port.
    UdpSink {
        /// UDP port.
        port: u16,
    },
    /// Bytes on a connection.
    Tcp(TcpPlan),
    /// Counter of bytes received on a TCP port, whose connections it accepts.
    TcpSink {
        /// TCP port.
        port: u16,
        /// TCP options of the connections.
        options: TcpOptions,
    },
    /// Requests to servers, in rounds.
    Request(request::RequestPlan),
    /// Server of requests, on a TCP and a UDP port of the same number.
    Respond(respond::RespondPlan),
    /// Bursts of datagrams.
    OnOff(super::on_off::OnOffPlan),
    /// Part in a collective operation.
    Collective(collective::CollectivePlan),
    /// File workload against a server, which [responds](Plan::Respond) with
    /// [`Protocol::Files`](super::Protocol::Files).
    Files(files::FilePlan),
    /// iSCSI commands to a target.
    IscsiInitiator(iscsi::InitiatorPlan),
    /// Server of iSCSI commands, from memory.
    IscsiTarget(iscsi::TargetPlan),
    /// Frames of a capture.
    Replay(replay::ReplayPlan),
    /// Counter of received frames of a replay. Two replays of one capture are distinguished by
    /// their senders' MACs, where these are known.
    ReplaySink {
        /// Frames to count.
        frames: Likenesses,
        /// Source MAC of these frames, if known.
        from: Option<MacAddr>,
        /// Destination MACs of these frames.
        to: BTreeSet<MacAddr>,
    },
    /// Raw frames.
    Raw(raw::RawPlan),
    /// Resolution of MAC addresses.
    Arp(arp::ArpPlan),
}

impl Plan {
    /// Returns the running application with this ID. A source starts at `at`, or now if that is
    /// past.
    pub(crate) fn begin(self, id: AppId, at: Time, stack: &mut Stack) -> Box<dyn App> {
        match self {
            Plan::Udp(plan) => Box::new(Source::steady(plan, at, stack)),
            Plan::UdpSink { port } => Box::new(udp::UdpSink::new(port)),
            Plan::Tcp(plan) => Box::new(tcp_stream::TcpSender::new(id, plan, at, stack)),
            Plan::TcpSink { port, options } => {
                Box::new(tcp_stream::TcpSink::new(id, port, options, stack))
            }
            Plan::Request(plan) => Box::new(request::Requester::new(id, plan, at, stack)),
            Plan::Respond(plan) => Box::new(respond::Responder::new(id, plan, stack)),
            Plan::OnOff(plan) => Box::new(Source::bursts(plan, at, stack)),
            Plan::Collective(plan) => Box::new(collective::Collective::new(id, plan, at, stack)),
            Plan::Files(plan) => Box::new(files::FileClient::new(id, plan, at, stack)),
            Plan::IscsiInitiator(plan) => Box::new(iscsi::Initiator::new(id, plan, at)),
            Plan::IscsiTarget(plan) => Box::new(iscsi::Target::new(id, plan, stack)),
            Plan::Replay(plan) => Box::new(replay::Replay::new(plan, at)),
            Plan::ReplaySink { frames, from, to } => Box::new(ReplaySink::new(frames, from, to)),
            Plan::Raw(plan) => Box::new(raw::Raw::new(plan, at)),
            Plan::Arp(plan) => Box::new(arp::Asker::new(plan, at)),
        }
    }
}
