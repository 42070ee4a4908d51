//! Outage of a stream after a link is cut, measured by its receiver.
//!
//! A sender sends one small numbered, time-stamped UDP datagram each millisecond. The receiver
//! records their arrivals. The gap is the longest time between two consecutive arrivals, of which
//! the later one came after the cut. It is the outage that an application sees. It includes
//! detection, the controller's decision, the new routes, and the jitter of both hosts. The longest
//! gap before the cut shows the jitter of the machine alone.
//!
//! All hosts in a lab share one kernel, so one clock (CLOCK_MONOTONIC) stamps everything.

use anyhow::{Context, Result, bail};
use nix::time::{ClockId, clock_gettime};
use serde::Serialize;
use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// UDP port for the probes.
pub const PORT: u16 = 5599;
/// Interval between two probes.
pub(crate) const INTERVAL: Duration = Duration::from_millis(1);
/// Number of bytes of UDP payload in a probe: its number, its time, and zeros up to the shortest
/// frame.
const PROBE_BYTES: usize = 18;

/// Returns the time from CLOCK_MONOTONIC, in nanoseconds.
///
/// # Errors
/// None on any Linux.
pub(crate) fn now_nanos() -> Result<u64> {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC)?;
    Ok(now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64)
}

/// Sends probes to `receiver` for `duration`. A late probe is sent at once, and none is left out.
///
/// # Errors
/// There is no socket, or no clock. A probe that the kernel refuses is lost like any other.
pub(crate) fn send(receiver: Ipv4Addr, duration: Duration) -> Result<()> {
    send_to((receiver, PORT).into(), duration)
}

fn send_to(receiver: SocketAddr, duration: Duration) -> Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).context("cannot send probes")?;
    let start = Instant::now();
    let count = (duration.as_nanos() / INTERVAL.as_nanos()) as u32;
    for number in 0..count {
        let due = start + INTERVAL * number;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let mut probe = [0; PROBE_BYTES];
        probe[..4].copy_from_slice(&number.to_be_bytes());
        probe[4..12].copy_from_slice(&now_nanos()?.to_be_bytes());
        // Without the route, the kernel may report an ICMP error for an earlier datagram, which is
        // ignored.
        let _ = socket.send_to(&probe, receiver);
    }
    Ok(())
}

/// Receives probes for `duration`. Returns one line for each probe, with its number, the time it
/// was sent and the time it was received, in nanoseconds.
///
/// # Errors
/// The port is taken, or the socket fails.
pub(crate) fn receive(duration: Duration) -> Result<String> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT)).context("cannot take probes")?;
    receive_from(&socket, duration)
}

fn receive_from(socket: &UdpSocket, duration: Duration) -> Result<String> {
    let end = Instant::now() + duration;
    let mut lines = String::new();
    let mut buffer = [0; 64];
    while let Some(left) = end.checked_duration_since(Instant::now()).filter(|d| !d.is_zero()) {
        socket.set_read_timeout(Some(left))?;
        match socket.recv(&mut buffer) {
            Ok(PROBE_BYTES) => {
                let received = now_nanos()?;
                let number = u32::from_be_bytes(*buffer.first_chunk().context("short probe")?);
                let sent = buffer[4..].first_chunk().context("short probe")?;
                writeln!(lines, "{number} {} {received}", u64::from_be_bytes(*sent))?;
            }
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error).context("cannot take probes"),
        }
    }
    Ok(lines)
}

/// Received probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Number of the probe, from 0.
    pub number: u32,
    /// Send time in ns.
    pub sent: u64,
    /// Receive time in ns.
    pub received: u64,
}

/// Parses the output of `receive`.
///
/// # Errors
/// A line does not consist of three numbers.
pub fn parse(lines: &str) -> Result<Vec<Arrival>> {
    lines
        .lines()
        .map(|line| {
            let mut words = line.split(' ').map(str::parse::<u64>);
            match (words.next(), words.next(), words.next(), words.next()) {
                (Some(Ok(number)), Some(Ok(sent)), Some(Ok(received)), None) => {
                    Ok(Arrival { number: u32::try_from(number)?, sent, received })
                }
                _ => bail!("not a probe: {line:?}"),
            }
        })
        .collect()
}

