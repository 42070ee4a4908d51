//! Settings of one port by the control plane: its VLANs, and what it changes in the configuration
//! of traffic classes, PFC and the edge of the congestion notification domain.

use crate::congestion::notification::UNDEFENDED;
use crate::ports::Ports;
use crate::qos::dcb::DcbConfig;
use crate::qos::schedule::ScheduleConfig;
use alloc::boxed::Box;
use alloc::vec::Vec;
use axon_node::{Action, PortSnapshot, PortVlans, SettingError, Treatment};
use axon_wire::dcbx::ieee::Ets;
use axon_wire::priority::{PRIORITIES, Priority, PrioritySet};
use axon_wire::vlan::VlanId;
use axon_wire::{PortNo, Time};

/// Settings of one port; the initial configuration where absent.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    classes: Option<Box<Ets>>,
    pfc: Option<PrioritySet>,
    defence: Option<Box<[Treatment; PRIORITIES]>>,
    regeneration: Option<Box<[Priority; PRIORITIES]>>,
    vlans: Option<Box<PortVlans>>,
}

/// A port at a time, its initial configuration, and the ports that it is one of.
pub(super) struct At<'a> {
    pub(super) now: Time,
    pub(super) port: PortNo,
    pub(super) own: &'a DcbConfig,
    pub(super) ports: &'a mut Ports,
}

impl Settings {
    /// Returns whether frames of the hosts must match VLANs.
    #[inline]
    pub(super) fn has_vlans(&self) -> bool {
        self.vlans.is_some()
    }

    /// Returns the VLAN of a frame of the hosts; `None` if its tags do not match the VLANs of the
    /// port. Where no VLANs are set, tags are ignored.
    #[inline]
    pub(super) fn vlan_of(&self, frame: &[u8]) -> Option<VlanId> {
        match self.vlans.as_deref() {
            None => Some(VlanId::NONE),
            Some(vlans) => vlans.of_frame(frame),
        }
    }

    /// Sets the VLANs; with `None`, tags are ignored.
    pub(super) fn set_vlans(&mut self, vlans: Option<Box<PortVlans>>) {
        self.vlans = vlans;
    }

    /// Sets the traffic classes; `None` restores the initial configuration.
    pub(super) fn set_classes(
        &mut self,
        &mut At { now, port, own, ref mut ports }: &mut At<'_>,
        ets: Option<Box<Ets>>,
        out: &mut Vec<Action>,
    ) -> Result<(), SettingError> {
        let (prio_tc, schedule) = match &ets {
            None => (own.prio_tc, own.schedule.clone()),
            Some(ets) => (ets.class_of, ScheduleConfig::of_ets(ets, own.schedule.cost)),
        };
        let set = ports.set_classes(now, port, prio_tc, &schedule, out);
        set.map_err(|_| SettingError::Invalid)?;
        self.classes = ets;
        Ok(())
    }

    /// Sets the priorities with flow control; `None` restores the initial configuration.
    pub(super) fn set_pfc(
        &mut self,
        &mut At { now, port, own, ref mut ports }: &mut At<'_>,
        pfc: Option<PrioritySet>,
        out: &mut Vec<Action>,
    ) {
        ports.set_pfc(now, port, pfc.unwrap_or(own.pfc), out);
        self.pfc = pfc;
    }

    /// Sets the congestion notification defence; `None` restores the initial configuration.
    pub(super) fn set_defence(
        &mut self,
        &mut At { port, own, ref mut ports, .. }: &mut At<'_>,
        treatments: Option<Box<[Treatment; PRIORITIES]>>,
    ) {
        let own = own.cn.as_ref().and_then(|cn| cn.treatments.get(port.index()));
        let at_start = own.copied().unwrap_or([UNDEFENDED; PRIORITIES]);
        if let Some(edge) = ports.dcb_mut().and_then(|dcb| dcb.edge_mut(port)) {
            edge.set_treatments(treatments.as_deref().copied().unwrap_or(at_start));
        }
        self.defence = treatments;
    }

    /// Sets the priority regeneration table for hosts; `None` allows all priorities.
    pub(super) fn set_regeneration(
        &mut self,
        &mut At { port, ref mut ports, .. }: &mut At<'_>,
        table: Option<Box<[Priority; PRIORITIES]>>,
    ) {
        if let Some(edge) = ports.dcb_mut().and_then(|dcb| dcb.edge_mut(port)) {
            edge.set_regeneration(table.as_deref().copied().unwrap_or(Priority::ALL));
        }
        self.regeneration = table;
    }

    /// Returns the settings, without kind and routes, which others have.
    pub(super) fn snapshot(&self) -> PortSnapshot {
        PortSnapshot {
            classes: self.classes.as_deref().cloned(),
            pfc: self.pfc,
            defence: self.defence.as_deref().copied(),
            regeneration: self.regeneration.as_deref().copied(),
            vlans: self.vlans.as_deref().cloned(),
            ..PortSnapshot::default()
        }
    }
}
