//! Starting applications on hosts, and reading their results.

use crate::host::apps::{
    AppId, ArpPlan, Asker, Collective, CollectivePlan, FileClient, FilePlan, FlowStats, Initiator,
    InitiatorPlan, OnOffPlan, Raw, RawPlan, Received, Replay, ReplayPlan, ReplaySink, RequestPlan,
    Requester, RespondPlan, Responder, Source, Target, TargetPlan, TcpOptions, TcpPlan, TcpSender,
    TcpSink, UdpPlan, UdpSink,
};
use crate::host::node::Host;
use axon_wire::{Bytes, Span, Time};
use std::net::Ipv4Addr;

/// Applications. A start time in the past means now.
impl Host {
    /// Starts a stream of datagrams.
    pub fn udp_send(&mut self, plan: UdpPlan, now: Time) -> AppId {
        self.add(|stack| Box::new(Source::steady(plan, now, stack)))
    }

    /// Returns the datagrams that an application has sent.
    pub fn udp_sent(&self, id: AppId) -> u64 {
        self.flow_stats(id).map_or(0, |stats| stats.sent_packets)
    }

    /// Counts datagrams on a UDP port.
    pub fn udp_listen(&mut self, port: u16) -> AppId {
        self.udp_listen_by(port, None)
    }

    /// Counts datagrams on a UDP port, and bytes per `interval` from time zero for each sender.
    pub fn udp_listen_by(&mut self, port: u16, interval: Option<Span>) -> AppId {
        self.add(|_| Box::new(UdpSink::new(port, interval)))
    }

    /// Returns the datagrams and payload bytes that an application has received.
    pub fn udp_received(&self, id: AppId) -> (u64, Bytes) {
        self.flow_stats(id).map_or((0, Bytes(0)), |s| (s.received.packets, s.received.bytes))
    }

    /// Opens a connection and sends bytes on it.
    pub fn tcp_send(&mut self, plan: TcpPlan, now: Time) -> AppId {
        self.add(|stack| Box::new(TcpSender::new(plan, now, stack)))
    }

    /// Accepts connections on a TCP port and counts received bytes; with `interval`, also bytes per
    /// `interval` from time zero for each sender.
    pub fn tcp_listen(&mut self, port: u16, options: TcpOptions, interval: Option<Span>) -> AppId {
        self.add(|stack| Box::new(TcpSink::new(port, options, interval, stack)))
    }

    /// Sends requests to servers in rounds.
    pub fn request(&mut self, plan: RequestPlan, now: Time) -> AppId {
        self.add(|stack| Box::new(Requester::new(plan, now, stack)))
    }

    /// Serves requests on a TCP and a UDP port of the same number.
    pub fn respond(&mut self, plan: RespondPlan) -> AppId {
        self.add(|stack| Box::new(Responder::new(plan, stack)))
    }

    /// Sends bursts of datagrams.
    pub fn on_off(&mut self, plan: OnOffPlan, now: Time) -> AppId {
        self.add(|stack| Box::new(Source::bursts(plan, now, stack)))
    }

    /// Takes part in a collective operation.
    pub fn collective(&mut self, plan: CollectivePlan, now: Time) -> AppId {
        self.add(|stack| Box::new(Collective::new(plan, now, stack)))
    }

    /// Runs a file workload against a server, which [`Host::respond`]s with
    /// [`Protocol::Files`](super::apps::Protocol::Files).
    pub fn file_client(&mut self, plan: FilePlan, now: Time) -> AppId {
        self.add(|stack| Box::new(FileClient::new(plan, now, stack)))
    }

    /// Sends iSCSI commands to a target.
    pub fn iscsi_initiator(&mut self, plan: InitiatorPlan, now: Time) -> AppId {
        self.add(|stack| Box::new(Initiator::new(plan, now, stack)))
    }

    /// Serves iSCSI commands from memory.
    pub fn iscsi_target(&mut self, plan: TargetPlan) -> AppId {
        self.add(|stack| Box::new(Target::new(plan, stack)))
    }

    /// Sends the frames of a capture.
    pub fn replay(&mut self, plan: ReplayPlan, now: Time) -> AppId {
        self.add(|_| Box::new(Replay::new(plan, now)))
    }

    /// Sends raw frames.
    pub fn raw(&mut self, plan: RawPlan, now: Time) -> AppId {
        self.add(|_| Box::new(Raw::new(plan, now)))
    }

    /// Counts received frames of a replay.
    pub(crate) fn count_replay(&mut self, sink: ReplaySink) -> AppId {
        self.add(|_| Box::new(sink))
    }

    /// Resolves MAC addresses.
    pub fn ask(&mut self, plan: ArpPlan, now: Time) -> AppId {
        self.add(|_| Box::new(Asker::new(plan, now)))
    }

    /// Returns the statistics of an application.
    pub fn flow_stats(&self, id: AppId) -> Option<&FlowStats> {
        self.app(id).map(|app| app.stats())
    }

    /// Returns what a sink has received from one sender, given by address and port.
    pub fn received_from(&self, id: AppId, from: (Ipv4Addr, u16)) -> Option<&Received> {
        self.app(id)?.received_from(from)
    }

    /// Returns the source port of an application; for a connection, once it is opened.
    pub fn source_port(&self, id: AppId) -> Option<u16> {
        self.app(id)?.source_port()
    }
}
