//! Requests to a daemon: one JSON datagram each, on a socket beside its status socket.
//!
//! A request is not answered; what came of it stands in the status. So nobody who asks can
//! hold up the run loop, and no path back is needed: a lab's daemons do not see the files of
//! those who ask them.

use serde_json::Value;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

/// The longest request.
const REQUEST_BYTES_MAX: usize = 16 * 1024;
/// Requests looked at in one round of the run loop.
const REQUESTS_PER_ROUND: usize = 16;

/// A socket that takes requests.
pub struct RequestSocket {
    socket: UnixDatagram,
}

/// Where the daemon takes requests that tells its status at `status`.
fn beside(status: &Path) -> PathBuf {
    status.with_extension("ask")
}

impl RequestSocket {
    /// Listens beside the status socket `status`; a socket left by a dead process is replaced.
    ///
    /// # Errors
    /// No such directory, or no right to write there.
    pub fn open(status: &Path) -> io::Result<RequestSocket> {
        let path = beside(status);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let socket = UnixDatagram::bind(path)?;
        socket.set_nonblocking(true)?;
        Ok(RequestSocket { socket })
    }

    /// What to poll for readability.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// The requests that wait; what is not JSON is passed over.
    pub fn take(&self) -> Vec<Value> {
        let mut bytes = vec![0; REQUEST_BYTES_MAX];
        let mut requests = Vec::new();
        for _ in 0..REQUESTS_PER_ROUND {
            let Ok(length) = self.socket.recv(&mut bytes) else {
                break;
            };
            match serde_json::from_slice(&bytes[..length]) {
                Ok(request) => requests.push(request),
                Err(error) => tracing::warn!(%error, "a request that is not JSON"),
            }
        }
        requests
    }
}

/// Sends a request to the daemon whose status socket is `status`.
///
/// # Errors
/// Nobody listens, or the request is too long.
pub fn send(status: &Path, request: &Value) -> io::Result<()> {
    let bytes = request.to_string().into_bytes();
    if bytes.len() > REQUEST_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the request is too long"));
    }
    UnixDatagram::unbound()?.send_to(&bytes, beside(status)).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn requests_arrive_in_order_and_nonsense_is_passed_over() {
        let path = std::env::temp_dir().join(format!("axon-request-{}.sock", std::process::id()));
        let socket = RequestSocket::open(&path).unwrap();
        assert!(socket.take().is_empty());
        send(&path, &json!({ "number": 1 })).unwrap();
        let to = beside(&path);
        UnixDatagram::unbound().unwrap().send_to(b"{", &to).unwrap();
        send(&path, &json!({ "number": 2 })).unwrap();
        assert_eq!(socket.take(), [json!({ "number": 1 }), json!({ "number": 2 })]);
        let long = json!("x".repeat(REQUEST_BYTES_MAX));
        assert_eq!(send(&path, &long).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        drop(socket);
        std::fs::remove_file(to).unwrap();
        assert!(send(&path, &json!(1)).is_err(), "nobody listens any more");
    }
}
