//! Frames of 64 bytes at a given rate, or as fast as a CPU can send them.
//!
//! The sender writes whole frames to a packet socket, bypassing the queueing discipline of its
//! host, with 64 frames per system call. They are UDP datagrams of 18 bytes, which together with
//! their headers and the FCS make the shortest Ethernet frames. A given rate is sent in bursts, ten
//! thousand a second. Frames delayed by a late wake-up follow at once.
//!
//! The receiver is a UDP socket that is never read and that hardly has room for a datagram. The
//! kernel counts each arriving datagram and drops it at the least possible cost, so that the
//! receiver does not limit the measurement. The receiver prints that count with the time at regular
//! intervals. All hosts share the clock of one machine.

use anyhow::{Context, Result, ensure};
use axon_linux::sys::{self, SEND_MAX};
use axon_wire::MacAddr;
use nix::errno::Errno;
use nix::sys::socket::{setsockopt, sockopt};
use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// UDP port for the frames.
pub const PORT: u16 = 5601;
/// Number of bytes in a frame, without its FCS.
const FRAME_BYTES: usize = 60;
/// Interval between bursts.
const BURST: Duration = Duration::from_micros(100);
/// Interval between the counts that the receiver prints.
const COUNT: Duration = Duration::from_millis(10);

/// Ends of a stream of frames: the sender and the receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ends {
    /// Device of the sender.
    pub device: String,
    /// IPv4 address of the sender.
    pub from: Ipv4Addr,
    /// MAC address of the receiver.
    pub mac: MacAddr,
    /// IPv4 address of the receiver.
    pub to: Ipv4Addr,
}

/// Result of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sent {
    /// Frames handed to the kernel, including those dropped at once.
    pub frames: u64,
    /// Start in ns of CLOCK_MONOTONIC.
    pub begin_nanos: u64,
    /// End in ns of CLOCK_MONOTONIC.
    pub end_nanos: u64,
    /// CPU time of the sender in ns, including kernel work on its behalf.
    pub cpu_nanos: u64,
}

/// Sends for `duration`, at `rate` frames per second if given.
///
/// # Errors
/// The process has no right to packet sockets, or there is no such device.
pub fn send(ends: &Ends, rate: Option<u64>, duration: Duration) -> Result<Sent> {
    let socket = sys::packet_socket().context("cannot send frames")?;
    let index = nix::net::if_::if_nametoindex(ends.device.as_str())
        .with_context(|| format!("no device {}", ends.device))?;
    sys::bind_packet(socket.as_fd(), index, 0)?;
    sys::set_packet_option(socket.as_fd(), libc::PACKET_QDISC_BYPASS, &1i32)?;
    let own = MacAddr(sys::device_mac(&ends.device)?);
    let frame = frame(ends, own);
    let frames = [&frame[..]; SEND_MAX];
    let (begin_nanos, cpu) = (nanos(ClockId::CLOCK_MONOTONIC)?, cpu_nanos()?);
    let start = Instant::now();
    let mut sent = 0;
    let mut next = start;
    while start.elapsed() < duration {
        let due = match rate {
            None => SEND_MAX as u64,
            Some(rate) => {
                std::thread::sleep(next.saturating_duration_since(Instant::now()));
                next += BURST;
                let due = start.elapsed().min(duration).as_nanos() * u128::from(rate);
                (due / 1_000_000_000) as u64 - sent
            }
        };
        sent += burst(&socket, &frames, due, start + duration)?;
    }
    Ok(Sent {
        frames: sent,
        begin_nanos,
        end_nanos: nanos(ClockId::CLOCK_MONOTONIC)?,
        cpu_nanos: cpu_nanos()? - cpu,
    })
}

