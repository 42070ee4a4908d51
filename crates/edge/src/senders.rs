//! Hosts' frames to groups: a copy goes to one host of each port with members, on the ingress
//! port's route to that host, like a unicast frame.
//!
//! The first frame of a host to a group waits for the controller's list of receivers. Then each
//! copy takes its route, or waits for it like any frame. So a copy only goes where a route goes:
//! copies are not copied again, and none reaches a host that its sender may not reach. A failure on
//! the path is that of the route. The frame itself is not altered, so all hosts behind the port
//! accept it by its group address.

use super::context::Cx;
use super::edge::Fate;
use super::groups::{Pair, SENDER_MAX, SENDERS_PER_PORT_MAX, Sender};
use super::parts::Parts;
use alloc::vec::Vec;
use axon_link::config::COPIES_MAX;
use axon_link::effect::Effect;
use axon_node::Drop;
use axon_wire::message::Item;
use axon_wire::router::{self, Router};
use axon_wire::{MacAddr, PortNo, host_frame, membership};

impl Parts {
    /// Handles a host's frame to a group or broadcast, within the rate of its port.
    pub(super) fn group_frame(
        &mut self,
        cx: &mut Cx,
        port: PortNo,
        frame: &[u8],
    ) -> Result<Fate, Drop> {
        let (source, group) = self.group_of(frame).ok_or(Drop::Broadcast)?;
        let rate = self.groups.rate;
        let groups = self.groups.ports.entry(port).or_default();
        if !groups.frames.has(cx.now, rate) {
            cx.counters.group_limited += 1;
            return Err(Drop::Broadcast);
        }
        groups.frames.take(cx.now, rate);
        self.send_to_group(cx, port, (source, group))
    }

    /// Copies a frame that waited for its list.
    pub(super) fn waited_for_list(
        &mut self,
        cx: &mut Cx,
        port: PortNo,
        frame: &[u8],
    ) -> Result<Fate, Drop> {
        let (source, group) = self.group_of(frame).ok_or(Drop::Broadcast)?;
        if !self.hosts.is_on(source, port) {
            return Err(Drop::Refused);
        }
        self.send_to_group(cx, port, (source, group))
    }

    /// Returns the sender and the group of a frame that may be copied. Answers of a host's own DHCP
    /// server may not.
    fn group_of(&self, frame: &[u8]) -> Option<Pair> {
        let config = self.groups.config;
        let destination = MacAddr::destination_of(frame)?;
        let group = membership::group_of(destination, host_frame::destination_ip(frame))?;
        let wanted = match membership::is_everybody(group) {
            true => config.broadcast && host_frame::contents(frame)?.0 >= 0x600,
            false => config.multicast && membership::is_reportable(group),
        };
        // A host reads it from any group.
        let to_routers_hosts = matches!(router::classify(frame), Some(Router::Advertisement))
            && !membership::is_everybody(group);
        let served = wanted && !to_routers_hosts && !host_frame::is_to_dhcp_client(frame);
        served.then_some((MacAddr::source_of(frame)?, group))
    }

    fn send_to_group(&mut self, cx: &mut Cx, port: PortNo, pair: Pair) -> Result<Fate, Drop> {
        let wait = cx.settings.arp_wait;
        let groups = self.groups.ports.entry(port).or_default();
        let is_full = groups.senders.len() >= SENDERS_PER_PORT_MAX;
        match groups.senders.get_mut(&pair) {
            Some(sender) if sender.is_known => {
                sender.until = cx.now + SENDER_MAX;
                let hosts = sender.hosts.clone();
                return self.spread(cx, port, (pair.0, &hosts));
            }
            Some(_) => {}
            None if is_full => {
                cx.counters.senders_refused += 1;
                return Err(Drop::Broadcast);
            }
            None => {
                let until = cx.now + wait;
                let sender = Sender { hosts: Vec::new(), is_known: false, until };
                groups.senders.insert(pair, sender);
                self.ask_for_list(cx, port, pair, true);
                self.groups_due_later(cx, port);
            }
        }
        Ok(Fate::Wait(membership::mac_of(pair.1)))
    }

    /// Makes the copies of a frame: each takes its route, or waits for it.
    fn spread(
        &mut self,
        cx: &mut Cx,
        port: PortNo,
        (source, hosts): (MacAddr, &[MacAddr]),
    ) -> Result<Fate, Drop> {
        let rate = self.groups.copies;
        let groups = self.groups.ports.entry(port).or_default();
        if !groups.copies.take_all(cx.now, rate, hosts.len() as u64) {
            cx.counters.group_copies_limited += hosts.len() as u64;
            return Err(Drop::Broadcast);
        }
        let mut copies = Vec::new();
        for &host in hosts {
            match self.unicast(cx, port, (source, host), None) {
                Ok(fate) => copies.push(fate),
                Err(_) => cx.counters.group_copies_lost += 1,
            }
        }
        if copies.is_empty() {
            return Err(Drop::Broadcast);
        }
        cx.counters.group_frames += 1;
        cx.counters.group_copies += copies.len() as u64;
        Ok(Fate::Copies(copies))
    }

    fn ask_for_list(&self, cx: &mut Cx, port: PortNo, pair: Pair, wanted: bool) {
        if cx.controller.is_reachable() {
            let (mac, group) = pair;
            cx.out.push(Effect::Report(Item::AskGroup { port, mac, group, wanted }));
        }
    }

    /// Requests the lists of all senders, because the controller may have none of them.
    pub(super) fn ask_for_lists(&self, cx: &mut Cx) {
        for (&port, groups) in &self.groups.ports {
            for &pair in groups.senders.keys() {
                self.ask_for_list(cx, port, pair, true);
            }
        }
    }

    /// Handles a part of a list. A part that does not follow the previous one is not of the newest
    /// list.
    pub(super) fn group_hosts(
        &mut self,
        cx: &mut Cx,
        (port, pair): (PortNo, Pair),
        (first, more): (u16, bool),
        hosts: Vec<MacAddr>,
    ) {
        let until = cx.now + SENDER_MAX;
        let groups = self.groups.ports.get_mut(&port);
        let Some(sender) = groups.and_then(|groups| groups.senders.get_mut(&pair)) else {
            cx.counters.messages_ignored += 1;
            return;
        };
        if first == 0 {
            sender.hosts.clear();
        } else if sender.is_known || sender.hosts.len() != usize::from(first) {
            cx.counters.messages_ignored += 1;
            return;
        }
        sender.hosts.extend(hosts.into_iter().filter(|mac| mac.is_unicast()));
        sender.hosts.truncate(COPIES_MAX);
        let was_known = core::mem::replace(&mut sender.is_known, !more);
        if sender.is_known && !was_known {
            sender.until = until;
            let destination = membership::mac_of(pair.1);
            cx.out.push(Effect::Spread { ingress: port, key: destination.into() });
        }
        self.groups_due_later(cx, port);
    }

    /// Removes a host that no longer sends to a group, or whose list has not arrived. Its waiting
    /// frames are dropped.
    pub(super) fn sender_gone(&mut self, cx: &mut Cx, port: PortNo, pair: Pair) {
        let groups = self.groups.ports.get_mut(&port);
        let Some(sender) = groups.and_then(|groups| groups.senders.remove(&pair)) else { return };
        self.ask_for_list(cx, port, pair, false);
        if !sender.is_known {
            let destination = membership::mac_of(pair.1);
            cx.out.push(Effect::Abandon { ingress: port, key: destination.into() });
        }
    }
}