/// Outage of one stream after a cut.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Outage {
    /// Longest time between two arrivals of which the later one came after the cut, in ms.
    /// Infinite, and `null` in JSON, if none came.
    pub gap_ms: f64,
    /// Longest time between two arrivals before the cut, in ms.
    pub jitter_ms: f64,
    /// Longest time between two probes sent after the cut, in ms: the sender's maximum contribution
    /// to the gap.
    pub sender_gap_ms: f64,
    /// Number of lost probes over the whole stream.
    pub lost: u32,
    /// Fraction of the last second's probes that arrived.
    pub at_the_end: f64,
}

/// Evaluates arrivals, given the time of the cut in ns. `count` is the number of probes that were
/// sent.
pub(crate) fn outage(arrivals: &[Arrival], cut: u64, count: u32) -> Outage {
    let millis = |nanos: u64| nanos as f64 / 1e6;
    let mut outage = Outage {
        gap_ms: 0.0,
        jitter_ms: 0.0,
        sender_gap_ms: 0.0,
        lost: count.saturating_sub(arrivals.len() as u32),
        at_the_end: 0.0,
    };
    for pair in arrivals.windows(2) {
        let gap = millis(pair[1].received.saturating_sub(pair[0].received));
        if pair[1].received < cut {
            outage.jitter_ms = outage.jitter_ms.max(gap);
            continue;
        }
        outage.gap_ms = outage.gap_ms.max(gap);
        if pair[1].number == pair[0].number + 1 {
            let sent = millis(pair[1].sent.saturating_sub(pair[0].sent));
            outage.sender_gap_ms = outage.sender_gap_ms.max(sent);
        }
    }
    if arrivals.last().is_none_or(|last| last.received < cut) || arrivals.len() < 2 {
        outage.gap_ms = f64::INFINITY;
    }
    let second = (1000 / INTERVAL.as_millis() as u32).min(count).max(1);
    let late = arrivals.iter().filter(|probe| probe.number >= count.saturating_sub(second));
    outage.at_the_end = late.count() as f64 / f64::from(second);
    outage
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns one probe for each millisecond, which arrives after 2 ms.
    fn stream(numbers: impl Iterator<Item = u32>) -> Vec<Arrival> {
        let at = |number: u32| u64::from(number) * 1_000_000;
        numbers
            .map(|number| Arrival { number, sent: at(number), received: at(number + 2) })
            .collect()
    }

    #[test]
    fn the_gap_is_between_the_last_before_and_the_first_after_the_silence() {
        let arrivals = stream((0..500).chain(537..2000));
        let outage = outage(&arrivals, 501_000_000, 2000);
        assert_eq!((outage.gap_ms, outage.jitter_ms, outage.lost), (38.0, 1.0, 37));
        assert_eq!((outage.sender_gap_ms, outage.at_the_end), (1.0, 1.0));
    }

    #[test]
    fn a_silence_before_the_cut_is_jitter_and_no_gap() {
        let arrivals = stream((0..100).chain(120..2000));
        let outage = outage(&arrivals, 500_000_000, 2000);
        assert_eq!((outage.gap_ms, outage.jitter_ms), (1.0, 21.0));
    }

    #[test]
    fn a_stream_that_never_comes_back_is_an_endless_gap() {
        let cut = outage(&stream(0..500), 501_999_999, 2000);
        assert_eq!((cut.gap_ms, cut.at_the_end), (f64::INFINITY, 0.0));
        assert_eq!(outage(&[], 0, 2000).gap_ms, f64::INFINITY);
        assert!(serde_json::to_string(&cut).unwrap().contains(r#""gap_ms":null"#));
    }

    #[test]
    fn probes_over_loopback_arrive_and_are_read_back() {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = socket.local_addr().unwrap();
        let time = Duration::from_millis(300);
        let receiver = std::thread::spawn(move || receive_from(&socket, time).unwrap());
        send_to(address, Duration::from_millis(50)).unwrap();
        let arrivals = parse(&receiver.join().unwrap()).unwrap();
        assert!(!arrivals.is_empty());
        assert!(arrivals.iter().all(|probe| probe.received >= probe.sent));
        assert!(parse("1 2\n").is_err() && parse("1 2 x\n").is_err());
    }
}
