//! Hosts' frames to groups: a copy goes to one host of each port with members, on the ingress
//! port's route to that host, like a unicast frame.
//!
//! The first frame of a host to a group waits for the controller's list of receivers. Then each
//! copy takes its route, or waits for it like any frame. So a copy only goes where a route goes:
//! copies are not copied again, and none reaches a host that its sender may not reach. A failure on
//! the path is that of the route. The frame itself is not altered, so all hosts behind the port
//! accept it by its group address.

use super::context::Cx;
use super::members::Pair;
use crate::config::GroupConfig;
use crate::effect::Effect;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use axon_link::bucket::{Bucket, Rate};
use axon_link::config::COPIES_MAX;
use axon_node::Drop;
use axon_wire::message::Item;
use axon_wire::router::{self, Router};
use axon_wire::{MacAddr, PortNo, Span, Time, host_frame, membership};

/// Maximum number of senders (pairs of a host and a group) at one port.
pub(super) const SENDERS_PER_PORT_MAX: usize = 64;
/// Time without frames to a group after which a host is no longer its sender.
pub(super) const SENDER_MAX: Span = Span::from_secs(300);

/// Senders at all ports.
#[derive(Clone, Debug)]
pub(super) struct Senders {
    config: GroupConfig,
    /// Rate of frames.
    rate: Rate,
    /// Rate of copies.
    copies: Rate,
    ports: BTreeMap<PortNo, PortSenders>,
}

/// Senders at one port.
#[derive(Clone, Debug, Default)]
struct PortSenders {
    senders: BTreeMap<Pair, Sender>,
    frames: Bucket,
    copies: Bucket,
}

/// A host that sends to a group.
#[derive(Clone, Debug)]
struct Sender {
    /// Receivers, as far as their list has arrived.
    hosts: Vec<MacAddr>,
    /// True if the list is complete.
    is_known: bool,
    /// If the list has not arrived, when its frames stop waiting; otherwise the expiry of the
    /// entry.
    until: Time,
}

impl Senders {
    /// Creates an empty list.
    pub(super) fn new(config: GroupConfig) -> Senders {
        let rate = |per_second: u32, least: usize| {
            let burst = u64::from(per_second).max(least as u64);
            Rate { every: Span::from_ticks(Span::from_secs(1).ticks() / burst), burst }
        };
        let copies = rate(config.copies_per_second, COPIES_MAX);
        let rate = rate(config.frames_per_second, 1);
        Senders { config, rate, copies, ports: BTreeMap::new() }
    }

