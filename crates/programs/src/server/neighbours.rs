//! Liveness of a server's neighbours (paper 004 §5.1, neighbour discovery).
//!
//! Each server announces itself on its ports once per period, with the list of servers that it
//! receives there. A neighbour is up while its messages arrive and list this server, so a
//! unidirectional link is not used. After three periods without a message, it is lost.

use super::hello::Hello;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use axon_wire::{MacAddr, PortNo, Span, Time};

/// Interval between announcements to neighbours.
const PERIOD: Span = Span::from_millis(100);
/// Time without a message after which a neighbour is lost, 3.5 periods.
const DEAD_AFTER: Span = Span::from_millis(350);

/// State change of a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The neighbour is up at this address.
    Up(MacAddr),
    /// The neighbour is down.
    Down,
    /// The neighbour is new and should get a message soon.
    New,
}

/// Neighbours of a server, by port and number.
#[derive(Clone, Debug)]
pub(crate) struct Neighbours {
    own: u32,
    seen: BTreeMap<(PortNo, u32), Seen>,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    last: Time,
    mac: MacAddr,
    /// True if the neighbour's last message listed this server.
    both_ways: bool,
}

impl Neighbours {
    /// Interval between announcements to neighbours.
    pub(crate) const PERIOD: Span = PERIOD;

    /// Creates an empty set of neighbours for the server `own`.
    pub(crate) fn new(own: u32) -> Neighbours {
        Neighbours { own, seen: BTreeMap::new() }
    }

    /// Processes a neighbour's message.
    pub(crate) fn receive(
        &mut self,
        now: Time,
        port: PortNo,
        mac: MacAddr,
        hello: &Hello,
    ) -> Option<Event> {
        let both_ways = hello.received.contains(&self.own);
        let before = self.seen.insert((port, hello.server), Seen { last: now, mac, both_ways });
        let was = before.filter(|before| before.both_ways).map(|before| before.mac);
        match (was, both_ways) {
            (Some(before), true) if before == mac => None,
            (_, true) => Some(Event::Up(mac)),
            (Some(_), false) => Some(Event::Down),
            (None, false) => before.is_none().then_some(Event::New),
        }
    }

    /// Removes neighbours that have been silent for too long. Returns those that were up.
    pub(crate) fn expire(&mut self, now: Time) -> Vec<(PortNo, u32)> {
        self.forget(|_, seen| now.since(seen.last) > DEAD_AFTER)
    }

    /// Removes the neighbours on a port without carrier. Returns those that were up.
    pub(crate) fn clear(&mut self, port: PortNo) -> Vec<(PortNo, u32)> {
        self.forget(|at, _| at == port)
    }

    fn forget(&mut self, is_gone: impl Fn(PortNo, &Seen) -> bool) -> Vec<(PortNo, u32)> {
        let gone = self.seen.extract_if(.., |&(port, _), seen| is_gone(port, seen));
        gone.filter(|(_, seen)| seen.both_ways).map(|(place, _)| place).collect()
    }

    /// Returns the address of a neighbour that is up.
    pub(crate) fn mac(&self, port: PortNo, server: u32) -> Option<MacAddr> {
        self.seen.get(&(port, server)).filter(|seen| seen.both_ways).map(|seen| seen.mac)
    }

    /// Returns the announcement to send on a port.
    pub(crate) fn hello(&self, port: PortNo) -> Hello {
        let here = self.seen.range((port, 0)..=(port, u32::MAX));
        Hello { server: self.own, received: here.map(|(&(_, server), _)| server).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PORT: PortNo = PortNo(1);
    const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 9]);

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn hello(received: &[u32]) -> Hello {
        Hello { server: 9, received: received.to_vec() }
    }

    #[test]
    fn a_neighbour_is_in_use_while_each_receives_from_the_other() {
        let mut neighbours = Neighbours::new(4);
        let mut receive =
            |millis, received: &[u32]| neighbours.receive(at(millis), PORT, MAC, &hello(received));
        assert_eq!(receive(0, &[]), Some(Event::New));
        assert_eq!(receive(10, &[3]), None, "it does not receive from here yet");
        assert_eq!(receive(20, &[3, 4]), Some(Event::Up(MAC)));
        assert_eq!(receive(30, &[4]), None);
        assert_eq!(receive(40, &[3]), Some(Event::Down), "it has lost this server");
        assert_eq!(receive(50, &[4]), Some(Event::Up(MAC)));
        assert_eq!(neighbours.mac(PORT, 9), Some(MAC));
        assert_eq!(neighbours.mac(PortNo(2), 9), None, "it is known at one port only");
        assert_eq!(neighbours.hello(PORT), Hello { server: 4, received: alloc::vec![9] });
        let moved = MacAddr([2, 0, 0, 0, 0, 8]);
        let event = neighbours.receive(at(60), PORT, moved, &hello(&[4]));
        assert_eq!(event, Some(Event::Up(moved)), "it has another address");
    }

    #[test]
    fn a_neighbour_is_lost_after_three_periods_and_with_the_carrier() {
        let mut neighbours = Neighbours::new(4);
        neighbours.receive(at(0), PORT, MAC, &hello(&[4]));
        assert_eq!(neighbours.expire(at(350)), []);
        assert_eq!(neighbours.expire(at(351)), [(PORT, 9)]);
        assert_eq!(neighbours.mac(PORT, 9), None);
        neighbours.receive(at(400), PORT, MAC, &hello(&[4]));
        assert_eq!(neighbours.clear(PortNo(2)), []);
        assert_eq!(neighbours.clear(PORT), [(PORT, 9)]);
        neighbours.receive(at(500), PORT, MAC, &hello(&[]));
        assert_eq!(neighbours.clear(PORT), [], "it was not in use");
    }
}
