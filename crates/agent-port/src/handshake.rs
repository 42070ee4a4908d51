//! Attachment of an agent: one message in each direction over a Unix socket, then the shared
//! memory.
//!
//! The agent sends its hello. The switch answers with three descriptors, or it answers with the
//! reason for a refusal and closes the socket. Afterwards, nothing is sent. The socket stays open
//! while the agent is attached, and when it is closed, either side detects that the other has gone.
//!
//! ```text
//! hello   64 bytes:  magic 8, version 4, length of the name 4, name 48
//! answer  256 bytes: magic 8, status 4 (0: attached), version of the switch 4, memory bytes 8,
//!                    length of the text 4, zero 4, text 224: why not
//!                    with it: memfd, socket that wakes the agent, eventfd that wakes the switch
//! ```
//!
//! Numbers are little-endian. The start of both messages is the same in every version.

use crate::descriptors;
use crate::layout::{MAGIC, VERSION};
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use std::io::{self, ErrorKind, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// Length of a hello, in bytes.
pub const HELLO_BYTES: usize = 64;
/// Length of an answer, in bytes.
pub(crate) const ANSWER_BYTES: usize = 256;
/// Longest name of an agent, in bytes.
pub(crate) const NAME_BYTES_MAX: usize = 48;
const TEXT_BYTES_MAX: usize = 224;
const ATTACHED: u32 = 0;
const REFUSED: u32 = 1;

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
}

/// Returns the hello of an agent with this name.
pub fn hello(name: &str) -> [u8; HELLO_BYTES] {
    let mut bytes = [0; HELLO_BYTES];
    let name = &name.as_bytes()[..name.floor_char_boundary(NAME_BYTES_MAX)];
    bytes[..8].copy_from_slice(&MAGIC.to_le_bytes());
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[12..16].copy_from_slice(&(name.len() as u32).to_le_bytes());
    bytes[16..16 + name.len()].copy_from_slice(name);
    bytes
}

/// Returns the name of the agent in a hello.
///
/// # Errors
/// The agent must be refused. The error is the reason, for the logs of both sides.
pub fn parse_hello(bytes: &[u8]) -> Result<String, String> {
    let Some(magic) = bytes.get(..8).filter(|_| bytes.len() == HELLO_BYTES) else {
        return Err(format!("a hello of {} bytes, expected {HELLO_BYTES}", bytes.len()));
    };
    if magic != MAGIC.to_le_bytes() {
        return Err("this is not the hello of an agent".to_owned());
    }
    let (version, name_bytes) = (word(bytes, 8), word(bytes, 12) as usize);
    let name = bytes.get(16..16 + name_bytes.min(NAME_BYTES_MAX)).unwrap_or_default();
    let name: String =
        String::from_utf8_lossy(name).chars().filter(|letter| !letter.is_control()).collect();
    if version != VERSION {
        return Err(format!(
            "agent {name:?} is made for version {version} of the shared memory and this switch has \
             version {VERSION}: install the agent of the same release"
        ));
    }
    Ok(name)
}