/// Sends `due` frames, or fewer if the time ends. Returns their number.
fn burst(socket: &impl AsFd, frames: &[&[u8]], due: u64, end: Instant) -> Result<u64> {
    let mut sent = 0;
    while sent < due {
        let count = (due - sent).min(SEND_MAX as u64) as usize;
        match sys::send_many(socket.as_fd(), &frames[..count]) {
            Ok(count) => sent += count as u64,
            Err(error) => match Errno::from_raw(error.raw_os_error().unwrap_or(0)) {
                // This device, or a later one, has dropped the frame.
                Errno::ENOBUFS => sent += 1,
                Errno::EAGAIN | Errno::EINTR => std::thread::yield_now(),
                _ => return Err(error).context("cannot send frames"),
            },
        }
        if Instant::now() >= end {
            break;
        }
    }
    Ok(sent)
}

fn cpu_nanos() -> Result<u64> {
    nanos(ClockId::CLOCK_PROCESS_CPUTIME_ID)
}

fn nanos(clock: ClockId) -> Result<u64> {
    let now = clock_gettime(clock)?;
    Ok(now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64)
}

/// Returns the frame that is sent, with Ethernet, IPv4 (RFC 791) and UDP (RFC 768). It has no UDP
/// checksum, which IPv4 allows.
fn frame(ends: &Ends, own: MacAddr) -> [u8; FRAME_BYTES] {
    let mut frame = [0; FRAME_BYTES];
    frame[..6].copy_from_slice(&ends.mac.0);
    frame[6..12].copy_from_slice(&own.0);
    frame[12..14].copy_from_slice(&[8, 0]);
    let bytes = (FRAME_BYTES - 14) as u16;
    let ip = &mut frame[14..34];
    // Version 4, a header of five words, time to live 64, protocol 17.
    ip[0] = 0x45;
    ip[2..4].copy_from_slice(&bytes.to_be_bytes());
    (ip[8], ip[9]) = (64, 17);
    ip[12..16].copy_from_slice(&ends.from.octets());
    ip[16..20].copy_from_slice(&ends.to.octets());
    let sum: u32 = ip.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    ip[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
    let udp = &mut frame[34..42];
    udp[..2].copy_from_slice(&PORT.to_be_bytes());
    udp[2..4].copy_from_slice(&PORT.to_be_bytes());
    udp[4..6].copy_from_slice(&(bytes - 20).to_be_bytes());
    frame
}

/// Receives datagrams until the process is ended, and writes a line every ten milliseconds. The
/// line contains the time from CLOCK_MONOTONIC in ns, and the number of datagrams that have arrived
/// for UDP sockets on this host.
///
/// # Errors
/// The port is taken, or the lines cannot be written.
pub fn receive(mut out: impl Write) -> Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT)).context("cannot take frames")?;
    // The kernel raises the size to its minimum.
    setsockopt(&socket, sockopt::RcvBuf, &0)?;
    loop {
        let count = arrived(&std::fs::read_to_string("/proc/net/snmp")?)?;
        writeln!(out, "{} {count}", nanos(ClockId::CLOCK_MONOTONIC)?)?;
        out.flush()?;
        std::thread::sleep(COUNT);
    }
}

/// Returns the number of datagrams that have arrived for UDP sockets on a host, whether read or
/// dropped. It comes from the host's /proc/net/snmp (RFC 4113, and the kernel's own counter of full
/// buffers).
fn arrived(snmp: &str) -> Result<u64> {
    let mut lines = snmp.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let (names, values) = (lines.next(), lines.next());
    let (names, values) = names.zip(values).context("/proc/net/snmp has no UDP")?;
    let counter = |wanted: &str| {
        let found = names.split(' ').zip(values.split(' ')).find(|(name, _)| *name == wanted);
        let value = found.with_context(|| format!("/proc/net/snmp has no {wanted}"))?.1;
        Ok::<u64, anyhow::Error>(value.trim().parse()?)
    };
    Ok(counter("InDatagrams")? + counter("RcvbufErrors")?)
}

