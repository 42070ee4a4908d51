//! Switches that are dead: their hosts do not keep their addresses for ever.
//!
//! A switch that cannot be reached keeps the routes of its hosts, and may be back soon. So its
//! hosts stay, until it has been silent for [`silence_max`](crate::config::Timers::silence_max).
//! A controller that heard nobody at all was itself cut off, and that time does not count.

use super::topology::SwitchIndex;
use alloc::vec::Vec;
use axon_wire::{Span, Time};

/// When each switch was last heard of.
#[derive(Clone, Debug)]
pub(super) struct Ageing {
    silence_max: Span,
    /// By index; `None` once the hosts of the switch have been forgotten.
    heard: Vec<Option<Time>>,
    /// When any switch was last heard of.
    any: Time,
    /// When to look next, and since when; `None` while nobody is heard.
    look: Option<(Time, Time)>,
}

impl Ageing {
    /// Nobody is there yet.
    pub(super) fn new(silence_max: Span) -> Ageing {
        Ageing { silence_max, heard: Vec::new(), any: Time::ZERO, look: None }
    }

    /// The time between two looks, and the longest time in which nobody is heard that counts.
    fn pause(&self) -> Span {
        Span::from_ticks((self.silence_max.ticks() / 4).max(1))
    }

    /// A switch was heard of.
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

    /// The switches that have been silent for too long, each once.
    pub(super) fn silent(&mut self, now: Time) -> Vec<SwitchIndex> {
        let Some((_, since)) = self.look.filter(|(at, _)| *at <= now) else {
            return Vec::new();
        };
        // Whoever is heard of next begins anew.
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

    /// When to look next.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.look.map(|(at, _)| at)
    }
}
