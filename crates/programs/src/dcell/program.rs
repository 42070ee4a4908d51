//! The control program of a server.

use super::cells::Cells;
use super::entries::{self, HOST_INTERFACES, Recipient, TARGETS_MAX};
use super::header;
use super::local::Local;
use super::routes::{Route, routes};
use crate::book::Book;
use crate::planned::RETRY;
use crate::server::{Hello, HostPorts, Neighbours, ipv4_packet};
use crate::site::Site;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use axon_pipeline::{ChangeError, Control, EntryName, Program, Received, Register};
use axon_wire::{MacAddr, PortNo, Span, Time};
use core::net::Ipv4Addr;

/// Idle time after which a recipient is removed.
const IDLE_MAX: Span = Span::from_secs(30);
/// Interval at which the recipient counters are polled.
const COUNT_EVERY: Span = Span::from_secs(1);

/// Number of periods after which every live neighbour has announced itself.
const READY_AFTER: u64 = 3;

/// Control program of a DCell server.
pub(crate) struct Dcell {
    local: Local,
    hosts: HostPorts,
    routes: Vec<Route>,
    /// Record of the installed entries.
    book: Book,
    /// Hosts to which this server's hosts send.
    recipients: BTreeMap<Ipv4Addr, Used>,
    counted_at: Time,
    /// Time of the next tick; `None` before the start.
    tick_at: Option<Time>,
    /// Number of ticks since the start.
    ticks: u64,
    /// Reason why the last update was refused.
    refusal: Option<String>,
    /// Time of the next attempt after a refusal.
    retry_at: Option<Time>,
}

/// Recipient, and the time at which its entry last counted a packet.
#[derive(Clone, Copy, Debug)]
struct Used {
    recipient: Recipient,
    frames: u64,
    at: Time,
}

impl Dcell {
    pub(crate) fn new(site: &Site, cells: Cells) -> Dcell {
        Dcell {
            routes: routes(&cells, site.node),
            local: Local::new(site, cells),
            hosts: HostPorts::new(site, HOST_INTERFACES),
            book: Book::default(),
            recipients: BTreeMap::new(),
            counted_at: Time::ZERO,
            tick_at: None,
            ticks: 0,
            refusal: None,
            retry_at: None,
        }
    }

    /// Updates the tables to match the current neighbours and recipients in one transaction, and
    /// retries after a refusal. Hellos continue regardless.
    fn update(&mut self, now: Time, control: &mut dyn Control) {
        let recipients: Vec<Recipient> =
            self.recipients.values().map(|used| used.recipient).collect();
        let wanted = entries::entries(&self.local, &self.routes, &self.hosts, &recipients);
        let made = self.book.sync(wanted.into_values().collect(), control);
        self.made(now, made);
    }

    /// Records the result of an update.
    fn made(&mut self, now: Time, made: Result<(), ChangeError>) {
        let refused = made.err();
        self.retry_at = refused.as_ref().map(|_| now + RETRY);
        self.refusal = refused.map(|error| error.to_string());
    }

    /// Processes a host's packet to a recipient that has no entry.
    fn offer(&mut self, now: Time, port: PortNo, frame: &[u8], control: &mut dyn Control) {
        let header = ipv4_packet(frame).and_then(|packet| packet.first_chunk::<20>());
        let Some(&[.., a, b, c, d]) = header else { return };
        let ip = Ipv4Addr::new(a, b, c, d);
        if !self.recipients.contains_key(&ip) {
            let Some(place) = self.hosts.place_of(ip) else { return };
            let Some(tunnel) = self.free_tunnel() else { return };
            let recipient = Recipient { ip, place, tunnel };
            self.recipients.insert(ip, Used { recipient, frames: 0, at: now });
            self.update(now, control);
            if self.refusal.is_some() {
                // The tables are full until other recipients become idle.
                self.recipients.remove(&ip);
                return self.update(now, control);
            }
        }
        control.inject_packet(Some(port), frame);
    }

    fn free_tunnel(&self) -> Option<u16> {
        let used = self.recipients.values().map(|used| used.recipient.tunnel);
        let used: BTreeSet<u16> = used.collect();
        (0..TARGETS_MAX as u16).find(|number| !used.contains(number))
    }

    /// Removes recipients that have been idle for too long.
    fn age(&mut self, now: Time, control: &mut dyn Control) {
        for (&ip, used) in &mut self.recipients {
            let register = Register::EntryFrames(EntryName::Ipv4(ip));
            let frames = control.read_register(register).unwrap_or(0);
            if frames != used.frames {
                (used.frames, used.at) = (frames, now);
            }
        }
        let before = self.recipients.len();
        self.recipients.retain(|_, used| now.since(used.at) < IDLE_MAX);
        if self.recipients.len() < before {
            self.update(now, control);
        }
    }
}

impl Program for Dcell {
    fn start(&mut self, now: Time, control: &mut dyn Control) {
        self.tick_at = Some(now);
        self.update(now, control);
    }

    fn link(&mut self, now: Time, port: PortNo, up: bool, control: &mut dyn Control) {
        if up {
            self.local.announce_at(port, control);
        } else if self.local.port_down(port) {
            self.update(now, control);
        }
    }

    fn receive_packet(&mut self, now: Time, received: Received<'_>, control: &mut dyn Control) {
        let Received { ingress, frame } = received;
        if self.hosts.has(ingress) {
            self.hosts.answer_arp(ingress, frame, control);
            return self.offer(now, ingress, frame, control);
        }
        let hello = header::parse_hello(frame).and_then(Hello::parse);
        if let (Some(hello), Some(from)) = (hello, MacAddr::source_of(frame))
            && self.local.discover(now, ingress, from, &hello, control)
        {
            self.update(now, control);
        }
    }

    fn removed(&mut self, now: Time, entries: &[EntryName], control: &mut dyn Control) {
        if let Err(error) = self.book.restore(entries, control) {
            self.made(now, Err(error));
        }
    }

    fn timeout(&mut self, now: Time, control: &mut dyn Control) {
        if self.tick_at.is_none_or(|at| now < at) {
            return;
        }
        self.tick_at = Some(now + Neighbours::PERIOD);
        self.ticks += 1;
        self.local.announce(control);
        if self.local.expire(now) || self.retry_at.is_some_and(|at| at <= now) {
            self.update(now, control);
        }
        if now.since(self.counted_at) >= COUNT_EVERY {
            self.counted_at = now;
            self.age(now, control);
        }
    }

    fn deadline(&self) -> Option<Time> {
        self.tick_at
    }

    fn is_ready(&self) -> bool {
        self.ticks > READY_AFTER && self.refusal.is_none()
    }

    fn refusal(&self) -> Option<String> {
        self.refusal.clone()
    }
}
