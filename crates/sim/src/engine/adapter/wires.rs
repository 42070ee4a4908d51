//! Busy wires of a station and their pending `TxDone`s.

use super::Adapter;
use crate::engine::event::{Common, Kind};
use axon_node::{Awaited, Input, Shortcuts};
use axon_wire::{PortNo, Time};

impl Adapter {
    /// Delivers the due `TxDone`s, by time and then by port.
    #[inline]
    pub(crate) fn free_wires<N>(&mut self, node: &mut N, common: &mut Common)
    where
        N: Shortcuts + ?Sized,
    {
        while self.owed_first <= common.now {
            let mut first = (Time::MAX, PortNo::CONTROL);
            for (port, &due) in (0..).zip(&self.free_at) {
                if due < first.0 {
                    first = (due, PortNo(port));
                }
            }
            let (due, port) = first;
            self.owed_first = due;
            if due > common.now || due == Time::MAX {
                return;
            }
            self.cancel_tx_done(port);
            node.handle(due, Input::TxDone { port }, &mut common.out);
            if !common.out.is_empty() {
                self.carry_out(node, common);
            }
        }
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
        N: Shortcuts + ?Sized,
    {
        while !common.without.shortcuts {
            match node.awaited() {
                Awaited::None => return,
                Awaited::Port(port) => self.plan_wire(port, common),
                Awaited::Every => break,
            }
        }
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
