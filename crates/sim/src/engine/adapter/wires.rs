//! The wires of a station that are busy, and the `TxDone`s that are owed for them.

use super::{Adapter, Owed};
use crate::engine::event::{Common, Kind};
use axon_node::{Awaited, Input, Node};
use axon_wire::{FrameBuf, PortNo, Time};

impl Adapter {
    /// Delivers the `TxDone`s that are due.
    #[inline]
    pub(crate) fn free_wires<N>(&mut self, node: &mut N, common: &mut Common)
    where
        N: Node<FrameBuf> + ?Sized,
    {
        while self.owed_first <= common.now {
            let Some(Owed { due, port, .. }) = self.owed.pop_front() else {
                return;
            };
            self.owed_first = self.owed.front().map_or(Time::MAX, |owed| owed.due);
            if !common.without.passing && node.freed(due, port) {
                continue;
            }
            node.handle(due, Input::TxDone { port }, &mut common.out);
            if !common.out.is_empty() {
                self.carry_out(node, common);
            }
        }
    }

    /// The wire of `port` is busy until then.
    #[inline]
    pub(super) fn owe(&mut self, port: PortNo, due: Time) {
        let owed = Owed { due, port, planned: false };
        let before = |other: &Owed| (other.due, other.port) < (due, port);
        if self.owed.back().is_none_or(before) {
            self.owed.push_back(owed);
        } else {
            let place = self.owed.partition_point(before);
            self.owed.insert(place, owed);
        }
        self.owed_first = self.owed_first.min(due);
    }

    /// Plans an event for each busy wire that the node now waits for.
    #[inline]
    pub(crate) fn await_wires<N>(&mut self, node: &mut N, common: &mut Common)
    where
        N: Node<FrameBuf> + ?Sized,
    {
        loop {
            match node.awaited() {
                Awaited::None => break,
                Awaited::Port(port) => self.plan_wires(Some(port), common),
                Awaited::Every => break self.plan_wires(None, common),
            }
        }
        if common.without.lazy_tx_done {
            self.plan_wires(None, common);
        }
    }

    pub(super) fn plan_wires(&mut self, only: Option<PortNo>, common: &mut Common) {
        for index in 0..self.owed.len() {
            let Owed { due, port, planned } = self.owed[index];
            if !planned && only.is_none_or(|only| only == port) {
                self.owed[index].planned = true;
                self.push_own(due, Kind::TxDone, common);
            }
        }
    }

    /// Cancels the `TxDone` that is owed for a port.
    pub(crate) fn cancel_tx_done(&mut self, port: PortNo) {
        self.owed.retain(|owed| owed.port != port);
        self.owed_first = self.owed.front().map_or(Time::MAX, |owed| owed.due);
    }
}
