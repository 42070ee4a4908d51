//! The seam: all that a control plane needs of any data plane.

use crate::capabilities::Capabilities;
use crate::contract::{Action, Drop};
use crate::counters::Counters;
use crate::node::Node;
use crate::port::PortKind;
use crate::routes::{RouteChange, RouteKey, RouteTicket};
use crate::settings::{PortSetting, SettingError};
use crate::snapshot::Snapshot;
use crate::telemetry::{PlaneTelemetry, PortTelemetry};
use alloc::vec::Vec;
use axon_wire::header::PacketType;
use axon_wire::{Bytes, FrameBuf, Hops, PortNo, Route, Time};

/// What a data plane knows of its ports.
pub trait PortView {
    /// How many ports there are; they are numbered from 0.
    fn count(&self) -> u16;
    /// What `port` was set to; `None` if there is no such port.
    fn kind(&self, port: PortNo) -> Option<PortKind>;
    /// Whether `port` exists and has carrier.
    fn is_up(&self, port: PortNo) -> bool;

    /// Whether hosts are at `port`.
    fn is_host(&self, port: PortNo) -> bool {
        self.kind(port) == Some(PortKind::Host)
    }
}

/// Frames that are queued at one egress port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueState {
    /// Frames, over all traffic classes.
    pub frames: u64,
    /// Their bytes, without FCS.
    pub bytes: Bytes,
    /// Bytes of frames that came in by this port, that outputs refused, and that are kept here.
    pub refused_bytes: Bytes,
}

/// A data plane, as a control plane sees it.
///
/// A runtime feeds inputs to a node. The node hands them on to its data plane through [`Node`],
/// which answers with actions: frames to transmit, and, for the control plane, [`Action::Punt`],
/// [`Action::RouteChanged`] and [`Action::Lost`]. What the control plane wants of it goes through
/// the methods here, each of which appends what follows to `out`.
///
/// The tables belong to the data plane. A change of a route may take effect later than the call,
/// and may fail: the answer carries the ticket of the request, one for each, in this call or in any
/// later one. Until it has come, frames of that flow may be punted or take the route before it.
/// Changes for one port and key are made in the order in which they were asked for. A data
/// plane that has lost its tables reports it once ([`Action::Lost`]); answers that are owed
/// then do not come any more, and the control plane re-synchronises it.
///
/// Nothing here blocks or reads a clock.
pub trait Dataplane: Node + PortView {
    /// What it can do. The same at every call.
    fn capabilities(&self) -> Capabilities;

    /// Asks for a change of a route table; answered by [`Action::RouteChanged`].
    fn change_route(
        &mut self,
        now: Time,
        ticket: RouteTicket,
        change: RouteChange,
        out: &mut Vec<Action>,
    );

    /// Sets a port.
    ///
    /// # Errors
    /// Why the port is as it was before.
    fn set_port(
        &mut self,
        now: Time,
        port: PortNo,
        setting: PortSetting,
        out: &mut Vec<Action>,
    ) -> Result<(), SettingError>;

    /// Sends an Axon packet of the control plane along `hops`, with the priority of control
    /// messages. With no hop before [`PortNo::CONTROL`] it comes straight back as a punt. A list of
    /// hops that no header can hold ends as [`Drop::NoHeadroom`].
    fn inject(
        &mut self,
        now: Time,
        kind: PacketType,
        hops: &Hops,
        payload: &[u8],
        out: &mut Vec<Action>,
    );

    /// Sends an Ethernet frame of the control plane out of `port`: a link-local frame on any port,
    /// or another to the hosts of a host port. Whatever its addresses, it has the priority of
    /// control messages.
    fn send(&mut self, now: Time, port: PortNo, frame: FrameBuf, out: &mut Vec<Action>);

    /// Sends a frame on that had come in by the host port `ingress` and was punted
    /// ([`Punt::Miss`](crate::Punt::Miss)), along this route and with the priority that its port
    /// gives it. It is queued as the control plane's own, and the reverse list begins with
    /// [`PortNo::CONTROL`]. That it came was counted before the punt; it is counted again only
    /// where it ends.
    fn forward(
        &mut self,
        now: Time,
        ingress: PortNo,
        route: &Route,
        frame: FrameBuf,
        out: &mut Vec<Action>,
    );

