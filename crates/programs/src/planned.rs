//! Programs whose tables follow from the plan and from the links that are in service.
//!
//! In plain English: a design says which entries a switch has for a network of which some links
//! are down. When a link fails or comes back, each program gets to know ([`crate::link_state`]),
//! asks its design again, and makes what differs in one transaction. ARP is answered at the edge
//! from the plan; no host is flooded.

use crate::arp;
use crate::book::Book;
use crate::link_state::LinkStates;
use crate::live::{Down, Live};
use crate::site::{Neighbour, PlanHost, Site};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use axon_pipeline::{Change, Control, Program, Received};
use axon_wire::{MacAddr, PortNo, Time};

/// What the tables of a switch are to be.
pub trait Design: Send {
    /// All entries of the switch at `site`, each once.
    fn entries(&self, site: &Site, live: Live<'_>) -> Vec<Change>;

    /// The address that the switch gives to a host of its own that asks for `target`: that of the
    /// target by default.
    fn mac_of(&self, target: &PlanHost) -> MacAddr {
        target.mac
    }
}

/// A control program that carries a design out.
pub struct Planned<D> {
    site: Site,
    design: D,
    book: Book,
    links: Option<LinkStates>,
    failure: Option<String>,
}

impl<D: Design> Planned<D> {
    /// The program of the switch at `site`.
    pub fn new(site: Site, design: D) -> Planned<D> {
        Planned { site, design, book: Book::default(), links: None, failure: None }
    }

    fn update(&mut self, control: &mut dyn Control) {
        let down = self.links.as_ref().map_or_else(Down::new, LinkStates::down);
        let entries = self.design.entries(&self.site, Live::new(&self.site.plan, &down));
        if let Err(error) = self.book.sync(entries, control) {
            self.failure = Some(format!("the tables refuse its entries: {error}"));
        }
    }

    fn answer(&self, received: Received<'_>) -> Option<Vec<u8>> {
        let neighbour = self.site.own().ports.get(received.ingress.index())?.neighbour;
        let Neighbour::Host(_) = neighbour else { return None };
        let mac_of = |ip| self.site.plan.host_of(ip).map(|host| self.design.mac_of(host));
        arp::answer(received.frame, mac_of)
    }
}

impl<D: Design> Program for Planned<D> {
    fn start(&mut self, now: Time, control: &mut dyn Control) {
        self.links = Some(LinkStates::new(&self.site, now));
        self.update(control);
    }

    fn link(&mut self, now: Time, port: PortNo, up: bool, control: &mut dyn Control) {
        if self.links.as_mut().is_some_and(|links| links.link(now, port, up, control)) {
            self.update(control);
        }
    }

    fn receive_packet(&mut self, now: Time, received: Received<'_>, control: &mut dyn Control) {
        if let Some(reply) = self.answer(received) {
            control.send_packet(received.ingress, &reply);
        } else if self.links.as_mut().is_some_and(|links| links.receive(now, received, control)) {
            self.update(control);
        }
    }

    fn timeout(&mut self, now: Time, control: &mut dyn Control) {
        if self.links.as_mut().is_some_and(|links| links.timeout(now, control)) {
            self.update(control);
        }
    }

    fn deadline(&self) -> Option<Time> {
        self.links.as_ref().map(LinkStates::deadline)
    }

    fn is_ready(&self) -> bool {
        self.links.is_some()
    }

    fn failure(&self) -> Option<String> {
        self.failure.clone()
    }
}
