//! Interface of a control plane to any data plane.

use crate::capabilities::Capabilities;
use crate::contract::{Action, Drop};
use crate::counters::Counters;
use crate::node::Node;
use crate::port::PortKind;
use crate::routes::{RouteChange, RouteError, RouteKey, RouteTicket};
use crate::settings::{PortSetting, SettingError};
use crate::snapshot::Snapshot;
use crate::telemetry::{PlaneTelemetry, PortTelemetry};
use alloc::vec::Vec;
use axon_wire::header::PacketType;
use axon_wire::{Bytes, FrameBuf, Hops, PortNo, Route, Time};

/// Ports of a data plane.
pub trait PortView {
    /// Returns the number of ports, which are numbered from 0.
    fn count(&self) -> u16;
    /// Returns the kind set for `port`; `None` if there is no such port.
    fn kind(&self, port: PortNo) -> Option<PortKind>;
    /// Returns whether `port` exists and has carrier.
    fn is_up(&self, port: PortNo) -> bool;

    /// Returns whether hosts are at `port`.
    fn is_host(&self, port: PortNo) -> bool {
        self.kind(port) == Some(PortKind::Host)
    }
}

/// Frames that are queued at one egress port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueState {
    /// Number of frames, over all traffic classes.
    pub frames: u64,
    /// Bytes of the frames, without FCS.
    pub bytes: Bytes,
    /// Bytes of frames received on this port that outputs refused, and that are kept here.
    pub refused_bytes: Bytes,
}

/// Interface of a control plane to its data plane.
///
/// A runtime feeds inputs to a node. The node passes them to its data plane through [`Node`], which
/// returns actions: frames to transmit, and, for the control plane, [`Action::Punt`],
/// [`Action::RouteChanged`] and [`Action::Lost`]. Requests of the control plane use the methods
/// here, which append the resulting actions to `out`.
///
/// The tables belong to the data plane. A change of a route may take effect later than the call,
/// and may fail: each has one answer, which the call returns or a later [`Action::RouteChanged`]
/// carries with the ticket of the request. Until then, frames of that flow may be punted or take
/// the previous route. Changes for one port and key are made in the order of their requests. A data
/// plane that has lost its tables reports it once ([`Action::Lost`]); pending answers are then
/// omitted, and the control plane re-synchronises it.
///
/// No method blocks or reads a clock.
pub trait Dataplane: Node + PortView {
    /// Returns the capabilities, the same at every call.
    fn capabilities(&self) -> Capabilities;

    /// Requests a change of a route table. Returns the answer if the change has been made or
    /// refused; `None` if [`Action::RouteChanged`] will report it with this ticket.
    #[must_use = "there may be no other answer"]
    fn change_route(
        &mut self,
        now: Time,
        ticket: RouteTicket,
        change: RouteChange,
    ) -> Option<Result<(), RouteError>>;

    /// Changes a setting of a port.
    ///
    /// # Errors
    /// The reason of the refusal; the port is unchanged.
    fn set_port(
        &mut self,
        now: Time,
        port: PortNo,
        setting: PortSetting,
        out: &mut Vec<Action>,
    ) -> Result<(), SettingError>;

    /// Sends an Axon packet of the control plane along `hops`, with the priority of control
    /// messages. With no hop before [`PortNo::CONTROL`] it is returned as a punt. A packet whose
    /// hops no header can hold is dropped as [`Drop::NoHeadroom`].
    fn inject(
        &mut self,
        now: Time,
        kind: PacketType,
        hops: &Hops,
        payload: &[u8],
        out: &mut Vec<Action>,
    );

    /// Sends an Ethernet frame of the control plane out of `port`: a link-local frame on any port,
    /// or another to the hosts of a host port. It has the priority of control messages, regardless
    /// of its addresses.
    fn send(&mut self, now: Time, port: PortNo, frame: FrameBuf, out: &mut Vec<Action>);

