//! UDP super-packets (UDP_SEGMENT, udp(7)) that consist of known datagrams, to check their
//! integrity.

use super::data::fill;
use anyhow::{Context, Result, ensure};
use nix::sys::socket::{setsockopt, sockopt};
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};
use xxhash_rust::xxh3::xxh3_64;

/// UDP port for the datagrams.
pub const PORT: u16 = 5603;
/// Number of payload bytes in a datagram: its number, random bytes, and the XXH3 of both.
const DATAGRAM_BYTES: usize = 1400;
/// Number of datagrams in a super-packet. Together, they stay below 64 KiB.
pub(crate) const DATAGRAMS_PER_PACKET: usize = 40;
/// Interval between super-packets. It is slow enough for every subject.
const INTERVAL: Duration = Duration::from_millis(4);
/// Size of the receive buffer, in bytes.
const BUFFER_BYTES: usize = 4 << 20;
/// Time that the receiver waits after the last datagram.
const SILENCE: Duration = Duration::from_secs(1);
/// Time that the receiver waits for the first datagram.
const PATIENCE: Duration = Duration::from_secs(5);

/// Received datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Received {
    /// Intact datagrams.
    pub intact: u64,
    /// Corrupted datagrams.
    pub broken: u64,
}

/// Returns the datagram with this number.
fn datagram(number: u64) -> [u8; DATAGRAM_BYTES] {
    let mut bytes = [0; DATAGRAM_BYTES];
    let mut state = number + 1;
    fill(&mut bytes, &mut state);
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    let hash = xxh3_64(&bytes[..DATAGRAM_BYTES - 8]);
    bytes[DATAGRAM_BYTES - 8..].copy_from_slice(&hash.to_be_bytes());
    bytes
}

fn is_intact(bytes: &[u8]) -> bool {
    let Some((body, hash)) = bytes.split_last_chunk::<8>() else { return false };
    bytes.len() == DATAGRAM_BYTES && xxh3_64(body) == u64::from_be_bytes(*hash)
}

/// Sends super-packets.
///
/// # Errors
/// The kernel does not accept super-packets here.
pub fn send(to: Ipv4Addr, packets: u64) -> Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    let segment = i32::try_from(DATAGRAM_BYTES)?;
    setsockopt(&socket, sockopt::UdpGsoSegment, &segment).context("no UDP super-packets here")?;
    socket.connect((to, PORT))?;
    let start = Instant::now();
    for packet in 0..packets {
        let due = start + INTERVAL * u32::try_from(packet)?;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let first = packet * DATAGRAMS_PER_PACKET as u64;
        let numbers = first..first + DATAGRAMS_PER_PACKET as u64;
        let bytes: Vec<u8> = numbers.flat_map(datagram).collect();
        socket.send(&bytes).context("cannot send a UDP super-packet")?;
    }
    Ok(())
}

/// Receives datagrams until all have arrived, or until the time limit.
///
/// # Errors
/// The port is taken.
pub fn receive(packets: u64) -> Result<Received> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT)).context("cannot take datagrams")?;
    // This size is above the limit for ordinary sockets. Without the privilege, the permitted
    // maximum is used.
    if setsockopt(&socket, sockopt::RcvBufForce, &BUFFER_BYTES).is_err() {
        setsockopt(&socket, sockopt::RcvBuf, &BUFFER_BYTES)?;
    }
    receive_from(&socket, packets * DATAGRAMS_PER_PACKET as u64, PATIENCE)
}

fn receive_from(socket: &UdpSocket, count: u64, patience: Duration) -> Result<Received> {
    let mut received = Received::default();
    let mut buffer = [0; 2 * DATAGRAM_BYTES];
    socket.set_read_timeout(Some(patience))?;
    while received.intact + received.broken < count {
        match socket.recv(&mut buffer) {
            Ok(length) if is_intact(&buffer[..length]) => received.intact += 1,
            Ok(_) => received.broken += 1,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => return Err(error).context("cannot take datagrams"),
        }
        socket.set_read_timeout(Some(SILENCE))?;
    }
    Ok(received)
}

/// Parses the output of the receiver. Returns the fraction of the datagrams in these super-packets
/// that arrived intact.
///
/// # Errors
/// The output is malformed.
pub(crate) fn intact(output: &str, packets: u64) -> Result<f64> {
    let received: Received =
        serde_json::from_str(output.trim()).context("not a receiver's report")?;
    ensure!(packets > 0, "nothing was sent");
    Ok(received.intact as f64 / (packets * DATAGRAMS_PER_PACKET as u64) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_with_one_bit_changed_is_broken() {
        let mut bytes = datagram(7);
        assert!(is_intact(&bytes));
        bytes[700] ^= 1;
        assert!(!is_intact(&bytes));
        assert!(!is_intact(&bytes[..1000]) && !is_intact(&[]));
    }

    #[test]
    fn what_comes_over_loopback_is_counted_and_what_does_not_come_ends_the_wait() {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let to = socket.local_addr().unwrap();
        let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        sender.send_to(&datagram(0), to).unwrap();
        sender.send_to(b"noise", to).unwrap();
        let received = receive_from(&socket, 2, PATIENCE).unwrap();
        assert_eq!(received, Received { intact: 1, broken: 1 });
        let none = receive_from(&socket, 2, Duration::from_millis(1)).unwrap();
        assert_eq!(none, Received::default());
        let output = serde_json::to_string(&Received { intact: 30, broken: 10 }).unwrap();
        assert_eq!(intact(&output, 1).unwrap(), 0.75);
        assert!(intact("", 1).is_err());
    }
}
