//! Faults of a fabric and recoveries from them.

use crate::end::End;
use axon_wire::{Rate, Span};

/// A fault or a recovery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Time after the start.
    pub at: Span,
    /// Kind of the fault, and the object that it affects.
    pub what: FaultKind,
}

/// Kind of a fault or a recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// A link between switches, by index, goes down: both ends lose carrier.
    LinkDown(usize),
    /// A link, by index, comes back.
    LinkUp(usize),
    /// A link, by index, drops all frames, but its ends keep carrier.
    LinkSilent(usize),
    /// A link, by index, drops all frames from this end; both ends keep carrier.
    LinkSilentFrom(usize, End),
    /// A switch, by index, is suspended, as by SIGSTOP: its ports keep carrier, incoming frames
    /// wait, no timer runs.
    SwitchStopped(usize),
    /// A suspended switch, by index, resumes, with all frames that have come in.
    SwitchGoesOn(usize),
    /// The controller is suspended.
    ControllerStopped,
    /// The suspended controller resumes.
    ControllerGoesOn,
    /// A switch, by index, loses power.
    SwitchDown(usize),
    /// A switch, by index, starts again with empty tables.
    SwitchUp(usize),
    /// The controller loses power.
    ControllerDown,
    /// The controller starts again with empty memory.
    ControllerUp,
    /// A host, by index, is unplugged.
    HostDown(usize),
    /// A host, by index, is plugged in again.
    HostUp(usize),
    /// A cable loses this many frames per million from then on.
    Loss(Cable, u32),
    /// A cable flips this many bits per 10^15 from then on.
    BitErrors(Cable, u64),
    /// A cable has this rate from then on, in both directions.
    Rate(Cable, Rate),
    /// A host, by index, takes frames from its port no faster than this from then on; `None`
    /// removes the limit.
    HostSlow(usize, Option<Rate>),
}

/// A link of a fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cable {
    /// Link between two switches, by index.
    Link(usize),
    /// Link of a host, by the host's index.
    Host(usize),
    /// Link of the controller.
    Controller,
}
