//! Agents that keep the files that they share with their switch busy, or send it files that are
//! slow to close: its thread must not wait for them.

use crate::hostile::is_whole_again;
use crate::rogue::Rogue;
use crate::support::{LIMIT, Switch, numbered};
use axon_linux::agent_port::layout::AGENT_SLEEPS;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Instant;

/// A terminal that takes no more bytes: what reads it, and what writes to it and waits.
fn full_terminal() -> (File, File) {
    let open = |path: &str, flags| {
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(flags | libc::O_NOCTTY).open(path).unwrap()
    };
    let reads = open("/dev/ptmx", 0);
    let mut unlocked: libc::c_int = 0;
    let mut number: libc::c_int = 0;
    // SAFETY: each reads or writes one int, which lives for as long.
    unsafe {
        assert_eq!(libc::ioctl(reads.as_raw_fd(), libc::TIOCSPTLCK, &raw mut unlocked), 0);
        assert_eq!(libc::ioctl(reads.as_raw_fd(), libc::TIOCGPTN, &raw mut number), 0);
    }
    let path = format!("/dev/pts/{number}");
    let mut fills = open(&path, libc::O_NONBLOCK);
    while match fills.write(&[b'y'; 64]) {
        Ok(count) => count > 0,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::WouldBlock);
            false
        }
    } {}
    (reads, open(&path, 0))
}

/// Splices from one file into another until that cannot be; says how many bytes it was.
fn splice(from: &OwnedFd, to: &File) -> u64 {
    let (from, to, none) = (from.as_raw_fd(), to.as_raw_fd(), std::ptr::null_mut());
    let mut sum = 0;
    loop {
        // SAFETY: both are open, and no offset is read.
        let count = unsafe { libc::splice(from, none, to, none, 8, 0) };
        match u64::try_from(count) {
            Ok(bytes @ 1..) => sum += bytes,
            _ => return sum,
        }
    }
}

/// Whether a thread of this process waits in `splice(2)`.
fn waits_in_splice(thread: i32) -> bool {
    let call = std::fs::read_to_string(format!("/proc/self/task/{thread}/syscall"));
    let number = call.ok().and_then(|call| call.split(' ').next()?.parse().ok());
    number == Some(libc::SYS_splice)
}

/// Waits until a test is over; then, or if it is not in time, closes the file.
fn release(file: File, over: &Receiver<()>, late: &AtomicBool) {
    late.store(over.recv_timeout(LIMIT) == Err(RecvTimeoutError::Timeout), Ordering::Relaxed);
    drop(file);
}

#[test]
fn an_agent_that_splices_what_wakes_it_into_a_full_terminal_does_not_stop_its_switch() {
    let mut switch = Switch::with(|setup| setup.buffers = 64);
    let rogue = Rogue::attach(&mut switch);
    let (reads, full) = full_terminal();
    let (late, (over, is_over)) = (AtomicBool::new(false), channel::<()>());
    let ring = |switch: &mut Switch, number| {
        rogue.memory.word(AGENT_SLEEPS).store(1, Ordering::SeqCst);
        switch.give(&numbered(number, 100));
        assert_eq!(rogue.memory.word(AGENT_SLEEPS).load(Ordering::SeqCst), 0, "it has rung");
    };
    ring(&mut switch, 0);
    std::thread::scope(|scope| {
        let (sender, thread) = channel();
        let (ear, full) = (&rogue.ear, &full);
        let splicer = scope.spawn(move || {
            sender.send(nix::unistd::gettid().as_raw()).unwrap();
            splice(ear, full)
        });
        let thread = thread.recv().unwrap();
        let began = Instant::now();
        while !splicer.is_finished() && !waits_in_splice(thread) {
            assert!(began.elapsed() < LIMIT);
            std::thread::yield_now();
        }
        // Without a reader the terminal hangs up, which ends the splicer.
        let late = &late;
        scope.spawn(move || release(reads, &is_over, late));
        (1..20).for_each(|number| ring(&mut switch, number));
        assert_eq!(switch.port.agent_status().counters.packets, 20);
        // Whoever releases it may have done so.
        let _ = over.send(());
        splicer.join().unwrap();
    });
    assert!(!late.load(Ordering::Relaxed), "the switch has waited for its agent");
    drop(rogue);
    switch.until(|port| axon_linux::port::Port::carrier(port) == Some(false));
    is_whole_again(&mut switch, "it spliced");
}
