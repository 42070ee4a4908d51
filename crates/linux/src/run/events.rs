//! Descriptors of a run loop, and the wait for them.

use super::ports::Ports;
use crate::kernel::NodeQueues;
use crate::kernel::ports::KernelPorts;
use crate::link_watch::{LinkEvent, LinkWatch};
use crate::request::{Asked, RequestServer};
use crate::status::{Status, StatusServer};
use anyhow::Context;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::time::TimeSpec;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

/// Result of a wait.
#[derive(Default)]
pub(super) struct Ready {
    pub(super) stop: bool,
    pub(super) links: bool,
    pub(super) status: bool,
    pub(super) requests: bool,
    pub(super) ports: Vec<usize>,
}

/// Sources of events other than the ports: signals, devices, and clients of the daemon.
pub(super) struct Events {
    signals: SignalFd,
    links: LinkWatch,
    status: Option<StatusServer>,
    requests: Option<RequestServer>,
}

impl Events {
    /// Blocks SIGTERM and SIGINT for the calling thread, and listens at `socket` and next to it.
    ///
    /// # Errors
    /// The netlink socket or the status socket cannot be opened.
    pub(super) fn open(socket: Option<&Path>) -> anyhow::Result<Events> {
        let mut mask = SigSet::empty();
        mask.add(Signal::SIGTERM);
        mask.add(Signal::SIGINT);
        mask.thread_block()?;
        let signals = SignalFd::with_flags(&mask, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        // The default slack of 50 us on every timer is almost half a frame at 100 Mb/s.
        nix::sys::prctl::set_timerslack(1)?;
        let cannot = || format!("cannot listen on {}", socket.unwrap_or(Path::new("")).display());
        let status = socket.map(StatusServer::open).transpose().with_context(cannot)?;
        let requests = socket.map(RequestServer::open).transpose().with_context(cannot)?;
        Ok(Events { signals, links: LinkWatch::open()?, status, requests })
    }

    /// Appends all changes of devices since the last call. Returns false if some were lost.
    pub(super) fn links(&mut self, out: &mut Vec<LinkEvent>) -> bool {
        self.links.read(out)
    }

    /// Returns the commands that have been received.
    pub(super) fn requests(&mut self) -> Vec<Asked> {
        self.requests.as_mut().map(RequestServer::take).unwrap_or_default()
    }

    /// Sends the status to all connected clients.
    pub(super) fn answer(&self, status: &Status) {
        self.status.iter().for_each(|server| server.answer(status));
    }

    /// Waits for any of the descriptors to become ready, for `timeout` at most. If `is_due` then,
    /// every port is ready.
    pub(super) fn poll(
        &self,
        timeout: Option<Duration>,
        kernel: Option<&KernelPorts>,
        ports: &Ports,
        is_due: impl FnOnce() -> bool,
    ) -> io::Result<Ready> {
        let mut fds = vec![
            PollFd::new(self.signals.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.links.fd(), PollFlags::POLLIN),
        ];
        fds.extend(self.status.as_ref().map(|s| PollFd::new(s.fd(), PollFlags::POLLIN)));
        let requests = fds.len();
        let asking = self.requests.iter().flat_map(RequestServer::fds);
        fds.extend(asking.map(|fd| PollFd::new(fd, PollFlags::POLLIN)));
        let answering = requests..fds.len();
        // The queues from the kernel to the node are read in every round.
        let queues = kernel.and_then(KernelPorts::queues).into_iter().flat_map(NodeQueues::fds);
        fds.extend(queues.map(|fd| PollFd::new(fd, PollFlags::POLLIN)));
        let sniffers = kernel.into_iter().flat_map(KernelPorts::sniffer_fds);
        fds.extend(sniffers.map(|fd| PollFd::new(fd, PollFlags::POLLIN)));
        let fixed = fds.len();
        let mut of_port = Vec::with_capacity(ports.count());
        for (index, fd) in ports.fds() {
            fds.push(PollFd::new(fd, PollFlags::POLLIN));
            of_port.push(index);
        }
        match ppoll(&mut fds, timeout.map(TimeSpec::from_duration), None) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        let woken = |fd: &PollFd<'_>| fd.revents().is_some_and(|events| !events.is_empty());
        // A timer is due, so check every port, including those without events.
        let due = is_due();
        let of_port = of_port.iter().zip(&fds[fixed..]);
        Ok(Ready {
            stop: woken(&fds[0]),
            links: woken(&fds[1]),
            status: requests > 2 && woken(&fds[2]),
            requests: fds[answering].iter().any(woken),
            ports: of_port
                .filter(|(index, fd)| due || woken(fd) || ports.has_frame(**index))
                .map(|(index, _)| *index)
                .collect(),
        })
    }
}
