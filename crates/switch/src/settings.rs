//! Port settings: refused ones are kept and tried again.
//!
//! A refused setting is kept, with a note, and shows in the status until it succeeds or is
//! replaced. It is tried again every second if that may succeed. A port does not become a host port
//! while its hosts' table of priorities, or its VLANs, are refused. After a resynchronisation the
//! actual settings are compared with the wanted ones, and each difference is applied once more.

use super::chassis::Chassis;
use super::refused::Refused;
use alloc::boxed::Box;
use alloc::vec::Vec;
use axon_link::effect::Effect;
use axon_node::{
    Dataplane, Note, PortKind, PortSetting, PortSnapshot, SettingError, SettingName, Snapshot,
};
use axon_wire::{PortNo, Time};

impl<D: Dataplane, E: From<Effect>> Chassis<D, E> {
    /// Applies a port setting, and notes the result. A refused setting is kept.
    pub(crate) fn set_port(&mut self, now: Time, port: PortNo, setting: PortSetting) {
        let waits = setting == PortSetting::Kind(PortKind::Host)
            && (self.settings.is_refused(port, SettingName::Regeneration)
                || self.settings.is_refused(port, SettingName::Vlans));
        let set = match waits {
            // The hosts would have wrong priorities, or be in wrong VLANs.
            true => Err(SettingError::Unavailable),
            false => self.plane.set_port(now, port, setting.clone(), &mut self.actions),
        };
        let note = match set {
            Ok(()) => {
                self.settings.refused.remove(&(port, setting.name()));
                in_force(port, &setting)
            }
            Err(error) => {
                let name = setting.name();
                let is_new = self.settings.keep(now, port, setting, error);
                is_new.then_some(Note::SettingRefused { port, setting: name, error })
            }
        };
        self.effects.extend(note.map(|note| Effect::Note(note).into()));
    }

    /// Tries refused settings again if they are due. Returns the ports whose kind may change as a
    /// result.
    pub(crate) fn set_ports_again(&mut self, now: Time) -> Vec<PortNo> {
        if self.settings.again_at.is_none_or(|at| at > now) {
            return Vec::new();
        }
        self.settings.again_at = None;
        let due = |(&(port, _), refused): (&(PortNo, SettingName), &Refused)| {
            let may_succeed = refused.error == SettingError::Unavailable;
            may_succeed.then(|| (port, refused.setting.clone()))
        };
        let due: Vec<_> = self.settings.refused.iter().filter_map(due).collect();
        let mut kinds = Vec::new();
        for (port, setting) in due {
            kinds.extend(matches!(setting, PortSetting::Kind(_)).then_some(port));
            self.set_port(now, port, setting);
        }
        kinds
    }

    /// Compares the settings of a resynchronised data plane with the wanted ones, and applies the
    /// differences.
    pub(crate) fn settings_resynchronised(&mut self, now: Time, wanted: &Snapshot) {
        self.settings.refused.clear();
        self.settings.again_at = None;
        let has = self.plane.snapshot();
        let none = PortSnapshot::default();
        for (number, wanted) in (0..).zip(&wanted.ports) {
            let port = PortNo(number);
            let has = has.ports.get(port.index()).unwrap_or(&none);
            if has.regeneration != wanted.regeneration
                && let Some(table) = wanted.regeneration
            {
                self.set_port(now, port, PortSetting::Regeneration(Box::new(table)));
                if self.settings.is_refused(port, SettingName::Regeneration) {
                    self.set_port(now, port, PortSetting::Kind(PortKind::Unknown));
                    self.set_port(now, port, PortSetting::Kind(wanted.kind));
                }
            }
            if has.vlans != wanted.vlans
                && let Some(vlans) = &wanted.vlans
            {
                self.set_port(now, port, PortSetting::Vlans(Some(Box::new(vlans.clone()))));
                if self.settings.is_refused(port, SettingName::Vlans) {
                    self.set_port(now, port, PortSetting::Kind(PortKind::Unknown));
                    self.set_port(now, port, PortSetting::Kind(wanted.kind));
                }
            }
            if has.kind != wanted.kind {
                self.set_port(now, port, PortSetting::Kind(wanted.kind));
            }
            if has.classes != wanted.classes {
                let classes = wanted.classes.map(Box::new);
                self.set_port(now, port, PortSetting::Classes(classes));
            }
            if has.pfc != wanted.pfc
                && let Some(pfc) = wanted.pfc
            {
                self.set_port(now, port, PortSetting::Pfc(pfc));
            }
            if has.defence != wanted.defence
                && let Some(defence) = wanted.defence
            {
                self.set_port(now, port, PortSetting::Defence(Box::new(defence)));
            }
        }
    }
}

