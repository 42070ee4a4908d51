//! Data planes for the switches and the controller of a world.

use axon_fabric::Problem;
use axon_fabric::dataplane::of_switch;
use axon_fabric::model::{DataplaneKind, Fabric, Network};
use axon_fabric::needs::{Runtime, missing_at};
use axon_node::telemetry::PlaneTelemetry;
use axon_node::{
    Action, Awaited, Capabilities, Counters, Dataplane, Drop, Input, Node, PortKind, PortSetting,
    PortView, QueueState, RouteChange, RouteError, RouteKey, RouteTicket, SettingError, Shortcuts,
    Snapshot,
};
use axon_plane::reference::{self, Reference, Refusing};
use axon_plane::{Lookups, Plane, PlaneConfig, Ports, axon};
use axon_programs::axon::{self as program, AxonTables};
use axon_rtl::{Model, RtlDataplane};
use axon_wire::header::PacketType;
use axon_wire::{FrameBuf, HopWidth, Hops, PortNo, Route, Time};

/// Returns the maximum capabilities of a data plane with hops of this width; `None` if it is not
/// simulated.
pub fn capabilities(kind: DataplaneKind, hop_width: HopWidth) -> Option<Capabilities> {
    let largest = PlaneConfig::largest(hop_width);
    match kind {
        DataplaneKind::Auto | DataplaneKind::Software => Some(axon::capabilities(&largest)),
        DataplaneKind::Reference => Some(reference::capabilities(&largest)),
        DataplaneKind::Refusing => {
            Some(Capabilities { name: kind.name(), ..axon::capabilities(&largest) })
        }
        DataplaneKind::Pipeline => Some(program::capabilities(&largest)),
        DataplaneKind::Rtl => Some(axon_rtl::capabilities(&largest)),
        DataplaneKind::Tc | DataplaneKind::Xdp => None,
    }
}

/// Checks the switches that a fabric file runs in gates, which no option of a simulation changes.
///
/// # Errors
/// A switch needs what the device lacks, or the simulated device is not built. The error gives the
/// key that names the data plane.
pub fn check_gates(fabric: &Fabric) -> Result<(), Problem> {
    let named = (0..fabric.switches.len()).map(|switch| (switch, of_switch(fabric, switch)));
    for (switch, (_, key)) in named.filter(|(_, (kind, _))| *kind == DataplaneKind::Rtl) {
        let refused = |what, expected: &str| {
            Err(Problem { key: key.into(), what, expected: expected.into() })
        };
        if fabric.network != Network::Axon {
            let what = "the switches of this network have data planes of their own".into();
            return refused(what, "none");
        }
        let has = axon_rtl::capabilities(&PlaneConfig::largest(fabric.hop_width));
        let missing = missing_at(fabric, switch, Runtime::Simulator, &has);
        if !missing.is_empty() {
            let what = format!("the data plane `rtl` lacks {}", missing.join(", "));
            return refused(what, "full, or auto");
        }
        if let Err(error) = Model::load(fabric.hop_width) {
            return refused(format!("no data plane `rtl`: {error}"), "full, or auto");
        }
    }
    Ok(())
}

/// Data plane of a switch or of the controller.
#[allow(clippy::large_enum_variant, reason = "nearly all are the first, and nodes are in boxes")]
pub enum SwitchPlane {
    /// Software plane.
    Software(Plane),
    /// Reference plane.
    Reference(Box<Reference>),
    /// Software plane that refuses installs.
    Refusing(Box<Refusing<Plane>>),
    /// Software plane with its lookups in a pipeline program.
    Pipeline(Box<Plane<AxonTables>>),
    /// Device in gates.
    Rtl(Box<RtlDataplane>),
}

/// Calls a function with the contained data plane, as `as_ref` or as `as_mut`.
macro_rules! with_plane {
    ($this:expr, $as:ident, |$plane:ident| $call:expr) => {
        match $this {
            SwitchPlane::Software($plane) => $call,
            SwitchPlane::Reference(boxed) => {
                let $plane = boxed.$as();
                $call
            }
            SwitchPlane::Refusing(boxed) => {
                let $plane = boxed.$as();
                $call
            }
            SwitchPlane::Pipeline(boxed) => {
                let $plane = boxed.$as();
                $call
            }
            SwitchPlane::Rtl(boxed) => {
                let $plane = boxed.$as();
                $call
            }
        }
    };
}