    /// Pauses the hosts of `port` for as long as a frame of maximum length takes; nothing
    /// happens if it is no host port (thesis 000 §3.2.1).
    fn pause_hosts(&mut self, now: Time, port: PortNo, out: &mut Vec<Action>);

    /// Counts a punted frame that ended in the control plane, so that every drop of a switch is in
    /// one place.
    fn count_drop(&mut self, ingress: PortNo, reason: Drop);

    /// Counts a copy that the control plane has made of a punted frame, and that goes on or ends
    /// as any frame of `ingress` does.
    fn count_copy(&mut self, ingress: PortNo);

    /// What has been counted. Where a kernel carries the frames, those that it has left to this
    /// plane.
    fn counters(&self) -> &Counters;

    /// Bytes that have left by `port`, whoever has carried them; 0 if there is no such port. A
    /// device that starts again counts from zero.
    fn sent_bytes(&self, port: PortNo) -> u64 {
        self.counters().port(port).tx_bytes
    }

    /// What is queued at `port`; nothing if there is no such port.
    fn queue(&self, port: PortNo) -> QueueState;

    /// Frames that are held back from the control plane until their last byte is here.
    fn held_frames(&self) -> u64;

    /// Routes in the table of `port`.
    fn routes(&self, port: PortNo) -> usize;

    /// Whether a frame of a host has taken the route from `port` with this key since it was
    /// installed and since the last call for it. A data plane that does not know answers `true`:
    /// its routes do not age.
    fn take_used(&mut self, port: PortNo, key: RouteKey) -> bool {
        let _ = (port, key);
        true
    }

    /// All that it reports of itself at `now`. What follows from the other methods is in it anyway;
    /// a data plane with more to report adds it.
    fn telemetry(&self, now: Time) -> PlaneTelemetry {
        let _ = now;
        let port = |port: PortNo| {
            let QueueState { frames, bytes, refused_bytes } = self.queue(port);
            PortTelemetry {
                kind: self.kind(port).unwrap_or_default(),
                up: self.is_up(port),
                counters: self.counters().port(port),
                queued_frames: frames,
                queued_bytes: bytes,
                refused_bytes,
                routes: self.routes(port) as u64,
                flow_control: None,
            }
        };
        PlaneTelemetry {
            total: self.counters().total(),
            memory: None,
            ports: (0..self.count()).map(PortNo).map(port).collect(),
        }
    }

    /// All that has been configured.
    fn snapshot(&self) -> Snapshot;

    /// Makes `wanted` the whole configuration, whatever stood before. Ports that `wanted` leaves
    /// out have no routes and are of unknown kind. Changes of routes that were asked for before and
    /// are not made yet are not made any more.
    ///
    /// # Errors
    /// The first setting that could not be made; the others have been.
    fn resynchronise(
        &mut self,
        now: Time,
        wanted: &Snapshot,
        out: &mut Vec<Action>,
    ) -> Result<(), SettingError>;

    /// The control plane of a switch has a path to its controller, or none any more. A data plane
    /// that holds what an earlier process has set removes it some time after; others need not
    /// know.
    fn controller_reached(&mut self, now: Time, is_reached: bool) {
        let _ = (now, is_reached);
    }

    /// Reads a little of what every frame needs that goes in or out by `port`, or by any port if
    /// `None`, so that it is cached when one comes; the number means nothing. A runtime may call
    /// it that knows what will come.
    #[inline]
    fn prefetch(&self, port: Option<PortNo>) -> u64 {
        let _ = port;
        0
    }

    /// The port that a packet would be sent out of, by its header alone; for
    /// [`Dataplane::prefetch`].
    #[inline]
    fn next_hop(&self, packet: &[u8]) -> Option<PortNo> {
        let _ = packet;
        None
    }
}
