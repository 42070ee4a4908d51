//! The edge: how hosts and the fabric meet at a switch (paper 001 §4.2.2 and §4.2.3).

use crate::config::SwitchConfig;
use crate::effect::Effect;
use alloc::vec::Vec;
use axon_plane::{PortKind, RouteTables};
use axon_wire::message::{ArpReply, ArpTarget, HostFrame, Item};
use axon_wire::{Life, PortNo, Time};

/// The edge of one switch.
pub struct Edge;

#[allow(unused_variables, missing_docs)]
impl Edge {
    pub fn new(config: &SwitchConfig) -> Edge {
        Edge
    }
    /// A frame that a host sent and that had no route, without Axon header. What ends badly
    /// comes back as [`Effect::Drop`]; a frame that was served leaves none.
    pub fn host_frame(
        &mut self,
        now: Time,
        port: PortNo,
        frame: &[u8],
        tables: &mut RouteTables,
        out: &mut Vec<Effect>,
    ) {
    }
    pub fn arp_target(
        &mut self,
        now: Time,
        m: ArpTarget,
        tables: &mut RouteTables,
        out: &mut Vec<Effect>,
    ) {
    }
    pub fn arp_reply(
        &mut self,
        now: Time,
        m: ArpReply,
        tables: &mut RouteTables,
        out: &mut Vec<Effect>,
    ) {
    }
    pub fn item(
        &mut self,
        now: Time,
        item: Item,
        tables: &mut RouteTables,
        out: &mut Vec<Effect>,
    ) {
    }
    pub fn host_frame_out(&mut self, now: Time, m: HostFrame, out: &mut Vec<Effect>) {}
    pub fn port_changed(
        &mut self,
        now: Time,
        port: PortNo,
        kind: Option<PortKind>,
        tables: &mut RouteTables,
        out: &mut Vec<Effect>,
    ) {
    }
    pub fn controller_changed(
        &mut self,
        now: Time,
        controller: Option<Life>,
        tables: &mut RouteTables,
        out: &mut Vec<Effect>,
    ) {
    }
    pub fn timeout(&mut self, now: Time, tables: &mut RouteTables, out: &mut Vec<Effect>) {}
    pub fn deadline(&self) -> Option<Time> {
        None
    }
}