impl SwitchPlane {
    /// Creates a data plane of this kind.
    ///
    /// # Panics
    /// Panics as [`Plane::new`], [`Reference::new`] and [`AxonTables::new`] do, if the
    /// configuration exceeds the capabilities. Panics if the data plane is not simulated, or is the
    /// device in gates, which is not built; see [`check_gates`].
    pub fn new(kind: DataplaneKind, config: PlaneConfig) -> SwitchPlane {
        match kind {
            DataplaneKind::Auto | DataplaneKind::Software => {
                SwitchPlane::Software(Plane::new(config))
            }
            DataplaneKind::Reference => SwitchPlane::Reference(Box::new(Reference::new(config))),
            DataplaneKind::Refusing => {
                SwitchPlane::Refusing(Box::new(Refusing::new(Plane::new(config))))
            }
            DataplaneKind::Pipeline => {
                let tables = AxonTables::with_config(&config);
                SwitchPlane::Pipeline(Box::new(Plane::with_lookups(config, tables)))
            }
            DataplaneKind::Rtl => match RtlDataplane::new(config) {
                Ok(device) => SwitchPlane::Rtl(Box::new(device)),
                Err(error) => panic!("{error}"),
            },
            DataplaneKind::Tc | DataplaneKind::Xdp => {
                panic!("{kind} is a data plane of the Linux kernel, which is not simulated")
            }
        }
    }

    /// Returns the ports of the software plane, if this is one.
    pub fn ports(&self) -> Option<&Ports> {
        match self {
            SwitchPlane::Software(plane) => Some(plane.ports()),
            SwitchPlane::Reference(_) | SwitchPlane::Rtl(_) => None,
            SwitchPlane::Refusing(plane) => Some(plane.inner().ports()),
            SwitchPlane::Pipeline(plane) => Some(plane.ports()),
        }
    }

    /// Returns the routes in the table of `port`, or none if the port does not exist.
    pub fn routes_at(&self, port: PortNo) -> Vec<(RouteKey, Route)> {
        let mut ports = self.snapshot().ports;
        ports.get_mut(port.index()).map_or_else(Vec::new, |port| std::mem::take(&mut port.routes))
    }
}

impl Node for SwitchPlane {
    #[inline]
    fn handle(&mut self, now: Time, input: Input, out: &mut Vec<Action>) {
        with_plane!(self, as_mut, |plane| Node::handle(plane, now, input, out));
    }

    #[inline]
    fn deadline(&self) -> Option<Time> {
        with_plane!(self, as_ref, |plane| Node::deadline(plane))
    }
}

impl Shortcuts for SwitchPlane {
    #[inline]
    fn pass(
        &mut self,
        now: Time,
        port: PortNo,
        frame: &mut FrameBuf,
        free_at: &[Time],
    ) -> Option<PortNo> {
        match self {
            SwitchPlane::Software(plane) => Shortcuts::pass(plane, now, port, frame, free_at),
            _ => None,
        }
    }

    #[inline]
    fn awaited(&mut self) -> Awaited {
        with_plane!(self, as_mut, |plane| Shortcuts::awaited(plane))
    }
}

impl PortView for SwitchPlane {
    #[inline]
    fn count(&self) -> u16 {
        with_plane!(self, as_ref, |plane| PortView::count(plane))
    }

    #[inline]
    fn kind(&self, port: PortNo) -> Option<PortKind> {
        with_plane!(self, as_ref, |plane| PortView::kind(plane, port))
    }

    #[inline]
    fn is_up(&self, port: PortNo) -> bool {
        with_plane!(self, as_ref, |plane| PortView::is_up(plane, port))
    }
}

impl Dataplane for SwitchPlane {
    fn capabilities(&self) -> Capabilities {
        with_plane!(self, as_ref, |plane| Dataplane::capabilities(plane))
    }

