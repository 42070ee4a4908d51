//! Rig on real interfaces, in real time.
//!
//! The kernel hands over every frame that the interface delivers. Most NICs consume PAUSE and PFC
//! in both directions. The exceptions are veth, TAP, and NICs that are configured to pass them on.
//! The tester's clock is limited by the machine's scheduling: [`Rig::slack`] states the limit, and
//! cases that need shorter times are not applicable here. The rig measures its own lateness by
//! comparing the scheduled and the actual time of each poll.

use crate::frames;
use crate::interpretations::Interpretations;
use crate::rig::{Halt, Rig, Seen, Stream, Way};
use crate::setup::Setup;
use crate::station::{AROUND_FRAME_BYTES, Station};
use axon_linux::clock::Clock;
use axon_linux::packet::PacketPort;
use axon_linux::port::{Pool, Port};
use axon_wire::{Bytes, FrameBuf, MacAddr, Rate, Span, Time};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use std::io;
use std::time::Duration;

/// Default lateness of the tester. It is the scheduling latency of an ordinary kernel on a machine
/// with other load.
pub const SLACK: Span = Span::from_millis(20);
/// Longest backlog after which a transmitter still catches up.
const BEHIND_MAX: Span = Span::from_millis(2);
/// Maximum number of frames from one port per round.
const TURN: usize = 64;
/// Interval at which the ports are polled, to detect absences of the tester.
const LOOK: Span = Span::from_millis(1);

/// Configuration of a rig on Linux interfaces.
#[derive(Clone, Debug)]
pub struct Options {
    /// Interfaces: the tested one first, then those that send traffic through the device.
    pub interfaces: Vec<String>,
    /// Rate of all interfaces.
    pub rate: Rate,
    /// Slack of the tester's clock, see [`SLACK`].
    pub slack: Span,
    /// Configuration of the device.
    pub given: Setup,
    /// Address of the device's port that is connected to the first interface, if known.
    pub device_mac: Option<MacAddr>,
    /// Interpretations of the standards.
    pub interpretations: Interpretations,
}

struct Wire {
    port: PacketPort,
    station: Station,
    free_at: Time,
}

/// Rig on Linux interfaces.
pub struct Linux {
    options: Options,
    clock: Clock,
    wires: Vec<Wire>,
    pool: Pool,
    streams: u16,
    seen: Vec<Seen>,
    presence: Presence,
}

/// Record of the tester's absences.
#[derive(Debug, Default)]
struct Presence {
    /// Time of the next scheduled poll.
    due: Time,
    absences: Vec<(Time, Time)>,
}

impl Presence {
    /// Records a poll. If it is much later than scheduled, the tester was absent.
    fn look(&mut self, now: Time) {
        if now > self.due + LOOK {
            self.absences.push((self.due, now));
        }
        self.due = now;
    }

    /// Schedules the next poll.
    fn until(&mut self, due: Time) {
        self.due = due;
    }
}

/// Returns the rate that the kernel reports for an interface. For some interfaces, the kernel makes
/// one up.
pub fn rate_of(interface: &str) -> Option<Rate> {
    let said = std::fs::read_to_string(format!("/sys/class/net/{interface}/speed")).ok()?;
    let megabits: u64 = said.trim().parse().ok()?;
    Rate::from_bits_per_second(megabits * 1_000_000)
}

impl Linux {
    /// Opens the interfaces, which must be up, in the network namespace of the calling thread.
    ///
    /// # Errors
    /// An interface is missing or down, or the process has no right to packet sockets. The error
    /// contains the name of the interface.
    pub fn open(options: Options) -> Result<Linux, (String, io::Error)> {
        let mut wires = Vec::new();
        for name in &options.interfaces {
            let port = PacketPort::open(name, true).map_err(|error| (name.clone(), error))?;
            let station = Station::new(wires.len(), options.rate);
            wires.push(Wire { port, station, free_at: Time::ZERO });
        }
        Ok(Linux {
            options,
            clock: Clock::start(),
            wires,
            pool: Pool::default(),
            streams: 0,
            seen: Vec::new(),
            presence: Presence::default(),
        })
    }

