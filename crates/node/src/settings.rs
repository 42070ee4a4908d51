//! What a control plane sets a port of a data plane to.

use crate::port::PortKind;
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
}

/// Why a setting was not made; the port is as it was before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
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