/// Parses the output of a sender.
///
/// # Errors
/// The output is malformed.
pub fn parse(output: &str) -> Result<Sent> {
    let sent: Sent = serde_json::from_str(output.trim()).context("not a sender's report")?;
    ensure!(sent.end_nanos > sent.begin_nanos, "the sender has taken no time");
    Ok(sent)
}

impl Sent {
    /// Returns the offered rate in frames per second.
    pub(crate) fn offered(&self) -> f64 {
        self.frames as f64 / self.seconds()
    }

    /// Returns the duration of the sending, in seconds.
    pub(crate) fn seconds(&self) -> f64 {
        (self.end_nanos - self.begin_nanos) as f64 / 1e9
    }

    /// Returns the rate in frames per second at which frames were delivered during the sending,
    /// from the lines of the receiver.
    ///
    /// # Errors
    /// The receiver has not counted twice in that time.
    pub(crate) fn delivered(&self, lines: &str) -> Result<f64> {
        let count = |line: &str| {
            let (time, count) = line.split_once(' ')?;
            Some((time.parse::<u64>().ok()?, count.parse::<u64>().ok()?))
        };
        let within = |(time, _): &(u64, u64)| (self.begin_nanos..=self.end_nanos).contains(time);
        let counts: Vec<(u64, u64)> = lines.lines().filter_map(count).filter(within).collect();
        let ends = counts.first().zip(counts.last()).filter(|(first, last)| first.0 < last.0);
        let ((begin, before), (end, after)) =
            ends.context("the receiver did not get to count: more --seconds are needed")?;
        Ok((after - before) as f64 * 1e9 / (end - begin) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_a_datagram_with_a_right_checksum() {
        let ends = Ends {
            device: "lo".into(),
            from: Ipv4Addr::new(10, 0, 0, 1),
            mac: MacAddr([2, 0, 0, 0, 0, 9]),
            to: Ipv4Addr::new(10, 0, 0, 2),
        };
        let frame = frame(&ends, MacAddr([2, 0, 0, 0, 0, 1]));
        assert_eq!(frame[..14], [2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1, 8, 0]);
        let words =
            frame[14..34].chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]));
        let sum: u32 = words.sum();
        assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff, "RFC 1071");
        assert_eq!(frame[16..18], [0, 46]);
        assert_eq!(frame[38..42], [0, 26, 0, 0]);
    }

    #[test]
    fn datagrams_that_found_the_buffer_full_have_arrived_too() {
        let snmp = "Tcp: 1 2\nUdp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors\n\
                    Udp: 7 1 5 3 5\nUdpLite: InDatagrams\n";
        assert_eq!(arrived(snmp).unwrap(), 12);
        assert!(arrived("Udp: InDatagrams\nUdp: 7\n").is_err());
        assert!(arrived("").is_err());
    }

    #[test]
    fn a_report_of_a_sender_is_read_back() {
        let sent = Sent { frames: 3, begin_nanos: 4, end_nanos: 5, cpu_nanos: 5 };
        assert_eq!(parse(&serde_json::to_string(&sent).unwrap()).unwrap(), sent);
        let never = Sent { end_nanos: 4, ..sent };
        assert!(parse(&serde_json::to_string(&never).unwrap()).is_err());
        assert!(parse("").is_err());
    }

    #[test]
    fn only_what_arrives_while_it_is_sent_counts() {
        let (begin_nanos, end_nanos) = (1_000_000_000, 2_000_000_000);
        let sent = Sent { frames: 900, begin_nanos, end_nanos, cpu_nanos: 0 };
        let lines = "999999999 0\n1100000000 50\n1400000000 200\n1600000000 300\n2000000001 900\n";
        assert_eq!(sent.delivered(lines).unwrap(), 500.0);
        assert_eq!(sent.offered(), 900.0);
        // A line that is just being written has no line end yet.
        assert_eq!(sent.delivered(&format!("{lines}15000")).unwrap(), 500.0);
        assert!(sent.delivered("1100000000 50\n").is_err() && sent.delivered("").is_err());
    }
}
