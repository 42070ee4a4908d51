//! Waits for the events of a run loop.

use super::{LATE, PACING_GRID, RETRY, Runtime};
use crate::inspect::Inspect;
use crate::kernel::NodeQueues;
use crate::request::RequestServer;
use axon_wire::{Span, Time};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use std::io;
use std::time::Duration;

/// Interval between polls of the other descriptors while frames arrive.
const LOOK: Span = Span::from_millis(1);

/// Result of a wait.
#[derive(Default)]
pub(super) struct Ready {
    pub(super) stop: bool,
    pub(super) links: bool,
    pub(super) status: bool,
    pub(super) requests: bool,
    pub(super) ports: Vec<usize>,
}

impl<N: Inspect> Runtime<N> {
    /// Returns the wake-up time if there are no external events. A wire that is not
    /// [awaited](axon_node::Shortcuts::awaited) may become free unnoticed before then.
    fn wake_at(&self) -> Option<Time> {
        // If the far end of a wire is full, an event of that end triggers the next check.
        let wires = self.slots.iter().filter(|slot| slot.awaited && !slot.is_full());
        let wires = wires.filter_map(|slot| slot.busy_until).min();
        let grid = PACING_GRID.ticks();
        let wires = wires.map(|time| Time::from_ticks(time.ticks().next_multiple_of(grid)));
        let retry = self.slots.iter().any(|slot| slot.failed).then_some(self.retried + RETRY);
        let rules = self.slots.iter().filter_map(|slot| slot.rules_due);
        wires
            .into_iter()
            .chain(self.node.deadline())
            .chain(retry)
            .chain(rules)
            .chain(self.recording.flush_at())
            .chain(self.wake_latency.due())
            .min()
    }

    /// Waits for the events of the next round, until `until` at most.
    ///
    /// While frames arrive, ports with frames are found without a system call, and all other events
    /// are polled only once per [`LOOK`].
    pub(super) fn wait(&mut self, until: Time) -> io::Result<Ready> {
        let wake_at = self.wake_at().unwrap_or(Time::MAX).min(until);
        let pause = if self.more { Span::ZERO } else { self.moderation.pause() };
        if pause > Span::ZERO {
            std::thread::sleep(Duration::from_nanos(pause.as_nanos()));
        }
        let now = self.clock.now();
        let ready = match self.ports_with_frames() {
            Some(ports) if now < self.look_at && !ports.is_empty() => {
                Ready { ports, ..Ready::default() }
            }
            _ => {
                let at_once = self.more || pause > Span::ZERO || self.before_wait();
                let ready = self.poll(if at_once { now } else { wake_at })?;
                self.look_at = self.clock.now() + LOOK;
                ready
            }
        };
        self.counters.rounds += 1;
        let late = self.clock.now().since(wake_at);
        // Work that is due at once has no wake-up time.
        if late > LATE && wake_at > Time::ZERO {
            self.counters.late += 1;
            let late_us = late.as_nanos() / 1_000;
            self.counters.latest_us = self.counters.latest_us.max(late_us);
        }
        Ok(ready)
    }

    /// Prepares all ports for a wait. Returns true if any of them has a reason not to wait.
    fn before_wait(&mut self) -> bool {
        let mut at_once = false;
        for port in self.slots.iter_mut().filter_map(|slot| slot.port.as_mut()) {
            at_once |= port.before_wait();
        }
        at_once
    }

    /// Returns the ports that have frames, or `None` if finding out takes a system call.
    fn ports_with_frames(&self) -> Option<Vec<usize>> {
        if self.kernel.is_some() {
            return None;
        }
        let mut ports = Vec::new();
        for (index, slot) in self.slots.iter().enumerate() {
            if let Some(port) = &slot.port
                && port.has_frame()?
            {
                ports.push(index);
            }
        }
        Some(ports)
    }

    /// Waits for any of the descriptors to become ready, until `wake_at` at most.
    fn poll(&self, wake_at: Time) -> io::Result<Ready> {
        let span = wake_at.since(self.clock.now());
        let timeout = (wake_at < Time::MAX)
            .then(|| TimeSpec::from_duration(Duration::from_nanos(span.as_nanos())));
        let mut fds = vec![
            PollFd::new(std::os::fd::AsFd::as_fd(&self.signals), PollFlags::POLLIN),
            PollFd::new(self.watch.fd(), PollFlags::POLLIN),
        ];
        fds.extend(self.status.as_ref().map(|s| PollFd::new(s.fd(), PollFlags::POLLIN)));
        let requests = fds.len();
        let asking = self.requests.iter().flat_map(RequestServer::fds);
        fds.extend(asking.map(|fd| PollFd::new(fd, PollFlags::POLLIN)));
        let answering = requests..fds.len();
        // The queues from the kernel to the node are read in every round.
        let kernel = self.kernel.as_ref().map(|kernel| kernel.borrow());
        let queues = kernel.as_ref().and_then(|kernel| kernel.queues());
        let queues = queues.into_iter().flat_map(NodeQueues::fds);
        fds.extend(queues.map(|fd| PollFd::new(fd, PollFlags::POLLIN)));
        let sniffers = kernel.iter().flat_map(|kernel| kernel.sniffer_fds());
        fds.extend(sniffers.map(|fd| PollFd::new(fd, PollFlags::POLLIN)));
        let fixed = fds.len();
        let mut of_port = Vec::with_capacity(self.slots.len());
        for (index, slot) in self.slots.iter().enumerate() {
            if let Some(port) = &slot.port {
                fds.push(PollFd::new(port.fd(), PollFlags::POLLIN));
                of_port.push(index);
            }
        }
        match ppoll(&mut fds, timeout, None) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        let woken = |fd: &PollFd<'_>| fd.revents().is_some_and(|events| !events.is_empty());
        // A timer is due, so check every port, including those without events.
        let now = self.clock.now();
        let due = self.more || self.node.deadline().is_some_and(|deadline| deadline <= now);
        let ports = of_port.iter().zip(&fds[fixed..]);
        let has_frame = |index: usize| {
            self.slots[index].port.as_ref().is_some_and(|port| port.has_frame() == Some(true))
        };
        Ok(Ready {
            stop: woken(&fds[0]),
            links: woken(&fds[1]),
            status: requests > 2 && woken(&fds[2]),
            requests: fds[answering].iter().any(woken),
            ports: ports
                .filter(|(index, fd)| due || woken(fd) || has_frame(**index))
                .map(|(index, _)| *index)
                .collect(),
        })
    }
}
