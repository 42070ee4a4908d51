//! TCP stream with known bytes, to check its integrity.

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv6Addr, TcpListener, TcpStream};
use std::time::Duration;
use xxhash_rust::xxh3::Xxh3;

/// TCP port for the stream.
pub const PORT: u16 = 5602;
/// Number of bytes in a write, and in a read.
const BLOCK_BYTES: usize = 1 << 16;
/// Time after which either end gives up if no byte has passed.
const SILENCE: Duration = Duration::from_secs(5);

/// Bytes sent or received by one end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stream {
    /// Number of bytes.
    pub bytes: u64,
    /// XXH3 of all bytes.
    pub hash: u64,
}

impl Stream {
    /// Returns the intact fraction of the stream. It is 1, or 0 unless the whole stream is right.
    pub(crate) fn intact(sent: Stream, received: Stream) -> f64 {
        if sent == received { 1.0 } else { 0.0 }
    }
}

/// Returns the next number in a pseudo-random series (Marsaglia, "Xorshift RNGs").
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Fills a block with numbers from the series.
pub(super) fn fill(block: &mut [u8], state: &mut u64) {
    for part in block.chunks_mut(8) {
        part.copy_from_slice(&next(state).to_le_bytes()[..part.len()]);
    }
}

/// Sends `bytes` bytes to a receiver.
///
/// # Errors
/// There is no receiver, or it refuses the data.
pub fn send(to: Ipv6Addr, bytes: u64) -> Result<Stream> {
    let stream = TcpStream::connect((to, PORT)).context("cannot connect")?;
    stream.set_write_timeout(Some(SILENCE))?;
    send_over(stream, bytes)
}

fn send_over(mut stream: TcpStream, bytes: u64) -> Result<Stream> {
    let mut block = vec![0; BLOCK_BYTES];
    let (mut hash, mut state, mut left) = (Xxh3::new(), 1, bytes);
    while left > 0 {
        let length = left.min(BLOCK_BYTES as u64);
        let part = &mut block[..length as usize];
        fill(part, &mut state);
        hash.update(part);
        stream.write_all(part).context("the stream has broken off")?;
        left -= length;
    }
    Ok(Stream { bytes, hash: hash.digest() })
}

/// Receives one stream.
///
/// # Errors
/// The port is taken, or no data arrives for five seconds before the end.
pub fn receive() -> Result<Stream> {
    let listener = TcpListener::bind((Ipv6Addr::UNSPECIFIED, PORT)).context("cannot listen")?;
    receive_from(&listener)
}

fn receive_from(listener: &TcpListener) -> Result<Stream> {
    let (mut stream, _) = listener.accept()?;
    stream.set_read_timeout(Some(SILENCE))?;
    let mut block = vec![0; BLOCK_BYTES];
    let (mut hash, mut bytes) = (Xxh3::new(), 0);
    loop {
        match stream.read(&mut block) {
            Ok(0) => return Ok(Stream { bytes, hash: hash.digest() }),
            Ok(length) => {
                hash.update(&block[..length]);
                bytes += length as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error).context("the stream has broken off"),
        }
    }
}

/// Parses the output from either end.
///
/// # Errors
/// The output is malformed, or contains no bytes.
pub fn parse(output: &str) -> Result<Stream> {
    let stream: Stream = serde_json::from_str(output.trim()).context("not a stream's report")?;
    ensure!(stream.bytes > 0, "the stream was empty");
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_over_loopback_is_intact_and_another_is_not() {
        let listener = TcpListener::bind((Ipv6Addr::LOCALHOST, 0))
            .or_else(|_| TcpListener::bind(("127.0.0.1", 0)))
            .unwrap();
        let address = listener.local_addr().unwrap();
        let receiver = std::thread::spawn(move || receive_from(&listener).unwrap());
        let sent = send_over(TcpStream::connect(address).unwrap(), 300_001).unwrap();
        let received = receiver.join().unwrap();
        assert_eq!((sent.bytes, Stream::intact(sent, received)), (300_001, 1.0));
        assert_eq!(Stream::intact(sent, Stream { hash: sent.hash + 1, ..sent }), 0.0);
        assert_eq!(parse(&serde_json::to_string(&sent).unwrap()).unwrap(), sent);
        assert!(parse("").is_err());
    }
}
