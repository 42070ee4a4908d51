//! Busy wires of a station and their pending `TxDone`s.

use super::Adapter;
use crate::engine::event::{Common, Kind};
use axon_node::{Awaited, Input, Node};
use axon_wire::{PortNo, Time};

impl Adapter {
    /// Delivers the due `TxDone`s, by time and then by port.
    #[inline]
    pub(crate) fn free_wires<N>(&mut self, node: &mut N, common: &mut Common)
    where
        N: Node + ?Sized,
    {
        if self.owed_first > common.now {
            return;
        }
        if !common.without.passing {
            self.free_idle(node, common.now);
        }
        while self.owed_first <= common.now {
            let Some((due, port)) = self.first_owed().filter(|(due, _)| *due <= common.now) else {
                return;
            };
            self.cancel_tx_done(port);
            if !common.without.passing && node.freed(due, port) {
                continue;
            }
            node.handle(due, Input::TxDone { port }, &mut common.out);
            if !common.out.is_empty() {
                self.carry_out(node, common);
            }
        }
    }

    /// Frees the wires that the node does not wait for, in one pass; their order does not matter.
    /// If an awaited wire becomes free now, other wires of this instant keep their order.
    #[inline]
    fn free_idle<N>(&mut self, node: &mut N, now: Time)
    where
        N: Node + ?Sized,
    {
        let in_order = self.awaited_first <= now;
        let mut first = Time::MAX;
        for (port, free_at) in (0..).zip(&mut self.free_at) {
            let is_due = *free_at < now || *free_at == now && !in_order;
            if is_due && node.freed(*free_at, PortNo(port)) {
                *free_at = Time::MAX;
            }
            first = first.min(*free_at);
        }
        self.owed_first = first;
    }

    /// Returns the time and port of the wire that becomes free first.
    #[inline]
    fn first_owed(&mut self) -> Option<(Time, PortNo)> {
        let mut first = (Time::MAX, PortNo::CONTROL);
        for (port, &due) in (0..).zip(&self.free_at) {
            if due < first.0 {
                first = (due, PortNo(port));
            }
        }
        self.owed_first = first.0;
        (first.0 < Time::MAX).then_some(first)
    }

    /// Marks the wire of `port` as busy until `due`.
    #[inline(always)]
    pub(super) fn owe(&mut self, port: PortNo, due: Time) {
        if self.awaited_first < Time::MAX {
            self.forget_plan(port);
        }
        self.free_at[port.index()] = due;
        self.owed_first = self.owed_first.min(due);
    }

    /// Discards the planned event of `port`.
    #[inline(never)]
    fn forget_plan(&mut self, port: PortNo) {
        self.planned.retain(|&planned| planned != port);
        let dues = self.planned.iter().map(|planned| self.free_at[planned.index()]);
        self.awaited_first = dues.min().unwrap_or(Time::MAX);
    }

    /// Plans an event for each busy wire that the node now awaits.
    #[inline]
    pub(crate) fn await_wires<N>(&mut self, node: &mut N, common: &mut Common)
    where
        N: Node + ?Sized,
    {
        loop {
            match node.awaited() {
                Awaited::None => break,
                Awaited::Port(port) => self.plan_wire(port, common),
                Awaited::Every => break self.plan_wires(common),
            }
        }
        if common.without.lazy_tx_done {
            self.plan_wires(common);
        }
    }

    pub(super) fn plan_wires(&mut self, common: &mut Common) {
        (0..self.free_at.len()).for_each(|port| self.plan_wire(PortNo(port as u16), common));
    }

    fn plan_wire(&mut self, port: PortNo, common: &mut Common) {
        let due = self.free_at.get(port.index()).copied().filter(|due| *due < Time::MAX);
        if let Some(due) = due
            && !self.planned.contains(&port)
        {
            self.planned.push(port);
            self.awaited_first = self.awaited_first.min(due);
            self.push_own(due, Kind::TxDone, common);
        }
    }

    /// Cancels the pending `TxDone` of a port.
    pub(crate) fn cancel_tx_done(&mut self, port: PortNo) {
        if let Some(free_at) = self.free_at.get_mut(port.index()) {
            *free_at = Time::MAX;
            if self.awaited_first < Time::MAX {
                self.forget_plan(port);
            }
        }
    }
}