    /// Returns the sender and the group of a frame that may be copied. Answers of a host's own DHCP
    /// server may not.
    pub(super) fn group_of(&self, frame: &[u8]) -> Option<Pair> {
        let config = self.config;
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

    /// Takes a frame to a group from the rate of its port; `false` if that is exceeded.
    pub(super) fn admit(&mut self, cx: &mut Cx, port: PortNo) -> bool {
        let groups = self.ports.entry(port).or_default();
        let admitted = groups.frames.has(cx.now, self.rate);
        match admitted {
            true => groups.frames.take(cx.now, self.rate),
            false => cx.counters.group_limited += 1,
        }
        admitted
    }

    /// Returns the receivers of a frame, and takes their copies from the rate of the port. `None`
    /// if the frame waits for the list, which is requested for a new sender.
    ///
    /// # Errors
    /// The port has too many senders, or copies.
    pub(super) fn receivers(
        &mut self,
        cx: &mut Cx,
        port: PortNo,
        pair: Pair,
    ) -> Result<Option<Vec<MacAddr>>, Drop> {
        let groups = self.ports.entry(port).or_default();
        let is_full = groups.senders.len() >= SENDERS_PER_PORT_MAX;
        match groups.senders.get_mut(&pair) {
            Some(sender) if sender.is_known => {
                sender.until = cx.now + SENDER_MAX;
                let hosts = sender.hosts.clone();
                if !groups.copies.take_all(cx.now, self.copies, hosts.len() as u64) {
                    cx.counters.group_copies_limited += hosts.len() as u64;
                    return Err(Drop::Broadcast);
                }
                return Ok(Some(hosts));
            }
            Some(_) => {}
            None if is_full => {
                cx.counters.senders_refused += 1;
                return Err(Drop::Broadcast);
            }
            None => {
                let until = cx.now + cx.settings.arp_wait;
                let sender = Sender { hosts: Vec::new(), is_known: false, until };
                groups.senders.insert(pair, sender);
                ask_for_list(cx, port, pair, true);
            }
        }
        Ok(None)
    }

    /// Requests the lists of all senders, because the controller may have none of them.
    pub(super) fn ask_for_lists(&self, cx: &mut Cx) {
        for (&port, groups) in &self.ports {
            for &pair in groups.senders.keys() {
                ask_for_list(cx, port, pair, true);
            }
        }
    }

    /// Handles a part of a list; returns whether it is used. A part that does not follow the
    /// previous one is not of the newest list.
    pub(super) fn list(
        &mut self,
        cx: &mut Cx,
        (port, pair): (PortNo, Pair),
        (first, more): (u16, bool),
        hosts: Vec<MacAddr>,
    ) -> bool {
        let until = cx.now + SENDER_MAX;
        let groups = self.ports.get_mut(&port);
        let Some(sender) = groups.and_then(|groups| groups.senders.get_mut(&pair)) else {
            cx.counters.messages_ignored += 1;
            return false;
        };
        if first == 0 {
            sender.hosts.clear();
        } else if sender.is_known || sender.hosts.len() != usize::from(first) {
            cx.counters.messages_ignored += 1;
            return false;
        }
        sender.hosts.extend(hosts.into_iter().filter(|mac| mac.is_unicast()));
        sender.hosts.truncate(COPIES_MAX);
        let was_known = core::mem::replace(&mut sender.is_known, !more);
        if sender.is_known && !was_known {
            sender.until = until;
            let destination = membership::mac_of(pair.1);
            cx.out.push(Effect::Spread { ingress: port, key: cx.to(destination) });
        }
        true
    }

    /// Removes a host that no longer sends to a group, or whose list has not arrived. Its waiting
    /// frames are dropped.
    fn sender_gone(&mut self, cx: &mut Cx, port: PortNo, pair: Pair) {
        let groups = self.ports.get_mut(&port);
        let Some(sender) = groups.and_then(|groups| groups.senders.remove(&pair)) else { return };
        ask_for_list(cx, port, pair, false);
        if !sender.is_known {
            let destination = membership::mac_of(pair.1);
            cx.out.push(Effect::Abandon { ingress: port, key: cx.to(destination) });
        }
    }

    /// Removes a host that has left a port; all senders of the port if `is_last`.
    pub(super) fn host_gone(&mut self, cx: &mut Cx, port: PortNo, mac: MacAddr, is_last: bool) {
        let Some(groups) = self.ports.get(&port) else { return };
        let senders = groups.senders.keys().filter(|pair| pair.0 == mac);
        let senders: Vec<Pair> = senders.copied().collect();
        senders.into_iter().for_each(|pair| self.sender_gone(cx, port, pair));
        if is_last {
            self.ports.remove(&port);
        }
    }

    /// Removes the senders that are due at a port.
    pub(super) fn expire(&mut self, cx: &mut Cx, port: PortNo) {
        let Some(groups) = self.ports.get(&port) else { return };
        let senders = groups.senders.iter().filter(|(_, sender)| sender.until <= cx.now);
        let senders: Vec<Pair> = senders.map(|(&pair, _)| pair).collect();
        senders.into_iter().for_each(|pair| self.sender_gone(cx, port, pair));
    }

    /// Returns when the first sender of a port is due.
    pub(super) fn due(&self, port: PortNo) -> Option<Time> {
        self.ports.get(&port)?.senders.values().map(|sender| sender.until).min()
    }

    /// Returns the number of senders at a port.
    #[cfg(test)]
    pub(super) fn count_on(&self, port: PortNo) -> usize {
        self.ports.get(&port).map_or(0, |groups| groups.senders.len())
    }

    /// Returns the ports with state.
    #[cfg(test)]
    pub(super) fn ports(&self) -> impl Iterator<Item = PortNo> {
        self.ports.keys().copied()
    }
}

fn ask_for_list(cx: &mut Cx, port: PortNo, pair: Pair, wanted: bool) {
    let (mac, group) = pair;
    cx.report(Item::AskGroup { port, mac, group, wanted });
}
