//! Injection of faults and repairs.

use crate::link::links::{LinkId, WireEnd};
use crate::world::World;
use axon_fabric::model::{Cable, End, Fabric, FaultKind};
use axon_wire::Time;

impl World {
    /// Injects a fault or a repair now.
    ///
    /// Both ends of a cut link lose carrier; those of a silent link do not, nor do the peers of a
    /// suspended node. In both cases, "up" restores it. A switch or a controller that comes back is
    /// a new node in a new incarnation, with empty state; one that is up already is unchanged.
    pub fn inject(&mut self, fault: FaultKind) {
        match fault {
            FaultKind::LinkDown(link) => self.engine.set_cut(LinkId(link), true),
            FaultKind::LinkUp(link) => self.mend(LinkId(link)),
            FaultKind::LinkSilent(link) => self.engine.set_silent(LinkId(link), true),
            FaultKind::LinkSilentFrom(link, End { switch, port }) => {
                let from = WireEnd { station: switch, port };
                let ends = &self.engine.links()[link].ends;
                if let Some(side) = ends.iter().position(|&end| end == from) {
                    self.engine.set_silent_from(LinkId(link), side, true);
                }
            }
            FaultKind::SwitchDown(switch) => self.engine.power_off(switch),
            FaultKind::SwitchUp(switch) => {
                if !self.has_power(switch) {
                    self.start_switch(switch);
                }
            }
            FaultKind::SwitchStopped(switch) => self.engine.stop(switch),
            FaultKind::SwitchGoesOn(switch) => self.engine.go_on(switch),
            FaultKind::ControllerStopped => self.engine.stop(self.controller_station()),
            FaultKind::ControllerGoesOn => self.engine.go_on(self.controller_station()),
            FaultKind::ControllerDown => self.engine.power_off(self.controller_station()),
            FaultKind::ControllerUp => {
                if !self.has_power(self.controller_station()) {
                    self.start_controller();
                }
            }
            FaultKind::HostDown(host) => self.engine.set_cut(self.access_link(host), true),
            FaultKind::HostUp(host) => self.mend(self.access_link(host)),
            FaultKind::Loss(cable, ppm) => self.engine.set_loss(self.cable(cable), ppm),
            FaultKind::BitErrors(cable, per_1e15) => {
                self.engine.set_bit_errors(self.cable(cable), per_1e15);
            }
            FaultKind::Rate(cable, rate) => self.engine.set_rate(self.cable(cable), rate),
            FaultKind::HostSlow(host, rate) => {
                if let Some(node) = self.host_mut(host) {
                    node.set_receive_rate(rate);
                }
            }
        }
    }

    /// Plans a fault for a later time, or for now if `at` has passed.
    pub fn plan(&mut self, at: Time, fault: FaultKind) {
        self.engine.plan(at, fault);
    }

    /// Adopts the fault settings of another fabric. Plans nothing.
    pub(crate) fn set_faults(&mut self, fabric: &Fabric) {
        self.fabric.faults.clone_from(&fabric.faults);
        self.fabric.faults_after_start.clone_from(&fabric.faults_after_start);
    }

    /// Returns the link of the world for a cable of the fabric.
    pub fn cable(&self, cable: Cable) -> LinkId {
        match cable {
            Cable::Link(link) => LinkId(link),
            Cable::Host(host) => self.access_link(host),
            Cable::Controller => self.controller_link(),
        }
    }

    fn has_power(&self, station: usize) -> bool {
        self.engine.station(station).is_some_and(|station| station.node.is_on())
    }

    fn mend(&mut self, link: LinkId) {
        self.engine.set_silent(link, false);
        self.engine.set_cut(link, false);
    }
}
