//! Echo requests from one host to others (RFC 792, RFC 4443). They use our own socket, so that many
//! pairs need only one process for each sending host, and no program on the machine.
//!
//! Each target gets a request, and another one every [`AGAIN`], until a reply comes or the time is
//! up. A few targets are in flight at a time. A request carries its send time, counted from the
//! start, and a number for this process. A reply to an earlier request or to another process is
//! therefore not attributed to the last request.

use super::enter::join;
use super::namespaces::enter_net;
use super::state::StateDir;
use anyhow::{Context, Result};
use axon_fabric::assemble::port_name;
use axon_linux::offload::{PartialChecksum, complete_checksum};
use axon_wire::PortNo;
use nix::errno::Errno;
use nix::net::if_::if_nametoindex;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrStorage, recv, sendto,
    socket,
};
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::net::{IpAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// Interval between requests to one target.
const AGAIN: Duration = Duration::from_secs(1);
/// Maximum number of targets in flight from one host.
const WINDOW: usize = 8;
/// Message types of request and reply, by address family.
const ECHO: [(u8, u8); 2] = [(8, 0), (128, 129)];
/// Length of a message, in bytes: 8 for type, code, checksum, identifier and sequence number, 8 for
/// the time, and 8 for the process number.
const MESSAGE_BYTES: usize = 8 + 8 + 8;

/// Result of the requests to one target, as a line of JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Outcome {
    /// Index of the target.
    pub target: usize,
    /// Requests sent.
    pub requests: u32,
    /// Round trip time of the answered request, in nanoseconds.
    pub rtt_ns: Option<u64>,
}

/// Target that has not replied yet.
struct Pending {
    target: usize,
    first: Instant,
    last: Instant,
    requests: u32,
}

/// Joins the lab and sends requests from `node` to each target, for at most `limit`. All targets
/// belong to one address family. Writes a line for each target when its result is known.
pub(super) fn ping(state: &StateDir, node: &str, limit: Duration, to: &[IpAddr]) -> Result<()> {
    join(state)?;
    enter_net(node)?;
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let is_v6 = to.first().is_some_and(IpAddr::is_ipv6);
    let (family, protocol) = match is_v6 {
        false => (AddressFamily::Inet, SockProtocol::Icmp),
        true => (AddressFamily::Inet6, SockProtocol::IcmpV6),
    };
    let socket =
        socket(family, SockType::Raw, flags, protocol).context("cannot open a socket for ICMP")?;
    // Link-local addresses need the device.
    let scope = match is_v6 {
        true => if_nametoindex(port_name(node, PortNo(0)).as_str())?,
        false => 0,
    };
    let (began, process) = (Instant::now(), u64::from(std::process::id()));
    let elapsed = || began.elapsed().as_nanos() as u64;
    let mut pending: Vec<Pending> = Vec::new();
    let mut targets = 0..to.len();
    let mut out = std::io::stdout().lock();
    let mut say = |one: &Pending, rtt_ns| -> Result<()> {
        let outcome = Outcome { target: one.target, requests: one.requests, rtt_ns };
        writeln!(out, "{}", serde_json::to_string(&outcome)?)?;
        Ok(out.flush()?)
    };
    loop {
        while let Some(reply) = receive(&socket, is_v6)? {
            let is_one = |one: &Pending| one.target == reply.target && process == reply.process;
            if let Some(at) = pending.iter().position(is_one) {
                say(&pending.swap_remove(at), Some(elapsed().saturating_sub(reply.sent_ns)))?;
            }
        }
        for one in pending.extract_if(.., |one| one.first.elapsed() >= limit) {
            say(&one, None)?;
        }
        while let Some(target) = (pending.len() < WINDOW).then(|| targets.next()).flatten() {
            let now = Instant::now();
            send(&socket, (to[target], scope), &request(is_v6, target, elapsed(), process));
            pending.push(Pending { target, first: now, last: now, requests: 1 });
        }
        if pending.is_empty() {
            return Ok(());
        }
        for one in pending.iter_mut().filter(|one| one.last.elapsed() >= AGAIN) {
            send(&socket, (to[one.target], scope), &request(is_v6, one.target, elapsed(), process));
            (one.last, one.requests) = (Instant::now(), one.requests + 1);
        }
        wait(&socket, &pending, limit)?;
    }
}

