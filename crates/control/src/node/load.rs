//! Load reports: the bytes that each port has sent, for a controller that asks for them.

use crate::effect::Effect;
use alloc::vec::Vec;
use axon_wire::message::{Item, PortBytes};
use axon_wire::{PortNo, Span, Time};

/// Ports in one item, so that it fits a frame with room to spare.
const ITEM_PORTS_MAX: usize = 64;

/// Reports at even intervals, from when a controller asks for them.
///
/// A report names the ports that have sent something since the last one, and those that had
/// then and have not since, so that silence is heard once and an idle switch says nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct LoadReports {
    /// None before a controller asks.
    every: Option<Span>,
    since: Time,
    /// By port: bytes sent at the last report, and whether the last report named it as busy.
    ports: Vec<(u64, bool)>,
}

impl LoadReports {
    /// The controller wants a report this often; the first interval begins now. There are so many
    /// ports, and each has sent so many bytes.
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

    /// When the next report is due.
    pub(super) fn deadline(&self) -> Option<Time> {
        Some(self.since + self.every?)
    }

    /// Reports, if it is time.
    pub(super) fn timeout(
        &mut self,
        now: Time,
        sent: impl Fn(PortNo) -> u64,
        out: &mut Vec<Effect>,
    ) {
        if self.deadline().is_none_or(|at| at > now) {
            return;
        }
        let over_us = now.since(self.since).as_nanos() / 1_000;
        self.since = now;
        let mut changed = Vec::new();
        for (port, (before, busy)) in (0..).map(PortNo).zip(&mut self.ports) {
            let sent = sent(port);
            // A device that has restarted counts from zero again.
            let bytes = sent.checked_sub(core::mem::replace(before, sent)).unwrap_or(sent);
            let was_busy = core::mem::replace(busy, bytes > 0);
            if bytes > 0 || was_busy {
                changed.push(PortBytes { port, bytes });
            }
        }
        for ports in changed.chunks(ITEM_PORTS_MAX) {
            out.push(Effect::Report(Item::PortLoad { over_us, ports: ports.to_vec() }));
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
            Effect::Report(Item::PortLoad { ports, .. }) => ports[0].bytes,
            other => panic!("{other:?}"),
        });
        assert_eq!(bytes.collect::<Vec<_>>(), [100, 300]);
    }
}
