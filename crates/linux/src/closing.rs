//! Closes sockets without blocking.
//!
//! Closing a packet socket blocks until no CPU can see the socket any more: one or two RCU grace
//! periods of up to 20 ms each (`packet_release`). That would delay a node that has just lost
//! carrier and must notify other nodes.

use std::os::fd::OwnedFd;
use std::thread;

/// Closes these sockets in a separate thread, or in this one if no thread can be created.
pub(crate) fn apart(sockets: Vec<OwnedFd>) {
    if !sockets.is_empty() {
        let closing = thread::Builder::new().name("closing".into()).stack_size(64 * 1024);
        // If the thread cannot start, dropping its closure drops the sockets.
        drop(closing.spawn(move || drop(sockets)));
    }
}
