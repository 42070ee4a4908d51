//! Port that connects a host's programs: a TAP device that acts on flow control frames.
//!
//! The node sees a port whose peer supports PAUSE and PFC. Flow control frames are not written to
//! the device, where nothing would act on them. Instead, they pause the queues in front of it.
//! Their pause time is ignored, because the sender is in the same process and always sends XON.

use super::queues::HostQueues;
use super::shaper::{NUDGE, Shapers};
use crate::iproute;
use crate::pauses;
use crate::port::{Pool, Port, PortCounters};
use crate::tap::TapPort;
use anyhow::{Context, Result, anyhow};
use axon_switch::agent::Rules;
use axon_wire::FrameBuf;
use axon_wire::mac_control;
use axon_wire::priority::PrioritySet;
use std::io;
use std::os::fd::BorrowedFd;

/// Network interface of a host.
pub(crate) struct HostPort {
    tap: TapPort,
    device: String,
    queues: HostQueues,
    shapers: Shapers,
    paused: PrioritySet,
}

impl HostPort {
    /// Creates the interface if it is missing, sets it up and installs its queues. Existing queues
    /// are removed, and the frames in them are lost.
    ///
    /// # Errors
    /// Names the cause and the remedy. The interface then has no queues. It may be up, and its MTU
    /// and queue length may have changed.
    pub(crate) fn open(device: &str, queues: &HostQueues) -> Result<HostPort> {
        let tap = TapPort::open(device).map_err(|error| refused(device, error))?;
        HostPort::with_queues(tap, device, queues).inspect_err(|_| remove_queues(device))
    }

    fn with_queues(mut tap: TapPort, device: &str, queues: &HostQueues) -> Result<HostPort> {
        let words = queues.link(device);
        iproute::run("ip", &words.split(' ').collect::<Vec<_>>(), "")?;
        remove_queues(device);
        iproute::run("tc", &["-batch", "-"], &queues.batch(device))?;
        tap.follow_mtu(device)?;
        let shapers = Shapers::open(device, queues)
            .with_context(|| format!("the shapers of {device} cannot be set"))?;
        let (device, queues) = (device.to_owned(), queues.clone());
        Ok(HostPort { tap, device, queues, shapers, paused: PrioritySet::EMPTY })
    }

    /// Pauses and resumes the queues of this port as a flow control frame demands.
    fn act_on(&mut self, frame: &[u8]) {
        if let Some(paused) = pauses::after(self.paused, frame) {
            self.paused = paused;
            self.shapers.pause(paused);
        }
    }
}

/// Removes the queues, which would block programs forever without their agent.
impl std::ops::Drop for HostPort {
    fn drop(&mut self) {
        remove_queues(&self.device);
    }
}

/// Removes all queues, if there are any.
fn remove_queues(device: &str) {
    let _ = iproute::run("tc", &["qdisc", "del", "dev", device, "root"], "");
}

/// Builds the error for a TAP device that could not be opened: the cause and the remedy.
fn refused(device: &str, error: io::Error) -> anyhow::Error {
    let help = match error.raw_os_error() {
        Some(libc::EINVAL) => {
            "an interface of that name is there and is no TAP device; name one that is, or a new \
             one"
        }
        Some(libc::EBUSY) => "another process has it; end that one, or name another interface",
        Some(libc::EPERM | libc::EACCES) => "it takes CAP_NET_ADMIN; run this as root",
        Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => {
            "there is no /dev/net/tun; see `modprobe tun`"
        }
        _ => return anyhow!(error).context(format!("no TAP device {device}")),
    };
    anyhow!("no TAP device {device}: {help}")
}

impl Port for HostPort {
    fn fd(&self) -> BorrowedFd<'_> {
        self.tap.fd()
    }

    fn receive(&mut self, pool: &mut Pool, out: &mut Vec<FrameBuf>) -> io::Result<bool> {
        let before = out.len();
        let more = self.tap.receive(pool, out);
        for index in (before..out.len()).rev() {
            if out[index].bytes() == NUDGE {
                pool.recycle(out.remove(index));
            }
        }
        more
    }

    fn transmit(&mut self, frames: &mut Vec<FrameBuf>) -> io::Result<()> {
        for frame in frames.iter() {
            if mac_control::is_mac_control(frame.bytes()) {
                self.act_on(frame.bytes());
            } else {
                self.tap.send(std::slice::from_ref(frame))?;
            }
        }
        Ok(())
    }

    /// Replaces the rules. Until this has succeeded, frames go to the queue of priority 0.
    fn set_rules(&mut self, rules: &Rules) -> Result<()> {
        self.queues.rules = rules.clone();
        let device = self.device.as_str();
        iproute::run("tc", &["filter", "del", "dev", device, "parent", "1:"], "")?;
        iproute::run("tc", &["-batch", "-"], &self.queues.filters(device))
    }

    fn counters(&mut self) -> PortCounters {
        let mut counters = self.tap.counters();
        counters.host_pauses = self.shapers.pauses;
        counters.host_pauses_refused = self.shapers.refused;
        counters
    }
}