/// Waits for a reply, or until the next request or timeout of a target is due.
fn wait(socket: &OwnedFd, pending: &[Pending], limit: Duration) -> Result<()> {
    let due = |one: &Pending| {
        AGAIN.saturating_sub(one.last.elapsed()).min(limit.saturating_sub(one.first.elapsed()))
    };
    let due = pending.iter().map(due).min().unwrap_or_default();
    // Round up, so that the wait does not end too early.
    let millis = i32::try_from(due.as_millis() + 1).unwrap_or(i32::MAX);
    let fd = PollFd::new(socket.as_fd(), PollFlags::POLLIN);
    match poll(&mut [fd], PollTimeout::try_from(millis)?) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Builds an echo request to target number `target`, with the send time `sent_ns`. The kernel fills
/// in the checksum of ICMPv6.
fn request(is_v6: bool, target: usize, sent_ns: u64, process: u64) -> [u8; MESSAGE_BYTES] {
    let mut message = [0; MESSAGE_BYTES];
    message[0] = ECHO[usize::from(is_v6)].0;
    // The bits above the lower 16 are the identifier.
    message[4..8].copy_from_slice(&(target as u32).to_be_bytes());
    message[8..16].copy_from_slice(&sent_ns.to_be_bytes());
    message[16..24].copy_from_slice(&process.to_be_bytes());
    complete_checksum(&mut message, PartialChecksum { start: 0, offset: 2 });
    message
}

/// Sends a request. An error, for example while ARP has no answer, leaves the request unanswered.
fn send(socket: &OwnedFd, (to, scope): (IpAddr, u32), message: &[u8]) {
    let address = match to {
        IpAddr::V4(to) => SockaddrStorage::from(SocketAddrV4::new(to, 0)),
        IpAddr::V6(to) => {
            let scope = if to.is_unicast_link_local() { scope } else { 0 };
            SockaddrStorage::from(SocketAddrV6::new(to, 0, 0, scope))
        }
    };
    let _ = sendto(socket.as_raw_fd(), message, &address, MsgFlags::empty());
}

/// Reply to a request from [`request`].
#[derive(Debug, PartialEq, Eq)]
struct Reply {
    target: usize,
    sent_ns: u64,
    process: u64,
}

/// Returns the next received reply, if there is one.
fn receive(socket: &OwnedFd, is_v6: bool) -> Result<Option<Reply>> {
    let mut packet = [0; 128];
    loop {
        match recv(socket.as_raw_fd(), &mut packet, MsgFlags::empty()) {
            Ok(length) => {
                let reply = parse(is_v6, &packet[..length]);
                if reply.is_some() {
                    return Ok(reply);
                }
            }
            Err(Errno::EAGAIN) => return Ok(None),
            Err(Errno::EINTR | Errno::EHOSTUNREACH) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Parses data from a raw socket: an IPv4 packet or an ICMPv6 message. The kernel has verified its
/// checksums.
fn parse(is_v6: bool, packet: &[u8]) -> Option<Reply> {
    let header_bytes = if is_v6 { 0 } else { usize::from(packet.first()? & 15) * 4 };
    let message: &[u8; MESSAGE_BYTES] = packet.get(header_bytes..)?.try_into().ok()?;
    let number = |at: usize| message[at..at + 8].try_into().map(u64::from_be_bytes).ok();
    (message[0] == ECHO[usize::from(is_v6)].1).then_some(Reply {
        target: (number(0)? & u64::from(u32::MAX)) as usize,
        sent_ns: number(8)?,
        process: number(16)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_known_by_target_time_and_process_and_nothing_else_is_one() {
        for (is_v6, header_bytes) in [(false, 24), (true, 0)] {
            let mut packet = vec![0x46; header_bytes];
            packet.extend(request(is_v6, 70_000, 123_456_789, 4_242));
            assert_eq!(parse(is_v6, &packet), None, "a request");
            packet[header_bytes] = ECHO[usize::from(is_v6)].1;
            let reply = Reply { target: 70_000, sent_ns: 123_456_789, process: 4_242 };
            assert_eq!(parse(is_v6, &packet), Some(reply));
            for length in 0..packet.len() {
                assert_eq!(parse(is_v6, &packet[..length]), None, "{length} bytes");
            }
            packet.push(0);
            assert_eq!(parse(is_v6, &packet), None, "longer than what was sent");
        }
    }
}
