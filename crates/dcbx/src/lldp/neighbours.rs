//! Table of a port's LLDP neighbours. Usually there is one, and behind a hub there are several.

use alloc::vec::Vec;
use axon_wire::lldp::{Id, LldpFrame, Tlv};
use axon_wire::{MacAddr, Span, Time};

/// Neighbour and its TLVs. It is identified by chassis and port (its MSAP identifier).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// The chassis ID of the neighbour.
    pub chassis: Id,
    /// The port ID of the neighbour.
    pub port: Id,
    /// Source address of the neighbour's frames.
    pub mac: MacAddr,
    /// Time at which the neighbour's information expires.
    pub until: Time,
    /// Optional TLVs from its last LLDPDU. Each LLDPDU replaces all of them.
    pub optional: Vec<Tlv>,
}

/// Effect of a received frame on the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reception {
    /// A new neighbour was added.
    New,
    /// A known neighbour advertises other TLVs, or has withdrawn.
    Changed,
    /// Nothing has changed.
    Refreshed,
    /// A new neighbour was not added because the table is full.
    Full,
}

/// Neighbours of a port, in order of appearance.
#[derive(Clone, Debug, Default)]
pub struct Neighbours(Vec<Neighbour>);

impl Neighbours {
    /// Returns all neighbours.
    pub(crate) fn all(&self) -> &[Neighbour] {
        &self.0
    }

    /// Processes a frame received at `now`.
    pub(crate) fn receive(
        &mut self,
        now: Time,
        frame: LldpFrame,
        neighbours_max: usize,
    ) -> Reception {
        let LldpFrame { source: mac, lldpdu, .. } = frame;
        let until = now + Span::from_secs(lldpdu.ttl_secs.into());
        let known =
            self.0.iter().position(|n| n.chassis == lldpdu.chassis && n.port == lldpdu.port);
        match known {
            Some(index) if lldpdu.ttl_secs == 0 => {
                self.0.remove(index);
                Reception::Changed
            }
            Some(index) => {
                let neighbour = &mut self.0[index];
                neighbour.until = until;
                if neighbour.mac == mac && neighbour.optional == lldpdu.optional {
                    return Reception::Refreshed;
                }
                (neighbour.mac, neighbour.optional) = (mac, lldpdu.optional);
                Reception::Changed
            }
            None if lldpdu.ttl_secs == 0 => Reception::Refreshed,
            None if self.0.len() >= neighbours_max => Reception::Full,
            None => {
                let (chassis, port, optional) = (lldpdu.chassis, lldpdu.port, lldpdu.optional);
                self.0.push(Neighbour { chassis, port, mac, until, optional });
                Reception::New
            }
        }
    }

    /// Removes the neighbours whose time to live has expired. Returns their number.
    pub(crate) fn age(&mut self, now: Time) -> usize {
        let before = self.0.len();
        self.0.retain(|neighbour| neighbour.until > now);
        before - self.0.len()
    }

    /// Removes all neighbours. Returns whether there were any.
    pub(crate) fn clear(&mut self) -> bool {
        !core::mem::take(&mut self.0).is_empty()
    }

    /// Returns the time at which the next neighbour expires.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.0.iter().map(|neighbour| neighbour.until).min()
    }
}
