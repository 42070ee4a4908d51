//! What breaks in a fabric and comes back.

use crate::end::End;
use axon_wire::{Rate, Span};

/// Something that breaks or comes back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// After the start.
    pub at: Span,
    /// The kind of the fault, and what it happens to.
    pub what: FaultKind,
}

/// What breaks or comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// A link between switches, by index: both ends lose carrier.
    LinkDown(usize),
    /// It comes back.
    LinkUp(usize),
    /// Frames vanish on a link, by index, but its ends keep carrier.
    LinkSilent(usize),
    /// Frames vanish on a link, by index, in the direction from this end; both ends keep carrier.
    LinkSilentFrom(usize, End),
    /// A switch, by index, is suspended, as by SIGSTOP: its ports keep carrier, what
    /// comes in waits, no timer runs.
    SwitchStopped(usize),
    /// It goes on, with all that has come in.
    SwitchGoesOn(usize),
    /// The controller is suspended.
    ControllerStopped,
    /// It goes on.
    ControllerGoesOn,
    /// A switch loses power, by index.
    SwitchDown(usize),
    /// It starts again with empty tables.
    SwitchUp(usize),
    /// The controller loses power.
    ControllerDown,
    /// It starts again with nothing in memory.
    ControllerUp,
    /// A host is unplugged, by index.
    HostDown(usize),
    /// It is plugged in again.
    HostUp(usize),
    /// A cable loses this many frames per million from now on.
    Loss(Cable, u32),
    /// A cable flips this many bits per 10^15 from now on.
    BitErrors(Cable, u64),
    /// A cable has this rate from now on, both ways.
    Rate(Cable, Rate),
    /// A host, by index, takes frames from its port no faster than this from now on; as fast
    /// as they come without a rate.
    HostSlow(usize, Option<Rate>),
}

/// Any link of a fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cable {
    /// Between two switches, by index.
    Link(usize),
    /// A host's, by the host's index.
    Host(usize),
    /// The controller's.
    Controller,
}
