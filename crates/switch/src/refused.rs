//! Port settings that the data plane has refused.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use axon_node::telemetry::RefusedSetting;
use axon_node::{PortSetting, SettingError, SettingName};
use axon_wire::{PortNo, Span, Time};

/// Time from a refusal to the next attempt.
pub(super) const PAUSE: Span = Span::from_secs(1);

/// Port settings that the data plane has refused: at most one of each name for each port.
#[derive(Debug, Default)]
pub(super) struct RefusedSettings {
    pub(super) refused: BTreeMap<(PortNo, SettingName), Refused>,
    pub(super) again_at: Option<Time>,
    refusals: u64,
}

/// A refused setting.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) setting: PortSetting,
    pub(super) error: SettingError,
    refusals: u64,
}

impl RefusedSettings {
    /// Returns when refused settings are tried again.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.again_at
    }

    /// Returns the number of refusals.
    pub(crate) fn refusals(&self) -> u64 {
        self.refusals
    }

    /// Returns all pending settings.
    pub fn telemetry(&self) -> Vec<RefusedSetting> {
        let refused = self.refused.iter().map(|(&(port, setting), refused)| {
            let &Refused { error, refusals, .. } = refused;
            RefusedSetting { port, setting, error, refusals }
        });
        refused.collect()
    }

    /// Returns whether this setting of the port is pending.
    pub(crate) fn is_refused(&self, port: PortNo, setting: SettingName) -> bool {
        self.refused.contains_key(&(port, setting))
    }

    /// Stores a refused setting; returns whether it is new.
    pub(crate) fn keep(
        &mut self,
        now: Time,
        port: PortNo,
        setting: PortSetting,
        error: SettingError,
    ) -> bool {
        self.refusals += 1;
        let before = self.refused.remove(&(port, setting.name()));
        let refusals = before.as_ref().map_or(0, |refused| refused.refusals) + 1;
        self.refused.insert((port, setting.name()), Refused { setting, error, refusals });
        if error == SettingError::Unavailable {
            self.again_at = self.again_at.or(Some(now + PAUSE));
        }
        before.is_none_or(|refused| refused.error != error)
    }
}
