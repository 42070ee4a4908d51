//! Listens at a path. The socket of a dead process is replaced, but never that of a live one.

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, socket};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixListener;
use std::path::Path;

/// Opens a non-blocking stream socket that listens at `path`. A socket that a dead process has left
/// is replaced.
///
/// # Errors
/// `AddrInUse` if a process listens there, and `AlreadyExists` if the path is not a socket. The
/// path is then left alone. Otherwise, the file system's error. Each error includes the path.
pub(crate) fn listen(path: &Path) -> io::Result<UnixListener> {
    let listener = match UnixListener::bind(path) {
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            make_room(path)?;
            UnixListener::bind(path)
        }
        bound => bound,
    };
    let named = |error: io::Error| named(path, error.kind(), &error.to_string());
    let listener = listener.map_err(named)?;
    listener.set_nonblocking(true).map_err(named)?;
    Ok(listener)
}

/// Removes a socket that has no listener.
fn make_room(path: &Path) -> io::Result<()> {
    let in_use = "a live process listens there: end it, or name another path";
    let no_socket = "what is there is no socket: move it away, or name another path";
    if !std::fs::symlink_metadata(path)?.file_type().is_socket() {
        return Err(named(path, ErrorKind::AlreadyExists, no_socket));
    }
    match try_connect(path) {
        // ENOENT means that the socket was removed in the meantime.
        Err(Errno::ECONNREFUSED | Errno::ENOENT) => {}
        // This also happens if its queue of connections is full, or if it belongs to another user.
        _ => return Err(named(path, ErrorKind::AddrInUse, in_use)),
    }
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(named(path, error.kind(), &error.to_string()))
        }
        _ => Ok(()),
    }
}

/// Connects without blocking if the process does not accept connections.
fn try_connect(path: &Path) -> nix::Result<()> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let stream = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    connect(stream.as_raw_fd(), &UnixAddr::new(path)?)
}

fn named(path: &Path, kind: ErrorKind, why: &str) -> io::Error {
    io::Error::new(kind, format!("cannot listen at {}: {why}", path.display()))
}
