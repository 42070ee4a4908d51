//! What a control plane sets a port of a data plane to.

use crate::port::PortKind;
use crate::vlans::PortVlans;
use alloc::boxed::Box;
use axon_wire::dcbx::ieee::Ets;
use axon_wire::priority::{PRIORITIES, Priority, PrioritySet};
use serde::{Deserialize, Serialize};

/// One setting of one port; each kind replaces the one before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortSetting {
    /// What is plugged into the port. Frames queued there that do not suit the new kind are dropped
    /// as [`Drop::KindChanged`](crate::Drop::KindChanged) when they are scheduled: a host never
    /// sees an Axon header. Routes are left alone.
    Kind(PortKind),
    /// Which priorities map to which traffic class, and how classes are scheduled (IEEE 802.1Q
    /// clause 8.6.8); `None`: as the data plane was configured at its start.
    Classes(Option<Box<Ets>>),
    /// The priorities with flow control (IEEE 802.1Q clause 36).
    Pfc(PrioritySet),
    /// How the congestion notification domain is defended (IEEE 802.1Q clause 33.4), by priority.
    Defence(Box<[Treatment; PRIORITIES]>),
    /// Which priority a frame of a host has from its port on, by the priority of its tag; 0 without
    /// a tag. The priority regeneration table (IEEE 802.1Q clause 6.9.4): hosts use no others.
    Regeneration(Box<[Priority; PRIORITIES]>),
    /// The VLANs of a host port. `None`: tags say no VLAN there, and frames keep those that they
    /// have.
    Vlans(Option<Box<PortVlans>>),
}

impl PortSetting {
    /// Which setting it is.
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

/// The settings of a port, in the order in which they are made: the priorities that hosts may use
/// and their VLANs are in force before there are hosts.
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

/// Why a setting was not made; the port is as it was before.
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
    /// The data plane has no such function, or was not configured for it.
    #[error("the data plane cannot do this")]
    Unsupported,
    /// The setting contradicts itself: a class without a scheduler, shares that are not 100 %.
    #[error("the setting contradicts itself")]
    Invalid,
    /// The device does not answer, or refused for a reason of its own; another try may succeed.
    #[error("the device is not available")]
    Unavailable,
}

/// What is done to frames of one priority at one port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Treatment {
    /// Which priority a frame that comes in with this one has from then on.
    pub input: InputPriority,
    /// What goes out with this priority loses its CN-TAG.
    pub strip_tag: bool,
}

/// How the priority of a received frame is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum InputPriority {
    /// The entry of the port's priority regeneration table.
    Regenerated,
    /// The priority of its tag, regardless of that table.
    Kept,
    /// This one, which is not under congestion notification.
    Moved(Priority),
}
