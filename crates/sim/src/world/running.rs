//! Running traffic of a fabric.

use axon_simhost::apps::AppId;

/// Port of the first entry.
const PORT_FIRST: u16 = 5001;

/// ID of a started ping: its host, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PingId {
    /// Index of the host that pings.
    pub host: usize,
    /// Number of the ping at its host.
    pub number: usize,
}

/// Name of an end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    /// Single host.
    Host(usize),
    /// Several hosts.
    Several,
}

/// Application that runs a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// None: a host had no address or no power at the start.
    None,
    /// Application of a host.
    App(usize, AppId),
    /// Ping.
    Ping(PingId),
    /// Host that implements ARP only.
    ArpHost(usize),
}

/// Started flow.
#[derive(Clone, Debug)]
pub(crate) struct Running {
    pub(crate) entry: usize,
    pub(crate) from: Name,
    pub(crate) to: Name,
    pub(crate) work: Work,
    /// Applications on other hosts that count arrivals; a replay's frames may go to several hosts.
    pub(crate) sinks: Vec<(usize, AppId)>,
}

/// Returns the port of an entry, by its number.
pub(crate) fn port_of(entry: usize) -> u16 {
    PORT_FIRST + (entry % 40_000) as u16
}
