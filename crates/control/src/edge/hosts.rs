//! The hosts on this switch: learning, probing, leaving, and telling the controller.

use super::{Cx, Edge, Timer, packet};
use crate::effect::Effect;
use alloc::collections::{BTreeMap, BTreeSet};
use axon_plane::Note;
use axon_wire::message::Item;
use axon_wire::{MacAddr, PortNo, Span, Time};
use core::net::{IpAddr, Ipv4Addr};

/// A host that moved or changed its address is believed to have done so again only after
/// this: two stations that fight for one address cannot keep the controller busy.
const CHANGE_HOLD: Span = Span::from_millis(200);

/// A host on a port of this switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// Where it is.
    pub port: PortNo,
    /// Its address, once it has told one.
    pub ip: Option<Ipv4Addr>,
    /// When it was last heard by the control plane; the data plane's traffic is not seen here.
    pub heard: Time,
    /// Probes in a row that it has left unanswered.
    pub unanswered: u32,
    changed: Time,
}

/// The host table, and what of it the controller knows.
#[derive(Debug)]
pub(super) struct Hosts {
    per_port_max: usize,
    by_mac: BTreeMap<MacAddr, Host>,
    by_port: BTreeMap<PortNo, BTreeSet<MacAddr>>,
    told: BTreeMap<MacAddr, (PortNo, Option<Ipv4Addr>)>,
}

impl Hosts {
    pub(super) fn new(per_port_max: usize) -> Hosts {
        Hosts {
            per_port_max,
            by_mac: BTreeMap::new(),
            by_port: BTreeMap::new(),
            told: BTreeMap::new(),
        }
    }

    pub(super) fn get(&self, mac: MacAddr) -> Option<&Host> {
        self.by_mac.get(&mac)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (MacAddr, &Host)> {
        self.by_mac.iter().map(|(&mac, host)| (mac, host))
    }

    /// Whether this host is on this port.
    pub(super) fn is_on(&self, mac: MacAddr, port: PortNo) -> bool {
        self.by_mac.get(&mac).is_some_and(|host| host.port == port)
    }

    /// The hosts of one port, in the order of their MACs.
    pub(super) fn on_port(&self, port: PortNo) -> impl Iterator<Item = MacAddr> {
        self.by_port.get(&port).into_iter().flatten().copied()
    }

    pub(super) fn count_on(&self, port: PortNo) -> usize {
        self.by_port.get(&port).map_or(0, BTreeSet::len)
    }

    fn insert(&mut self, mac: MacAddr, host: Host) {
        self.by_port.entry(host.port).or_default().insert(mac);
        self.by_mac.insert(mac, host);
    }

    fn remove(&mut self, mac: MacAddr) -> Option<Host> {
        let host = self.by_mac.remove(&mac)?;
        if let Some(macs) = self.by_port.get_mut(&host.port) {
            macs.remove(&mac);
            if macs.is_empty() {
                self.by_port.remove(&host.port);
            }
        }
        Some(host)
    }

    /// The host without address on `port` that has been silent longest, if that is since
    /// before `since`.
    fn longest_silent(&self, port: PortNo, since: Time) -> Option<MacAddr> {
        self.on_port(port)
            .filter_map(|mac| self.by_mac.get(&mac).map(|host| (host, mac)))
            .filter(|(host, _)| host.ip.is_none() && host.heard < since)
            .min_by_key(|&(host, mac)| (host.heard, mac))
            .map(|(_, mac)| mac)
    }
}

impl Edge {
    /// Learns the sender of a frame, or hears of it again; `false` if it is not to be served.
    ///
    /// A known host on its port is refreshed. On another port it has moved: it leaves the old
    /// one with its flows and is new on the other. A new host is taken while its port has room;
    /// a full port makes room by forgetting a host without address that was silent for as long
    /// as a host with one would need to be declared dead. Hosts without address are not
    /// forgotten otherwise: there is no question that they would have to answer.
    pub(super) fn learn(&mut self, cx: &mut Cx, port: PortNo, mac: MacAddr) -> bool {
        if let Some(host) = self.hosts.by_mac.get_mut(&mac) {
            if host.port == port {
                host.heard = cx.now;
                host.unanswered = 0;
                return true;
            }
            if cx.now.since(host.changed) < CHANGE_HOLD {
                self.counters.hosts_refused += 1;
                return false;
            }
        }
        if !self.make_room(cx, port) {
            self.counters.hosts_refused += 1;
            return false;
        }
        let moved = self.forget_host(cx, mac);
        let host = Host {
            port,
            ip: None,
            heard: cx.now,
            unanswered: 0,
            changed: cx.now,
        };
        self.hosts.insert(mac, host);
        self.counters.hosts_moved += u64::from(moved);
        cx.out.push(Effect::Note(Note::HostUp { port, mac }));
        self.tell(cx.out, mac);
        true
    }

