//! The MACs of neighbours, by ARP (RFC 826), and whether they are there.
//!
//! In plain English: who answers for the agent's own address? The agent. Who has an address that it
//! needs? It asks, and again a second later, three times at most in a row. An answer holds for a
//! minute. Addresses that are watched are asked for every second, so that one that no longer
//! answers is known within some seconds.

use crate::agent::Outbox;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use axon_wire::host_frame::{self, Arp, ArpOperation, Kind, classify};
use axon_wire::{MacAddr, Span, Time};
use core::net::Ipv4Addr;

/// Between two requests for one address.
const RETRY: Span = Span::from_secs(1);
/// Requests in a row without an answer after which an address is held to be absent.
const TRIES_MAX: u32 = 3;
/// How long an answer holds where an address is not watched.
const AGEING: Span = Span::from_secs(60);
/// Announcements of the own address, a second apart, after which they come less often: a port of a
/// switch may take some seconds until it forwards.
const ANNOUNCEMENTS: u32 = 5;
/// Between two later ones: far less than a bridge keeps an address (300 s).
const ANNOUNCE: Span = Span::from_secs(30);
/// Addresses that are known or asked for, at most.
const ADDRESSES_MAX: usize = 4096;

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    mac: Option<MacAddr>,
    /// Requests without an answer.
    tries: u32,
    /// When to ask again, or to forget.
    next_at: Time,
    is_watched: bool,
}

/// What is known of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// It is at this MAC.
    At(MacAddr),
    /// It is being asked for.
    Asked,
    /// Nobody answers, or there is no room to ask.
    Absent,
}

/// What has become of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settled {
    /// It is at this MAC.
    At(Ipv4Addr, MacAddr),
    /// Nobody has answered.
    Absent(Ipv4Addr),
}

/// The neighbours of an agent.
#[derive(Debug)]
pub(super) struct Neighbours {
    mac: MacAddr,
    address: Ipv4Addr,
    entries: BTreeMap<Ipv4Addr, Entry>,
    /// When to announce the own address next (RFC 5227 section 2.3).
    announce_at: Time,
    announced: u32,
}

impl Neighbours {
    pub fn new(mac: MacAddr, address: Ipv4Addr) -> Neighbours {
        let announce_at = Time::ZERO;
        Neighbours { mac, address, entries: BTreeMap::new(), announce_at, announced: 0 }
    }

    /// Asks for an address every second from now on.
    pub fn watch(&mut self, address: Ipv4Addr) {
        self.entries.entry(address).or_default().is_watched = true;
    }

    /// The MAC of an address; asks for it if it is not known.
    pub fn resolve(&mut self, now: Time, address: Ipv4Addr) -> Known {
        if let Some(entry) = self.entries.get(&address) {
            return match entry.mac {
                Some(mac) => Known::At(mac),
                None if entry.tries < TRIES_MAX || !entry.is_watched => Known::Asked,
                None => Known::Absent,
            };
        }
        if self.entries.len() >= ADDRESSES_MAX {
            return Known::Absent;
        }
        self.entries.insert(address, Entry { next_at: now, ..Entry::default() });
        Known::Asked
    }

    /// Takes an ARP packet; an address that it settles.
    pub fn receive(&mut self, now: Time, arp: &Arp, out: &mut dyn Outbox) -> Option<Settled> {
        let Arp { operation, sender_mac, sender_ip, target_ip, .. } = *arp;
        if operation == ArpOperation::Request && target_ip == self.address {
            // An asker without an answer asks again.
            let _ = out.send(&host_frame::reply(self.mac, self.address, sender_mac, sender_ip));
        }
        let entry = self.entries.get_mut(&sender_ip).filter(|_| sender_mac.is_unicast())?;
        entry.mac = Some(sender_mac);
        entry.tries = 0;
        entry.next_at = now + if entry.is_watched { RETRY } else { AGEING };
        Some(Settled::At(sender_ip, sender_mac))
    }

    /// Asks what is due; the addresses for which nobody has answered.
    pub fn timeout(&mut self, now: Time, out: &mut dyn Outbox) -> Vec<Settled> {
        if self.announce_at <= now {
            let _ = out.send(&self.request(self.address));
            self.announced = self.announced.saturating_add(1);
            let interval = if self.announced < ANNOUNCEMENTS { RETRY } else { ANNOUNCE };
            self.announce_at = now + interval;
        }
        let mut settled = Vec::new();
        let (mac, address) = (self.mac, self.address);
        self.entries.retain(|&target, entry| {
            if entry.next_at > now {
                return true;
            }
            if entry.mac.is_some() && !entry.is_watched {
                return false;
            }
            if entry.tries == TRIES_MAX && !entry.is_watched {
                settled.push(Settled::Absent(target));
                return false;
            }
            if entry.tries == TRIES_MAX && entry.mac.take().is_some() {
                settled.push(Settled::Absent(target));
            }
            entry.tries = (entry.tries + 1).min(TRIES_MAX);
            entry.next_at = now + RETRY;
            let _ = out.send(&host_frame::request(mac, address, MacAddr::BROADCAST, target));
            true
        });
        settled
    }

    fn request(&self, target: Ipv4Addr) -> Vec<u8> {
        host_frame::request(self.mac, self.address, MacAddr::BROADCAST, target)
    }

    pub fn deadline(&self) -> Option<Time> {
        let entries = self.entries.values().map(|entry| entry.next_at);
        entries.chain([self.announce_at]).min()
    }
}

/// The ARP packet in a frame.
pub(super) fn arp(frame: &[u8]) -> Option<Arp> {
    match classify(frame) {
        Kind::Arp(arp) => Some(arp),
        _ => None,
    }
}
