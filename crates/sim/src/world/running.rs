//! What runs of a fabric's traffic.

use crate::host::apps::AppId;

/// The port of the first entry.
const PORT_FIRST: u16 = 5001;

/// A ping that was started: by which host, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PingId {
    /// The host that asks, by index.
    pub host: usize,
    /// Its number there.
    pub number: usize,
}

/// Who is at an end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    /// A host.
    Host(usize),
    /// More than one.
    Several,
}

/// What does the work of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Nothing: a host had no address or no power when it was to start.
    None,
    /// An application of a host.
    App(usize, AppId),
    /// A ping.
    Ping(PingId),
    /// A host that speaks ARP only.
    ArpHost(usize),
}

/// A flow that was started.
#[derive(Clone, Debug)]
pub(crate) struct Running {
    pub(crate) entry: usize,
    pub(crate) from: Name,
    pub(crate) to: Name,
    pub(crate) work: Work,
    /// Who counts what arrives, if that is another host; a replay's frames may go to several.
    pub(crate) sinks: Vec<(usize, AppId)>,
}

/// The port of an entry, by its number.
pub(crate) fn port_of(entry: usize) -> u16 {
    PORT_FIRST + (entry % 40_000) as u16
}