    fn make_room(&mut self, cx: &mut Cx, port: PortNo) -> bool {
        if self.hosts.count_on(port) < self.hosts.per_port_max {
            return true;
        }
        let silence = self.host_probe * u64::from(self.host_probes_max).saturating_add(1);
        let silence = silence.ticks();
        let since = Time::from_ticks(cx.now.ticks().saturating_sub(silence));
        let Some(mac) = self.hosts.longest_silent(port, since) else {
            return false;
        };
        self.forget_host(cx, mac)
    }

    /// Learns the address of a known host; it is probed from now on.
    pub(super) fn learn_ip(
        &mut self,
        now: Time,
        mac: MacAddr,
        ip: Ipv4Addr,
        out: &mut alloc::vec::Vec<Effect>,
    ) {
        if !packet::is_host_ip(ip) || ip == self.server.ip {
            return;
        }
        let Some(host) = self.hosts.by_mac.get_mut(&mac) else {
            return;
        };
        match host.ip {
            Some(known) if known == ip || now.since(host.changed) < CHANGE_HOLD => return,
            Some(_) => host.changed = now,
            None => {
                // Spread by address, so that hosts learned together are not probed together.
                let half = (self.host_probe.ticks() / 2).max(1);
                let offset = Span::from_ticks(half + spread(mac) % half);
                self.agenda.set(Timer::Host(mac), now + offset);
            }
        }
        host.ip = Some(ip);
        self.tell(out, mac);
    }

    /// A host has left, does not answer any more, or gives way: its flows go with it.
    ///
    /// Routes belong to a port, so those of a port are destroyed when its last host goes.
    /// Others on that port may use them; the controller removes those that nobody needs.
    /// Says whether there was such a host.
    pub(super) fn forget_host(&mut self, cx: &mut Cx, mac: MacAddr) -> bool {
        let Some(Host { port, .. }) = self.hosts.remove(mac) else {
            return false;
        };
        self.agenda.cancel(Timer::Host(mac));
        self.stop_asking_host(cx, port, mac);
        self.stop_setups_of(cx, port, mac);
        if self.hosts.count_on(port) == 0 {
            self.flows.clear_port(cx, port);
        } else {
            self.flows.promote(cx, port);
        }
        cx.out.push(Effect::Note(Note::HostDown { port, mac }));
        self.tell(cx.out, mac);
        true
    }

    /// The time to probe a host has come (the paper's periodic gratuitous ARP).
    ///
    /// A unicast ARP request from the server's identity, whose MAC never has a route, so the
    /// answer comes here. One unanswered probe more than a host may leave, and it is gone.
    pub(super) fn probe_host(&mut self, cx: &mut Cx, mac: MacAddr) {
        let Some(host) = self.hosts.by_mac.get_mut(&mac) else {
            return;
        };
        let Some(ip) = host.ip else { return };
        if host.unanswered >= self.host_probes_max {
            self.counters.hosts_lost += 1;
            self.forget_host(cx, mac);
            return;
        }
        host.unanswered += 1;
        let frame = packet::request(self.server.mac, self.server.ip, mac, ip);
        cx.out.push(Effect::Host {
            port: host.port,
            frame,
        });
        self.agenda.set(Timer::Host(mac), cx.now + self.host_probe);
    }

    /// Reports what of a host has changed since the controller was last told; nothing while
    /// there is no controller: [`Edge::tell_all`] makes up for it.
    fn tell(&mut self, out: &mut alloc::vec::Vec<Effect>, mac: MacAddr) {
        if !self.reachable {
            return;
        }
        let told = self.hosts.told.get(&mac).copied();
        let known = self.hosts.by_mac.get(&mac).map(|host| (host.port, host.ip));
        if told == known {
            return;
        }
        if let Some((port, _)) = told
            && known.is_none_or(|(now_on, _)| now_on != port)
        {
            self.hosts.told.remove(&mac);
            out.push(Effect::Report(Item::HostGone { port, mac }));
        }
        if let Some((port, ip)) = known {
            self.hosts.told.insert(mac, (port, ip));
            let ip = ip.map(IpAddr::V4);
            out.push(Effect::Report(Item::HostSeen { port, mac, ip }));
        }
    }

    /// Reports everything that the controller does not know; all of it to a new life.
    pub(super) fn tell_all(&mut self, out: &mut alloc::vec::Vec<Effect>, new_life: bool) {
        if new_life {
            self.hosts.told.clear();
        }
        let macs: BTreeSet<_> = self
            .hosts
            .told
            .keys()
            .chain(self.hosts.by_mac.keys())
            .copied()
            .collect();
        for mac in macs {
            self.tell(out, mac);
        }
    }
}

/// A number that differs between hosts and is the same in every run.
fn spread(mac: MacAddr) -> u64 {
    let mut word = [0; 8];
    word[..6].copy_from_slice(&mac.0);
    u64::from_le_bytes(word).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16
}
