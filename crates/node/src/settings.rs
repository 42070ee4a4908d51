//! Settings of a data plane's ports by a control plane.

use crate::port::PortKind;
use crate::vlans::PortVlans;
use alloc::boxed::Box;
use axon_wire::dcbx::ieee::Ets;
use axon_wire::priority::{PRIORITIES, Priority, PrioritySet};
use serde::{Deserialize, Serialize};

/// One setting of one port; each kind replaces the one before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortSetting {
    /// The kind of the port. Frames queued there that do not suit the new kind are dropped as
    /// [`Drop::KindChanged`](crate::Drop::KindChanged) when they are scheduled: a host never
    /// receives an Axon header. Routes are unchanged.
    Kind(PortKind),
    /// The mapping of priorities to traffic classes, and the scheduling of classes (IEEE 802.1Q
    /// clause 8.6.8); `None` restores the initial configuration of the data plane.
    Classes(Option<Box<Ets>>),
    /// The priorities with flow control (IEEE 802.1Q clause 36).
    Pfc(PrioritySet),
    /// The defence of the congestion notification domain (IEEE 802.1Q clause 33.4), by priority.
    Defence(Box<[Treatment; PRIORITIES]>),
    /// The priority regeneration table (IEEE 802.1Q clause 6.9.4): the priority of a host's frame
    /// from its port on, by the priority of its tag; 0 without a tag. Hosts use no other
    /// priorities.
    Regeneration(Box<[Priority; PRIORITIES]>),
    /// The VLANs of a host port. With `None` tags select no VLAN there, and frames keep their tags.
    Vlans(Option<Box<PortVlans>>),
}

impl PortSetting {
    /// Returns the name of the setting.
    pub const fn name(&self) -> SettingName {
        match self {
            PortSetting::Regeneration(_) => SettingName::Regeneration,
            PortSetting::Kind(_) => SettingName::Kind,
            PortSetting::Classes(_) => SettingName::Classes,
            PortSetting::Pfc(_) => SettingName::Pfc,
            PortSetting::Defence(_) => SettingName::Defence,
            PortSetting::Vlans(_) => SettingName::Vlans,
        }
    }
}

/// Names of the settings of a port, in the order in which they are made: the priorities that hosts
/// may use and their VLANs are in force before there are hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SettingName {
    /// The setting [`PortSetting::Regeneration`] of a port.
    Regeneration,
    /// The setting [`PortSetting::Vlans`] of a port.
    Vlans,
    /// The setting [`PortSetting::Kind`] of a port.
    Kind,
    /// The setting [`PortSetting::Classes`] of a port.
    Classes,
    /// The setting [`PortSetting::Pfc`] of a port.
    Pfc,
    /// The setting [`PortSetting::Defence`] of a port.
    Defence,
}

impl core::fmt::Display for SettingName {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            SettingName::Regeneration => "priority regeneration",
            SettingName::Vlans => "VLANs",
            SettingName::Kind => "port kind",
            SettingName::Classes => "traffic classes",
            SettingName::Pfc => "PFC",
            SettingName::Defence => "defence of the congestion notification domain",
        })
    }
}

/// Errors in a setting; the port is unchanged.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    thiserror::Error,
    Serialize,
    Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum SettingError {
    /// The data plane has no such port.
    #[error("no such port")]
    NoSuchPort,
    /// The data plane does not support the setting, or was not configured for it.
    #[error("the data plane cannot do this")]
    Unsupported,
    /// The setting is inconsistent: a class without a scheduler, shares that are not 100 %.
    #[error("the setting contradicts itself")]
    Invalid,
    /// The device does not answer, or refused for its own reasons; a retry may succeed.
    #[error("the device is not available")]
    Unavailable,
}

/// Treatment of frames of one priority at one port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Treatment {
    /// The new priority of frames received with this priority.
    pub input: InputPriority,
    /// True if frames sent with this priority lose their CN-TAG.
    pub strip_tag: bool,
}

/// Choice of the priority of a received frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum InputPriority {
    /// The entry of the port's priority regeneration table.
    Regenerated,
    /// The priority of its tag, regardless of that table.
    Kept,
    /// This priority, which is not under congestion notification.
    Moved(Priority),
}
