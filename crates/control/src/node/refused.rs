//! Settings of ports that the data plane has refused.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use axon_node::telemetry::RefusedSetting;
use axon_node::{PortSetting, SettingError, SettingName};
use axon_wire::{PortNo, Span, Time};

/// The time from a refusal until what was refused is asked for again.
pub(super) const PAUSE: Span = Span::from_secs(1);

/// The settings that a data plane has refused: one of each name for each port, at most.
#[derive(Debug, Default)]
pub(super) struct RefusedSettings {
    pub(super) refused: BTreeMap<(PortNo, SettingName), Refused>,
    pub(super) again_at: Option<Time>,
    refusals: u64,
}

/// A setting that was refused.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) setting: PortSetting,
    pub(super) error: SettingError,
    refusals: u64,
}

impl RefusedSettings {
    /// When refused settings are asked for again.
    pub fn deadline(&self) -> Option<Time> {
        self.again_at
    }

    /// How often a setting was refused.
    pub fn refusals(&self) -> u64 {
        self.refusals
    }

    /// All that are not made.
    pub fn telemetry(&self) -> Vec<RefusedSetting> {
        let refused = self.refused.iter().map(|(&(port, setting), refused)| {
            let &Refused { error, refusals, .. } = refused;
            RefusedSetting { port, setting, error, refusals }
        });
        refused.collect()
    }

    /// Whether this setting of the port is not made.
    pub fn is_refused(&self, port: PortNo, setting: SettingName) -> bool {
        self.refused.contains_key(&(port, setting))
    }

    /// Keeps what was refused; says whether that is new.
    pub fn keep(
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