/// Returns the note of a setting that was negotiated with the peer of a port.
fn in_force(port: PortNo, setting: &PortSetting) -> Option<Note> {
    match setting {
        PortSetting::Kind(_) | PortSetting::Regeneration(_) | PortSetting::Vlans(_) => None,
        PortSetting::Classes(ets) => {
            Some(Note::ClassesInForce { port, recommended: ets.is_some() })
        }
        PortSetting::Pfc(pfc) => Some(Note::PfcInForce { port, pfc: *pfc }),
        PortSetting::Defence(_) => Some(Note::DefenceInForce { port }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::refused::PAUSE;
    use super::*;
    use alloc::vec;
    use axon_link::config::{NodeConfig, ServerIdentity, Timers};
    use axon_node::PortView;
    use axon_node::telemetry::RefusedSetting;
    use axon_plane::reference::Refusing;
    use axon_plane::{Plane, PlaneConfig};
    use axon_wire::message::Role;
    use axon_wire::priority::Priority;
    use axon_wire::{Incarnation, MacAddr, NodeId, Span};

    const AXON: PortSetting = PortSetting::Kind(PortKind::Axon);
    const LAST: PortNo = PortNo(9);

    /// Ten ports of a data plane that refuses every tenth setting.
    fn chassis() -> Chassis<Refusing<Plane>, Effect> {
        let mac = MacAddr([2; 6]);
        let config = NodeConfig {
            incarnation: Incarnation { node: NodeId(1), number: 1 },
            mac,
            keys: [0; 32].into(),
            seed: 1,
            timers: Timers::default(),
            server: ServerIdentity { mac, ip: core::net::Ipv4Addr::LOCALHOST },
        };
        let plane = Refusing::new(Plane::new(PlaneConfig::with_ports(10, mac)));
        Chassis::new(&config, plane, Role::Switch)
    }

    fn refused(error: SettingError, setting: SettingName) -> RefusedSetting {
        RefusedSetting { port: LAST, setting, error, refusals: 1 }
    }

    #[test]
    fn a_kind_that_is_refused_is_noted_once_and_set_a_second_later() {
        let mut chassis = chassis();
        (0..10).for_each(|port| chassis.set_port(Time::ZERO, PortNo(port), AXON));
        assert_eq!(chassis.plane.kind(LAST), Some(PortKind::Unknown));
        let (setting, error) = (SettingName::Kind, SettingError::Unavailable);
        assert_eq!(chassis.settings.telemetry(), [refused(error, setting)]);
        let note = Note::SettingRefused { port: LAST, setting, error };
        assert_eq!(core::mem::take(&mut chassis.effects), [Effect::Note(note)]);
        let due = chassis.control_deadline().expect("another try");
        assert_eq!(due, Time::ZERO + PAUSE);
        assert_eq!(chassis.set_ports_again(Time::ZERO + Span::from_millis(999)), []);
        assert_eq!(chassis.set_ports_again(due), [LAST]);
        assert_eq!(chassis.plane.kind(LAST), Some(PortKind::Axon));
        assert_eq!((chassis.settings.telemetry(), chassis.settings.refusals()), (vec![], 1));
        assert_eq!((chassis.settings.deadline(), chassis.effects.len()), (None, 0));
    }

    #[test]
    fn a_setting_that_takes_the_place_of_a_refused_one_is_the_one_that_is_made() {
        let mut chassis = chassis();
        (0..10).for_each(|port| chassis.set_port(Time::ZERO, PortNo(port), AXON));
        chassis.set_port(Time::ZERO, LAST, PortSetting::Kind(PortKind::Host));
        chassis.set_ports_again(Time::ZERO + PAUSE);
        assert_eq!(chassis.plane.kind(LAST), Some(PortKind::Host));
    }

    #[test]
    fn a_port_whose_hosts_priorities_cannot_be_set_becomes_no_host_port() {
        let mut chassis = chassis();
        let table = PortSetting::Regeneration(Box::new(Priority::ALL));
        chassis.set_port(Time::ZERO, LAST, table);
        chassis.set_port(Time::ZERO, LAST, PortSetting::Kind(PortKind::Host));
        chassis.set_ports_again(Time::ZERO + PAUSE);
        assert_eq!(chassis.plane.kind(LAST), Some(PortKind::Unknown), "it has no traffic classes");
        let of = |refused: RefusedSetting| (refused.setting, refused.error);
        assert_eq!(
            chassis.settings.telemetry().into_iter().map(of).collect::<Vec<_>>(),
            [
                (SettingName::Regeneration, SettingError::Unsupported),
                (SettingName::Kind, SettingError::Unavailable)
            ]
        );
    }

    #[test]
    fn what_a_resynchronised_data_plane_has_not_is_asked_for_until_it_has() {
        let mut chassis = chassis();
        let wanted = PortSnapshot { kind: PortKind::Axon, ..PortSnapshot::default() };
        let wanted = Snapshot { ports: vec![wanted; 10] };
        // The data plane takes none of it, and of the settings that follow all but the last.
        chassis.settings_resynchronised(Time::ZERO, &wanted);
        assert_eq!(
            chassis.settings.telemetry(),
            [refused(SettingError::Unavailable, SettingName::Kind)]
        );
        chassis.set_ports_again(Time::ZERO + PAUSE);
        assert_eq!(chassis.plane.snapshot(), wanted);
        assert_eq!(chassis.settings.telemetry(), []);
    }
}
