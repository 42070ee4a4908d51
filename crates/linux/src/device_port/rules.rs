//! Changes of the rules that map frames to the queues of a host's interface.

use crate::agent::HostQueues;
use crate::port::Port;
use axon_switch::agent::Rules;
use axon_wire::{Span, Time};

/// Minimum time between changes to the rules for a host's queues.
const RULES_PAUSE: Span = Span::from_secs(1);

/// Changes of the rules of one interface.
#[derive(Default)]
pub(super) struct RuleChanges {
    /// Time at which to set rules that changed too soon after the previous ones.
    due: Option<Time>,
    /// Time from which the rules may change again.
    settled_at: Time,
    /// True if the last change failed, so that the active rules are unknown.
    unknown: bool,
}

impl RuleChanges {
    /// Returns the time at which to set rules again, if there are any to set.
    pub(super) const fn due(&self) -> Option<Time> {
        self.due
    }

    /// Sets `rules` in `queues`, and at the port if it is open, if they have changed. This happens
    /// at most once per second, because it runs external programs, and a neighbour may advertise
    /// other rules with every LLDPDU. Rules that come sooner, or that could not be set, become
    /// [due](RuleChanges::due). Of these, only the last ones are set.
    pub(super) fn set(
        &mut self,
        now: Time,
        rules: &Rules,
        (device, queues): (&str, &mut HostQueues),
        port: Option<&mut Box<dyn Port>>,
    ) {
        self.due = None;
        if !self.unknown && queues.rules == *rules {
            return;
        }
        if now < self.settled_at {
            self.due = Some(self.settled_at);
            return;
        }
        self.settled_at = now + RULES_PAUSE;
        let set = port.map_or(Ok(()), |port| port.set_rules(rules));
        self.unknown = set.is_err();
        match set {
            Ok(()) => queues.rules = rules.clone(),
            Err(error) => {
                self.due = Some(self.settled_at);
                tracing::warn!(port = device, "not all rules are in force yet: {error:#}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::{Pool, PortCounters};
    use axon_switch::agent::rules::parse;
    use axon_wire::{FrameBuf, Rate};
    use std::io;

    fn queues() -> HostQueues {
        HostQueues { rate: Rate::mbps(100), rules: Rules::new(&[]), mtu: 1500 }
    }

    #[test]
    fn rules_change_once_a_second_and_the_last_ones_win() {
        let rules = [1, 2, 3]
            .map(|priority| Rules::new(&[parse(&format!("udp:4791={priority}")).unwrap()]));
        let (mut changes, mut queues) = (RuleChanges::default(), queues());
        let mut set = |millis, rules: &Rules| {
            let now = Time::ZERO + Span::from_millis(millis);
            changes.set(now, rules, ("h1-p0", &mut queues), None);
            (queues.rules.clone(), changes.due())
        };
        let due = Some(Time::ZERO + Span::from_millis(1_000));
        assert_eq!(set(0, &rules[0]), (rules[0].clone(), None));
        assert_eq!(set(1, &rules[1]), (rules[0].clone(), due));
        assert_eq!(set(2, &rules[0]), (rules[0].clone(), None), "as it is");
        assert_eq!(set(999, &rules[2]), (rules[0].clone(), due));
        assert_eq!(set(1_000, &rules[2]), (rules[2].clone(), None));
        assert_eq!(set(1_001, &rules[1]).0, rules[2]);
    }

    /// Interface that refuses rules the first time.
    struct RefusesOnce {
        tries: usize,
    }

    impl Port for RefusesOnce {
        fn fd(&self) -> std::os::fd::BorrowedFd<'_> {
            unreachable!("nobody waits for it")
        }
        fn receive(&mut self, _: &mut Pool, _: &mut Vec<FrameBuf>) -> io::Result<bool> {
            Ok(false)
        }
        fn transmit(&mut self, _: &mut Vec<FrameBuf>) -> io::Result<()> {
            Ok(())
        }
        fn set_rules(&mut self, _: &Rules) -> anyhow::Result<()> {
            self.tries += 1;
            anyhow::ensure!(self.tries > 1, "no memory");
            Ok(())
        }
        fn counters(&mut self) -> PortCounters {
            PortCounters::default()
        }
    }

    #[test]
    fn rules_that_an_interface_refused_or_those_before_are_set_again_a_second_later() {
        let (none, rules) = (Rules::new(&[]), Rules::new(&[parse("udp:4791=3").unwrap()]));
        for wanted_then in [&rules, &none] {
            let (mut changes, mut queues) = (RuleChanges::default(), queues());
            let mut port: Box<dyn Port> = Box::new(RefusesOnce { tries: 0 });
            let mut set = |now, rules: &Rules| {
                changes.set(now, rules, ("h1-p0", &mut queues), Some(&mut port));
                (queues.rules.clone(), changes.due(), changes.unknown)
            };
            let due = Time::ZERO + RULES_PAUSE;
            assert_eq!(set(Time::ZERO, &rules), (none.clone(), Some(due), true));
            assert_eq!(set(Time::ZERO, wanted_then).1, Some(due));
            assert_eq!(set(due, wanted_then), (wanted_then.clone(), None, false));
        }
    }
}