/// Answers a hello with the shared descriptors.
///
/// # Errors
/// The agent has already gone.
pub fn attach(
    stream: &UnixStream,
    memory_bytes: usize,
    shared: [BorrowedFd<'_>; 3],
) -> io::Result<()> {
    let shared = shared.map(|fd| fd.as_raw_fd());
    send(stream, &answer(ATTACHED, memory_bytes, ""), &[ControlMessage::ScmRights(&shared)])
}

/// Answers a hello with the reason for a refusal.
pub fn refuse(stream: &UnixStream, why: &str) {
    // This fails if the agent has already gone, which is harmless.
    let _ = send(stream, &answer(REFUSED, 0, why), &[]);
}

fn answer(status: u32, memory_bytes: usize, text: &str) -> [u8; ANSWER_BYTES] {
    let mut bytes = [0; ANSWER_BYTES];
    let text = &text.as_bytes()[..text.floor_char_boundary(TEXT_BYTES_MAX)];
    bytes[..8].copy_from_slice(&MAGIC.to_le_bytes());
    bytes[8..12].copy_from_slice(&status.to_le_bytes());
    bytes[12..16].copy_from_slice(&VERSION.to_le_bytes());
    bytes[16..24].copy_from_slice(&(memory_bytes as u64).to_le_bytes());
    bytes[24..28].copy_from_slice(&(text.len() as u32).to_le_bytes());
    bytes[32..32 + text.len()].copy_from_slice(text);
    bytes
}

fn send(stream: &UnixStream, bytes: &[u8], with: &[ControlMessage<'_>]) -> io::Result<()> {
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
    sendmsg::<()>(stream.as_raw_fd(), &[IoSlice::new(bytes)], with, flags, None)?;
    Ok(())
}

/// Descriptors for an agent: the memory, with its length, the socket that wakes the agent, and the
/// eventfd that wakes the switch.
pub struct Shared {
    /// Length of the memory, in bytes.
    pub memory_bytes: usize,
    /// Shared memory.
    pub memory: OwnedFd,
    /// Socket that wakes the agent.
    pub agent_bell: OwnedFd,
    /// Eventfd that wakes the switch.
    pub switch_bell: OwnedFd,
}

/// Receives and parses the answer from a switch. Blocks until the answer arrives.
///
/// # Errors
/// `ConnectionRefused`, with the reason, if the switch refuses the agent. `InvalidData` if the
/// answer is malformed.
pub fn parse_answer(stream: &UnixStream) -> io::Result<Shared> {
    let mut bytes = [0; ANSWER_BYTES];
    let (count, shared) = descriptors::receive(stream.as_fd(), &mut bytes)?;
    let invalid = |why: String| io::Error::new(ErrorKind::InvalidData, why);
    if count == 0 {
        return Err(io::Error::new(ErrorKind::ConnectionReset, "the switch has closed the socket"));
    }
    if count != ANSWER_BYTES || bytes[..8] != MAGIC.to_le_bytes() {
        return Err(invalid("what answers at this socket is not an agent port".to_owned()));
    }
    if word(&bytes, 8) != ATTACHED {
        let text = bytes.get(32..32 + (word(&bytes, 24) as usize).min(TEXT_BYTES_MAX));
        let text = String::from_utf8_lossy(text.unwrap_or_default()).into_owned();
        return Err(io::Error::new(ErrorKind::ConnectionRefused, text));
    }
    let memory_bytes = word(&bytes, 16) as usize | (word(&bytes, 20) as usize) << 32;
    match <[OwnedFd; 3]>::try_from(shared) {
        Ok([memory, agent_bell, switch_bell]) => {
            Ok(Shared { memory_bytes, memory, agent_bell, switch_bell })
        }
        Err(others) => Err(invalid(format!("{} descriptors came, expected 3", others.len()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hello_names_its_agent_and_a_wrong_one_is_refused_with_the_reason() {
        assert_eq!(parse_hello(&hello("lb")), Ok("lb".to_owned()));
        let long = "\u{fc}".repeat(40);
        assert_eq!(parse_hello(&hello(&long)), Ok("\u{fc}".repeat(24)));
        let mut other = hello("a\nb");
        other[8] = 9;
        let why = parse_hello(&other).unwrap_err();
        assert!(why.starts_with("agent \"ab\" is made for version 9"), "{why}");
        // The version is wrong, because agents of that version expect a pipe instead of sockets.
        other[8] = 1;
        let why = parse_hello(&other).unwrap_err();
        assert!(why.contains("version 1 of the shared memory and this switch has version 2"));
        assert!(parse_hello(b"GET / HTTP/1.1\r\n").is_err());
        assert!(parse_hello(&[0; HELLO_BYTES]).is_err());
    }

    #[test]
    fn an_answer_brings_three_descriptors_or_the_reason() {
        let (switch, agent) = UnixStream::pair().unwrap();
        let shared = [switch.as_fd(), agent.as_fd(), agent.as_fd()];
        attach(&switch, 5 << 32 | 4096, shared).unwrap();
        assert_eq!(parse_answer(&agent).unwrap().memory_bytes, 5 << 32 | 4096);
        attach(&switch, 4096, shared).unwrap();
        refuse(&switch, "another agent is attached");
        drop(switch);
        assert!(parse_answer(&agent).is_ok());
        let error = parse_answer(&agent).map(drop).unwrap_err();
        assert_eq!(error.to_string(), "another agent is attached");
        let error = parse_answer(&agent).map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    }
}
