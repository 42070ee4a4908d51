//! Closes the sockets of agents beside the thread that forwards.
//!
//! An agent can send files over its socket. Whoever reads them there, or closes the socket before
//! they were read, closes these files, too, and that takes as long as they like: a TCP socket with
//! `SO_LINGER` waits until its peer has read. So the thread of the switch only ever looks at what
//! an agent has sent (`MSG_PEEK`), and leaves the closing to a thread that may wait.

use nix::sys::signal::{SigSet, SigmaskHow};
use std::io;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};

/// Sockets that wait to be closed before the port accepts nobody any more.
const WAITING_MAX: usize = 32;

/// What closes sockets; its thread ends after the last one when this is dropped.
#[derive(Default)]
pub(super) struct Closer {
    to_close: Option<Sender<UnixStream>>,
    waiting: Arc<AtomicUsize>,
}

impl Closer {
    /// Starts the thread, if there is none yet.
    ///
    /// # Errors
    /// There can be no more threads.
    pub fn start(&mut self) -> io::Result<()> {
        if self.to_close.is_some() {
            return Ok(());
        }
        let (sender, receiver) = channel::<UnixStream>();
        let waiting = Arc::clone(&self.waiting);
        let close = move || {
            for stream in receiver {
                drop(stream);
                waiting.fetch_sub(1, Ordering::Relaxed);
            }
        };
        // Signals are for the thread that starts this one, which inherits what is held back.
        let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        let started = std::thread::Builder::new().name("close".into()).spawn(close);
        before.thread_set_mask()?;
        started?;
        self.to_close = Some(sender);
        Ok(())
    }

    /// Ends a connection at once, and closes its socket when that can be.
    pub fn close(&self, stream: UnixStream) {
        // The other side may have gone.
        let _ = stream.shutdown(Shutdown::Both);
        self.waiting.fetch_add(1, Ordering::Relaxed);
        if let Some(to_close) = &self.to_close {
            // Its thread ends after this value only.
            let _ = to_close.send(stream);
        }
    }

    /// Whether too many wait to be closed.
    pub fn is_behind(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) >= WAITING_MAX
    }
}