    /// Forwards a punted frame that was received on the host port `ingress`
    /// ([`Punt::Miss`](crate::Punt::Miss)), along this route and with the priority that its port
    /// assigns. It is queued as the control plane's own, and the reverse list begins with
    /// [`PortNo::CONTROL`]. Its reception was counted before the punt; only its end is counted
    /// again.
    fn forward(
        &mut self,
        now: Time,
        ingress: PortNo,
        route: &Route,
        frame: FrameBuf,
        out: &mut Vec<Action>,
    );

    /// Pauses the hosts of `port` for the time of a frame of maximum length; has no effect if it is
    /// not a host port (thesis 000 §3.2.1).
    fn pause_hosts(&mut self, now: Time, port: PortNo, out: &mut Vec<Action>);

    /// Counts a punted frame that ended in the control plane, so that all drops of a switch are
    /// counted in one place.
    fn count_drop(&mut self, ingress: PortNo, reason: Drop);

    /// Counts a copy that the control plane has made of a punted frame of `ingress`; the copy is
    /// forwarded or ends like any frame.
    fn count_copy(&mut self, ingress: PortNo);

    /// Returns the counters. Where a kernel forwards frames, they count those left to this plane.
    fn counters(&self) -> &Counters;

    /// Returns the bytes that have left by `port`, forwarded by any means; 0 if there is no such
    /// port. A device that restarts counts from zero.
    fn sent_bytes(&self, port: PortNo) -> u64 {
        self.counters().port(port).tx_bytes
    }

    /// Returns the state of the queue of `port`; empty if there is no such port.
    fn queue(&self, port: PortNo) -> QueueState;

    /// Returns the number of frames outside of the queues: punted ones whose last byte has not
    /// arrived, and those in gates.
    fn held_frames(&self) -> u64;

    /// Returns the number of routes of `port`.
    fn routes(&self, port: PortNo) -> usize;

    /// Returns whether a frame of a host has taken the route from `port` with this key since it was
    /// installed and since the last call for it. A data plane that cannot determine it returns
    /// `true`: its routes do not age.
    fn take_used(&mut self, port: PortNo, key: RouteKey) -> bool {
        let _ = (port, key);
        true
    }

    /// Returns the telemetry at `now`: by default that of [`telemetry_of`], to which a data plane
    /// with more to report adds it.
    fn telemetry(&self, now: Time) -> PlaneTelemetry {
        let _ = now;
        telemetry_of(self)
    }

    /// Returns the whole configuration.
    fn snapshot(&self) -> Snapshot;

    /// Makes `wanted` the whole configuration, replacing the previous one. Ports that `wanted` does
    /// not contain have no routes and are of unknown kind. Pending changes of routes are cancelled.
    ///
    /// # Errors
    /// The first setting that could not be made; the others have been.
    fn resynchronise(
        &mut self,
        now: Time,
        wanted: &Snapshot,
        out: &mut Vec<Action>,
    ) -> Result<(), SettingError>;

    /// Reports whether the control plane of the switch has a path to its controller. A data plane
    /// with state of an earlier process removes that some time after; others can ignore it.
    fn controller_reached(&mut self, now: Time, is_reached: bool) {
        let _ = (now, is_reached);
    }
}

/// Returns the telemetry that follows from the methods of every data plane.
pub fn telemetry_of<D: Dataplane + ?Sized>(plane: &D) -> PlaneTelemetry {
    let port = |port: PortNo| {
        let QueueState { frames, bytes, refused_bytes } = plane.queue(port);
        PortTelemetry {
            kind: plane.kind(port).unwrap_or_default(),
            up: plane.is_up(port),
            counters: plane.counters().port(port),
            queued_frames: frames,
            queued_bytes: bytes,
            refused_bytes,
            routes: plane.routes(port) as u64,
            flow_control: None,
        }
    };
    PlaneTelemetry {
        total: plane.counters().total(),
        memory: None,
        ports: (0..plane.count()).map(PortNo).map(port).collect(),
        registers: None,
    }
}
