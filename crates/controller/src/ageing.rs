//! Ageing of switches: the hosts of a dead switch are removed.
//!
//! An unreachable switch keeps the routes of its hosts and may come back soon. So its hosts stay in
//! the table until it has been silent for [`silence_max`](axon_link::config::Timers::silence_max).
//! While the controller receives nothing from any switch, the controller itself is cut off, so that
//! time does not count.

use super::topology::SwitchIndex;
use alloc::vec::Vec;
use axon_wire::{Span, Time};

/// Time of the last message from each switch.
#[derive(Clone, Debug)]
pub(super) struct Ageing {
    silence_max: Span,
    /// Times by switch index. An entry is `None` once the hosts of that switch have been removed.
    heard: Vec<Option<Time>>,
    /// Time of the last message from any switch.
    any: Time,
    /// Times of the next check and of the previous one. `None` while no switch is received.
    look: Option<(Time, Time)>,
}

impl Ageing {
    /// Creates the state without switches.
    pub(super) fn new(silence_max: Span) -> Ageing {
        Ageing { silence_max, heard: Vec::new(), any: Time::ZERO, look: None }
    }

    /// Returns the check interval. It is also the longest time without any message that counts as
    /// silence of the switches.
    fn pause(&self) -> Span {
        Span::from_ticks((self.silence_max.ticks() / 4).max(1))
    }

    /// Records a message from a switch.
    pub(super) fn heard(&mut self, now: Time, switch: SwitchIndex) {
        if now.since(self.any) > self.pause() {
            self.heard.iter_mut().flatten().for_each(|heard| *heard = now);
        }
        self.any = now;
        if self.heard.len() <= switch.index() {
            self.heard.resize(switch.index() + 1, None);
        }
        self.heard[switch.index()] = Some(now);
        if self.look.is_none() {
            self.look = Some((now + self.pause(), now));
        }
    }

    /// Returns the switches that have been silent for too long, each once.
    pub(super) fn silent(&mut self, now: Time) -> Vec<SwitchIndex> {
        let Some((_, since)) = self.look.filter(|(at, _)| *at <= now) else {
            return Vec::new();
        };
        // The next message from any switch starts the checks again.
        self.look = (self.any > since).then(|| (now + self.pause(), now));
        if now.since(self.any) > self.pause() {
            return Vec::new();
        }
        let mut silent = Vec::new();
        for (index, heard) in self.heard.iter_mut().enumerate() {
            if heard.is_some_and(|heard| now.since(heard) >= self.silence_max) {
                *heard = None;
                silent.push(SwitchIndex(index as u32));
            }
        }
        silent
    }

    /// Returns the time of the next check.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.look.map(|(at, _)| at)
    }
}
