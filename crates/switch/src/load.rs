//! Load reports: bytes sent by each port, for a controller that requests them.

use alloc::vec::Vec;
use axon_edge::Effect;
use axon_wire::message::{Item, PortBytes};
use axon_wire::vlan::VlanId;
use axon_wire::{PortNo, Span, Time};

/// Maximum ports in one item, which then fits in a frame.
const ITEM_PORTS_MAX: usize = 64;

/// Load reports at even intervals, once a controller requests them.
///
/// A report names the ports that have sent bytes since the last one, and those that were named then
/// and have not sent since. So silence is reported once, and an idle switch reports nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct LoadReports {
    /// Report interval; `None` before a controller requests reports.
    every: Option<Span>,
    since: Time,
    /// Bytes sent at the last report, and whether that report named the port as busy, by port.
    ports: Vec<(u64, bool)>,
}

impl LoadReports {
    /// Sets the report interval; the first interval begins now, with the given counters of all
    /// ports.
    pub(super) fn ask(
        &mut self,
        now: Time,
        every_ms: u32,
        (ports, sent): (u16, impl Fn(PortNo) -> u64),
    ) {
        self.every = Some(Span::from_millis(u64::from(every_ms.max(1))));
        self.since = now;
        self.ports = (0..ports).map(|port| (sent(PortNo(port)), true)).collect();
    }

    /// Returns when the next report is due.
    pub(super) fn deadline(&self) -> Option<Time> {
        Some(self.since + self.every?)
    }

    /// Adds the load reports to `out` if they are due.
    pub(super) fn timeout(
        &mut self,
        now: Time,
        sent: impl Fn(PortNo) -> u64,
        out: &mut Vec<impl From<(VlanId, Effect)>>,
    ) {
        if self.deadline().is_none_or(|at| at > now) {
            return;
        }
        let over_us = now.since(self.since).as_nanos() / 1_000;
        self.since = now;
        let mut changed = Vec::new();
        for (port, (before, busy)) in (0..).map(PortNo).zip(&mut self.ports) {
            let sent = sent(port);
            // The counters of a restarted device begin at zero.
            let bytes = sent.checked_sub(core::mem::replace(before, sent)).unwrap_or(sent);
            let was_busy = core::mem::replace(busy, bytes > 0);
            if bytes > 0 || was_busy {
                changed.push(PortBytes { port, bytes });
            }
        }
        for ports in changed.chunks(ITEM_PORTS_MAX) {
            let item = Item::PortLoad { over_us, ports: ports.to_vec() };
            out.push((VlanId::NONE, Effect::Report(item)).into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_counts_from_zero_again_has_sent_what_it_counts() {
        let (mut loads, mut out) = (LoadReports::default(), Vec::new());
        loads.ask(Time::ZERO, 10, (1, |_| 5_000));
        loads.timeout(loads.deadline().unwrap(), |_| 5_100, &mut out);
        loads.timeout(loads.deadline().unwrap(), |_| 300, &mut out);
        let bytes = out.iter().map(|effect| match effect {
            (_, Effect::Report(Item::PortLoad { ports, .. })) => ports[0].bytes,
            other => panic!("{other:?}"),
        });
        assert_eq!(bytes.collect::<Vec<_>>(), [100, 300]);
    }
}
