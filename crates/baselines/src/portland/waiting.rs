//! Frames waiting for a route from the fabric manager.

use crate::portland::plane::Location;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use axon_node::agenda::Agenda;
use axon_wire::{FrameBuf, PortNo, Span, Time};

/// Maximum time for which a frame waits.
const PATIENCE: Span = Span::from_secs(1);

/// Queue of one switch for frames that wait for a route.
#[derive(Debug)]
pub(super) struct Waiting {
    rooms: BTreeMap<Location, Room>,
    /// Time of the next query, by location.
    asks: Agenda<Location>,
    bytes: usize,
    bytes_max: usize,
    retry: Span,
}

#[derive(Debug)]
struct Room {
    frames: Vec<(PortNo, FrameBuf)>,
    since: Time,
}

impl Waiting {
    pub(crate) fn new(bytes_max: usize, retry: Span) -> Waiting {
        Waiting { rooms: BTreeMap::new(), asks: Agenda::new(), bytes: 0, bytes_max, retry }
    }

    /// Queues a frame. The first frame for a location triggers a query at once.
    ///
    /// # Errors
    /// Returns the frame if there is no room.
    pub(crate) fn push(
        &mut self,
        now: Time,
        to: Location,
        ingress: PortNo,
        frame: FrameBuf,
    ) -> Result<(), FrameBuf> {
        let bytes = frame.bytes().len();
        if self.bytes + bytes > self.bytes_max {
            return Err(frame);
        }
        self.bytes += bytes;
        let room = self.rooms.entry(to).or_insert_with(|| {
            self.asks.set(to, now);
            Room { frames: Vec::new(), since: now }
        });
        room.frames.push((ingress, frame));
        Ok(())
    }

    /// Removes and returns the frames for a location, in order.
    pub(crate) fn take(&mut self, location: Location) -> Vec<(PortNo, FrameBuf)> {
        self.asks.cancel(location);
        let frames = self.rooms.remove(&location).map_or(Vec::new(), |room| room.frames);
        self.bytes -= frames.iter().map(|(_, frame)| frame.bytes().len()).sum::<usize>();
        frames
    }

    /// Returns the locations that are to be queried now, and the frames that have timed out.
    pub(crate) fn due(&mut self, now: Time) -> (Vec<Location>, Vec<(PortNo, FrameBuf)>) {
        let (mut ask, mut vain) = (Vec::new(), Vec::new());
        while let Some(location) = self.asks.pop_due(now) {
            let since = self.rooms.get(&location).map_or(Time::ZERO, |room| room.since);
            if since + PATIENCE <= now {
                vain.extend(self.take(location));
            } else {
                self.asks.set(location, now + self.retry);
                ask.push(location);
            }
        }
        (ask, vain)
    }

    pub(crate) fn deadline(&self) -> Option<Time> {
        self.asks.next()
    }

    /// Returns the number of frames that are waiting.
    pub(crate) fn frames(&self) -> u64 {
        self.rooms.values().map(|room| room.frames.len() as u64).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_wire::FrameBuf;

    #[test]
    fn frames_wait_a_second_and_no_more_than_fit() {
        let at = |millis| Time::ZERO + Span::from_millis(millis);
        let to = |pod| Location { pod, position: 0 };
        let mut waiting = Waiting::new(200, Span::from_millis(400));
        let frame = || FrameBuf::new(&[0; 60]);
        for (pod, fits) in [(1, true), (1, true), (2, true), (2, false)] {
            assert_eq!(waiting.push(at(0), to(pod), PortNo(1), frame()).is_ok(), fits);
        }
        assert_eq!(waiting.due(at(0)).0, [to(1), to(2)]);
        assert_eq!(waiting.take(to(2)).len(), 1);
        assert_eq!(waiting.due(at(399)).0, []);
        assert_eq!(waiting.due(at(400)).0, [to(1)]);
        assert_eq!(waiting.due(at(800)).0, [to(1)]);
        let (ask, vain) = waiting.due(at(1200));
        assert_eq!((ask.len(), vain.len(), waiting.frames()), (0, 2, 0));
        assert_eq!(waiting.deadline(), None);
    }
}
