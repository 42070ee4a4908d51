//! The status socket: whoever connects is told, as JSON, how a daemon fares.

use serde_json::Value;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

/// How long a slow reader is waited for, by a thread of its own.
const WRITE_TIMEOUT: Duration = Duration::from_secs(1);
/// How long an answer is waited for.
const READ_TIMEOUT: Duration = Duration::from_secs(2);

/// A listening status socket.
pub struct StatusServer {
    listener: UnixListener,
}

impl StatusServer {
    /// Listens at `path`; a socket left there by a dead process is replaced.
    ///
    /// # Errors
    /// No such directory, or no right to write there.
    pub fn open(path: &Path) -> io::Result<StatusServer> {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(path)?;
        listener.set_nonblocking(true)?;
        Ok(StatusServer { listener })
    }

    /// What to poll for readability.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// Tells everyone who waits. The writing is done by threads, so that nobody who reads
    /// slowly holds up the fabric.
    pub fn answer(&self, status: Value) {
        let text = format!("{status}\n");
        while let Ok((mut stream, _)) = self.listener.accept() {
            let text = text.clone();
            let write = move || {
                let timeout = stream.set_write_timeout(Some(WRITE_TIMEOUT));
                if let Err(error) = timeout.and_then(|()| stream.write_all(text.as_bytes())) {
                    tracing::debug!(%error, "status not delivered");
                }
            };
            if let Err(error) = std::thread::Builder::new().name("status".into()).spawn(write) {
                tracing::warn!(%error, "no thread for status");
            }
        }
    }
}

/// Asks the daemon that listens at `path`.
///
/// # Errors
/// Nobody listens, no answer within two seconds, or an answer that is not JSON.
pub fn ask(path: &Path) -> io::Result<Value> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(READ_TIMEOUT))?;
    stream.shutdown(Shutdown::Write)?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(serde_json::from_str(&text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_connects_is_told() {
        let path = std::env::temp_dir().join(format!("axon-status-{}.sock", std::process::id()));
        let server = StatusServer::open(&path).unwrap();
        let asker = std::thread::spawn({
            let path = path.clone();
            move || ask(&path)
        });
        let mut fds = [nix::poll::PollFd::new(server.fd(), nix::poll::PollFlags::POLLIN)];
        nix::poll::poll(&mut fds, nix::poll::PollTimeout::from(2000u16)).unwrap();
        server.answer(serde_json::json!({ "name": "s1" }));
        assert_eq!(asker.join().unwrap().unwrap()["name"], "s1");
        std::fs::remove_file(path).unwrap();
    }
}