    fn change_route(
        &mut self,
        now: Time,
        ticket: RouteTicket,
        change: RouteChange,
    ) -> Option<Result<(), RouteError>> {
        with_plane!(self, as_mut, |plane| Dataplane::change_route(plane, now, ticket, change))
    }

    fn set_port(
        &mut self,
        now: Time,
        port: PortNo,
        setting: PortSetting,
        out: &mut Vec<Action>,
    ) -> Result<(), SettingError> {
        with_plane!(self, as_mut, |plane| Dataplane::set_port(plane, now, port, setting, out))
    }

    fn inject(
        &mut self,
        now: Time,
        kind: PacketType,
        hops: &Hops,
        payload: &[u8],
        out: &mut Vec<Action>,
    ) {
        with_plane!(self, as_mut, |plane| Dataplane::inject(plane, now, kind, hops, payload, out));
    }

    fn send(&mut self, now: Time, port: PortNo, frame: FrameBuf, out: &mut Vec<Action>) {
        with_plane!(self, as_mut, |plane| Dataplane::send(plane, now, port, frame, out));
    }

    fn forward(
        &mut self,
        now: Time,
        ingress: PortNo,
        route: &Route,
        frame: FrameBuf,
        out: &mut Vec<Action>,
    ) {
        with_plane!(self, as_mut, |plane| {
            Dataplane::forward(plane, now, ingress, route, frame, out);
        });
    }

    fn pause_hosts(&mut self, now: Time, port: PortNo, out: &mut Vec<Action>) {
        with_plane!(self, as_mut, |plane| Dataplane::pause_hosts(plane, now, port, out));
    }

    fn count_drop(&mut self, ingress: PortNo, reason: Drop) {
        with_plane!(self, as_mut, |plane| Dataplane::count_drop(plane, ingress, reason));
    }

    fn count_copy(&mut self, ingress: PortNo) {
        with_plane!(self, as_mut, |plane| Dataplane::count_copy(plane, ingress));
    }

    #[inline]
    fn counters(&self) -> &Counters {
        with_plane!(self, as_ref, |plane| Dataplane::counters(plane))
    }

    fn queue(&self, port: PortNo) -> QueueState {
        with_plane!(self, as_ref, |plane| Dataplane::queue(plane, port))
    }

    fn held_frames(&self) -> u64 {
        with_plane!(self, as_ref, |plane| Dataplane::held_frames(plane))
    }

    fn routes(&self, port: PortNo) -> usize {
        with_plane!(self, as_ref, |plane| Dataplane::routes(plane, port))
    }

    fn telemetry(&self, now: Time) -> PlaneTelemetry {
        with_plane!(self, as_ref, |plane| Dataplane::telemetry(plane, now))
    }

    fn take_used(&mut self, port: PortNo, key: RouteKey) -> bool {
        with_plane!(self, as_mut, |plane| Dataplane::take_used(plane, port, key))
    }

    fn snapshot(&self) -> Snapshot {
        with_plane!(self, as_ref, |plane| Dataplane::snapshot(plane))
    }

    fn resynchronise(
        &mut self,
        now: Time,
        wanted: &Snapshot,
        out: &mut Vec<Action>,
    ) -> Result<(), SettingError> {
        with_plane!(self, as_mut, |plane| Dataplane::resynchronise(plane, now, wanted, out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_fabric::assemble::switch_config;

    #[test]
    fn a_data_plane_reports_of_its_flow_control_whatever_is_around_it() {
        let text = "name: a\ntopology: {ring: {switches: 3}}\nlinks: {rate: 10Gbps}\n\
                    dcb: {classes: [{priorities: [0, 1, 2, 4, 5, 6, 7], ets: 50}, \
                    {priorities: [3], ets: 50, lossless: true}]}\n";
        let fabric = axon_fabric::parse("a.yaml".as_ref(), text).unwrap();
        let config = || switch_config(&fabric, 0, 1, 1).plane;
        let alone = Plane::new(config()).telemetry(Time::ZERO);
        assert!(alone.ports[0].flow_control.is_some());
        for kind in [DataplaneKind::Software, DataplaneKind::Refusing, DataplaneKind::Pipeline] {
            assert_eq!(SwitchPlane::new(kind, config()).telemetry(Time::ZERO), alone, "{kind}");
        }
    }
}
