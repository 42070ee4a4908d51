//! Programs whose tables are determined by the plan and the links in service.
//!
//! A design computes the entries of a switch for a network in which some links are down. When a
//! link fails or comes back, each program is notified ([`crate::link_state`]), recomputes its
//! design, and applies the differences in one transaction. If this is refused, the tables stay
//! unchanged, and the program retries every second. ARP is answered at the edge from the plan, so
//! nothing is flooded.

use crate::arp;
use crate::book::Book;
use crate::link_state::LinkStates;
use crate::live::{Down, Live};
use crate::site::{Neighbour, PlanHost, Site};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use axon_pipeline::{Change, ChangeError, Control, EntryName, Program, Received};
use axon_wire::{MacAddr, PortNo, Span, Time};

/// Retry interval after a refusal.
pub(crate) const RETRY: Span = Span::from_secs(1);

/// Design of a switch's tables.
pub trait Design: Send {
    /// Returns all entries for the switch at `site`, each once.
    fn entries(&self, site: &Site, live: Live<'_>) -> Vec<Change>;

    /// Returns the MAC address with which the switch answers an ARP request from one of its hosts
    /// for `target`. By default, this is the target's address.
    fn mac_of(&self, target: &PlanHost) -> MacAddr {
        target.mac
    }
}

/// Control program that applies a design.
pub struct Planned<D> {
    site: Site,
    design: D,
    book: Book,
    links: Option<LinkStates>,
    /// Reason why the last update was refused.
    refusal: Option<String>,
    /// Time of the next attempt after a refusal.
    retry_at: Option<Time>,
}

impl<D: Design> Planned<D> {
    /// Creates the program for the switch at `site`.
    pub(crate) fn new(site: Site, design: D) -> Planned<D> {
        let book = Book::default();
        Planned { site, design, book, links: None, refusal: None, retry_at: None }
    }

    fn update(&mut self, now: Time, control: &mut dyn Control) {
        let down = self.links.as_ref().map_or_else(Down::new, LinkStates::down);
        let entries = self.design.entries(&self.site, Live::new(&self.site.plan, &down));
        let made = self.book.sync(entries, control);
        self.made(now, made);
    }

    /// Records the result of an update.
    fn made(&mut self, now: Time, made: Result<(), ChangeError>) {
        let refused = made.err();
        self.retry_at = refused.as_ref().map(|_| now + RETRY);
        self.refusal = refused.map(|error| error.to_string());
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
        self.update(now, control);
    }

    fn link(&mut self, now: Time, port: PortNo, up: bool, control: &mut dyn Control) {
        if self.links.as_mut().is_some_and(|links| links.link(now, port, up, control)) {
            self.update(now, control);
        }
    }

    fn receive_packet(&mut self, now: Time, received: Received<'_>, control: &mut dyn Control) {
        if let Some(reply) = self.answer(received) {
            control.send_packet(received.ingress, &reply);
        } else if self.links.as_mut().is_some_and(|links| links.receive(now, received, control)) {
            self.update(now, control);
        }
    }

    fn removed(&mut self, now: Time, entries: &[EntryName], control: &mut dyn Control) {
        // A refused update is retried anyway.
        if let Err(error) = self.book.restore(entries, control) {
            self.made(now, Err(error));
        }
    }

    fn timeout(&mut self, now: Time, control: &mut dyn Control) {
        let has_changed = self.links.as_mut().is_some_and(|links| links.timeout(now, control));
        if has_changed || self.retry_at.is_some_and(|at| at <= now) {
            self.update(now, control);
        }
    }

    fn deadline(&self) -> Option<Time> {
        let hello = self.links.as_ref().map(LinkStates::deadline);
        hello.into_iter().chain(self.retry_at).min()
    }

    fn is_ready(&self) -> bool {
        self.links.is_some()
    }

    fn refusal(&self) -> Option<String> {
        self.refusal.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entries::Entries;
    use crate::net::Net;
    use crate::plans;
    use alloc::boxed::Box;
    use axon_pipeline::{Action, TableName, Target};
    use core::net::Ipv4Addr;

    /// Design that needs one IPv4 entry and fills the table while a port is dead.
    struct Greedy;

    impl Design for Greedy {
        fn entries(&self, site: &Site, live: Live<'_>) -> Vec<Change> {
            let is_whole = live.neighbours(site.node).count() == 2;
            let count = if is_whole { 1 } else { 8192 };
            let mut entries = Entries::new(site);
            for number in 0..count {
                let action = Some(Action::from(Target::Drop));
                entries.push(Change::Ipv4(Ipv4Addr::from_bits(number), action));
            }
            entries.into_changes()
        }
    }

    #[test]
    fn what_the_tables_refuse_is_tried_again_and_is_no_failure() {
        let mut net = Net::new(plans::ring(3), |site| Box::new(Planned::new(site, Greedy)));
        let refusal = |net: &Net| net.node(0).program().refusal();
        let other = |action| [Change::Ipv4(Ipv4Addr::BROADCAST, action)];
        net.commit(0, &other(Some(Action::from(Target::Drop))));
        let (_, port) = net.links().into_iter().find(|(node, _)| *node == 0).unwrap();
        net.link(0, port, false);
        assert!(refusal(&net).unwrap().contains("the table is full"));
        assert_eq!(net.node(0).program().failure(), None, "the program runs on");
        net.commit(0, &other(None));
        net.run(Span::from_millis(1100));
        assert_eq!(refusal(&net), None);
        assert_eq!(net.count(0, TableName::Ipv4), 8192);
    }
}
