//! Agent whose counters can be read while it runs, and whose clock continues across attachments.

use super::board::Board;
use crate::clock::Clock;
use axon_agents::{Agent, Counters, Event, Outbox};
use axon_wire::{Span, Time};

/// Agent that publishes its counters on request, between two events.
pub(super) struct Watched<'a> {
    agent: Box<dyn Agent + Send>,
    board: &'a Board,
    clock: Clock,
    /// Time between the agent's creation and this attachment, which is time zero for its runner.
    before: Span,
}

impl<'a> Watched<'a> {
    pub(super) fn new(agent: Box<dyn Agent + Send>, board: &'a Board) -> Watched<'a> {
        Watched { agent, board, clock: Clock::start(), before: Span::ZERO }
    }

    /// Begins an attachment.
    pub(super) fn begin(&mut self) {
        self.before = self.clock.now().since(Time::ZERO);
    }

    /// Returns the counters of the agent so far.
    pub(super) fn counted(&self) -> Counters {
        self.agent.counters()
    }
}

impl Agent for Watched<'_> {
    fn handle(&mut self, now: Time, event: Event<'_>, out: &mut dyn Outbox) {
        if self.board.is_asked() {
            self.board.show(self.agent.counters());
        }
        self.agent.handle(now + self.before, event, out);
    }

    fn deadline(&self) -> Option<Time> {
        if self.board.is_asked() {
            return Some(Time::ZERO);
        }
        // A deadline that has already passed when an attachment begins is due at once.
        self.agent.deadline().map(|due| due - self.before)
    }

    fn counters(&self) -> Counters {
        self.counted()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_agents::MemoryOutbox;

    struct Clocked(Time);

    impl Agent for Clocked {
        fn handle(&mut self, now: Time, _: Event<'_>, _: &mut dyn Outbox) {
            assert!(now >= self.0, "time goes back");
            self.0 = now;
        }

        fn deadline(&self) -> Option<Time> {
            Some(self.0 + Span::from_secs(1))
        }

        fn counters(&self) -> Counters {
            [("us", self.0.as_micros())].into()
        }
    }

    #[test]
    fn the_time_of_an_agent_goes_on_in_its_next_attachment() {
        let board = Board::new("a1", "forwarder");
        let mut watched = Watched::new(Box::new(Clocked(Time::ZERO)), &board);
        watched.handle(Time::from_nanos(10_000), Event::Timeout, &mut MemoryOutbox::default());
        assert_eq!(watched.deadline(), Some(Time::from_nanos(1_000_010_000)));
        // The next attachment begins two seconds after the agent was created.
        watched.before = Span::from_secs(2);
        assert_eq!(watched.deadline(), Some(Time::ZERO), "overdue");
        watched.handle(Time::from_nanos(5_000), Event::Timeout, &mut MemoryOutbox::default());
        assert_eq!(watched.deadline(), Some(Time::from_nanos(1_000_005_000)));
        assert_eq!(watched.counted()["us"], 2_000_005);
    }

    #[test]
    fn counters_are_shown_when_they_are_asked_for() {
        let board = Board::new("a1", "forwarder");
        board.attached();
        let asked = std::thread::scope(|scope| {
            let asker = scope.spawn(|| board.ask());
            let mut watched = Watched::new(Box::new(Clocked(Time::ZERO)), &board);
            while watched.deadline() != Some(Time::ZERO) {
                std::thread::yield_now();
            }
            watched.handle(Time::from_nanos(7_000), Event::Timeout, &mut MemoryOutbox::default());
            asker.join().unwrap()
        });
        assert_eq!((asked.attached, asked.attachments, asked.counters["us"]), (true, 1, 0));
        board.detached([("us", 9)].into());
        let asked = board.ask();
        assert_eq!((asked.attached, asked.counters["us"]), (false, 9), "nobody has to answer");
    }
}