    /// Receives pending frames at one port, and sends the frames that are due there.
    fn serve(&mut self, port: usize) -> io::Result<()> {
        let (wire, mut came) = (&mut self.wires[port], Vec::new());
        let more = wire.port.receive(&mut self.pool, &mut came);
        for frame in came {
            let at = self.clock.now();
            wire.station.receive(at, frame.bytes());
            let heard = frame.bytes().to_vec();
            self.seen.push(Seen { at, port, way: Way::Heard, frame: heard });
            self.pool.recycle(frame);
        }
        more?;
        for _ in 0..TURN {
            let now = self.clock.now();
            if wire.free_at > now {
                break;
            }
            let Some(frame) = wire.station.take(now) else { break };
            let bytes = frame.len().max(frames::SHORTEST) as u64 + AROUND_FRAME_BYTES;
            let start = wire.free_at.max(now - BEHIND_MAX);
            wire.free_at = start + self.options.rate.time_for(Bytes(bytes));
            wire.port.send(&[FrameBuf::new(&frame)])?;
            self.seen.push(Seen { at: now, port, way: Way::Sent, frame });
        }
        Ok(())
    }

    /// Sleeps until a frame arrives, a frame is due to be sent, or `until`, but at most for the
    /// polling interval.
    fn wait(&mut self, until: Time) {
        let now = self.clock.now();
        self.presence.look(now);
        let until = until.min(now + LOOK);
        let due = |wire: &Wire| Some(wire.station.due(now)?.max(wire.free_at));
        let next = self.wires.iter().filter_map(due).chain([until]).min().unwrap_or(until);
        self.presence.until(next.max(now));
        let left = if next > now { next.since(now).as_nanos() } else { 0 };
        let timeout = TimeSpec::from_duration(Duration::from_nanos(left));
        let fd = |wire| PollFd::new(Port::fd(wire), PollFlags::POLLIN);
        let mut fds: Vec<PollFd<'_>> = self.wires.iter().map(|wire| fd(&wire.port)).collect();
        // After an interruption, the loop simply repeats.
        let _ = ppoll(&mut fds, Some(timeout), None);
        self.presence.look(self.clock.now());
    }
}

impl Rig for Linux {
    fn ports(&self) -> usize {
        self.wires.len()
    }

    fn rate(&self) -> Rate {
        self.options.rate
    }

    fn slack(&self) -> Span {
        self.options.slack
    }

    fn interpretations(&self) -> &Interpretations {
        &self.options.interpretations
    }

    fn absences(&self) -> &[(Time, Time)] {
        &self.presence.absences
    }

    fn lost(&mut self) -> u64 {
        let counters = self.wires.iter_mut().map(|wire| wire.port.counters());
        counters.map(|counters| counters.rx_ring_drops + counters.tx_refused).sum()
    }

    fn given(&self) -> Option<&Setup> {
        Some(&self.options.given)
    }

    fn set_up(&mut self, _: &Setup) -> Result<(), Halt> {
        let now = self.now();
        for (port, wire) in self.wires.iter_mut().enumerate() {
            wire.station = Station::new(port, self.options.rate);
            // Resumes the priorities that the last case has paused.
            let from = frames::mac(port);
            wire.station.order(now, frames::pause(from, 0));
            wire.station.order(now, frames::pfc_for(from, 0xff, 0));
        }
        self.pass(now + self.options.slack * 2)?;
        Ok(())
    }

    fn device_mac(&self) -> Option<MacAddr> {
        self.options.device_mac
    }

    fn now(&self) -> Time {
        self.clock.now()
    }

    fn send(&mut self, port: usize, at: Time, frame: Vec<u8>) {
        self.wires[port].station.order(at, frame);
    }

    fn stream(&mut self, stream: Stream) -> u16 {
        self.streams = self.streams.wrapping_add(1);
        self.wires[stream.from].station.add(self.streams, stream);
        self.streams
    }

    fn pass(&mut self, until: Time) -> Result<Vec<Seen>, Halt> {
        self.presence.look(self.clock.now());
        loop {
            for port in 0..self.wires.len() {
                let served = self.serve(port);
                let name = &self.options.interfaces[port];
                served.map_err(|error| Halt::Broken(format!("{name}: {error}")))?;
            }
            if self.now() >= until {
                return Ok(std::mem::take(&mut self.seen));
            }
            self.wait(until);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_looks_later_than_wanted_was_away() {
        let at = |millis| Time::ZERO + Span::from_millis(millis);
        let mut presence = Presence::default();
        presence.until(at(10));
        presence.look(at(4));
        presence.look(at(5));
        assert!(presence.absences.is_empty(), "a frame came early; a millisecond is nothing");
        presence.until(at(10));
        presence.look(at(40));
        presence.look(at(43));
        assert_eq!(presence.absences, [(at(10), at(40)), (at(40), at(43))]);
    }
}
