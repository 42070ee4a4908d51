//! Agents that keep the files shared with their switch busy, or send it files that are slow to
//! close: its thread must not wait for them.

use super::hostile::is_whole_again;
use super::rogue::Rogue;
use super::support::{LIMIT, Switch, numbered};
use axon_linux::agent_port::handshake;
use axon_linux::agent_port::layout::AGENT_SLEEPS;
use axon_linux::port::Port;
use axon_wire::Span;
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg, setsockopt, sockopt};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, IoSlice, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Instant;

/// A terminal that takes no more bytes: its reading end, and a writing end that blocks.
fn full_terminal() -> (File, File) {
    let open = |path: &str, flags| {
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(flags | libc::O_NOCTTY).open(path).unwrap()
    };
    let reads = open("/dev/ptmx", 0);
    let mut unlocked: libc::c_int = 0;
    let mut number: libc::c_int = 0;
    // SAFETY: each reads or writes one int, which is there for as long.
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

/// Splices from one file into another until that fails; returns the number of bytes.
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

/// True if a thread of this process is blocked in `splice(2)`.
fn waits_in_splice(thread: i32) -> bool {
    let call = std::fs::read_to_string(format!("/proc/self/task/{thread}/syscall"));
    let number = call.ok().and_then(|call| call.split(' ').next()?.parse().ok());
    number == Some(libc::SYS_splice)
}

/// Waits until a test is over, or its time limit has passed, and then closes the file.
fn release(file: File, over: &Receiver<()>, late: &AtomicBool) {
    late.store(over.recv_timeout(LIMIT) == Err(RecvTimeoutError::Timeout), Ordering::Relaxed);
    drop(file);
}

pub fn an_agent_that_splices_what_wakes_it_into_a_full_terminal_does_not_stop_its_switch() {
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
        // The other thread may have ended already.
        let _ = over.send(());
        splicer.join().unwrap();
    });
    assert!(!late.load(Ordering::Relaxed), "the switch has waited for its agent");
    drop(rogue);
    switch.until(|port| port.carrier() == Some(false));
    is_whole_again(&mut switch, "it spliced");
}

/// Sends bytes together with a file that takes too long to close, until the returned stream is
/// dropped.
fn send_slow_file(to: &UnixStream, bytes: &[u8]) -> TcpStream {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut slow = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (reads, _) = listener.accept().unwrap();
    let seconds = LIMIT.as_secs() as libc::c_int + 5;
    setsockopt(&slow, sockopt::Linger, &libc::linger { l_onoff: 1, l_linger: seconds }).unwrap();
    slow.set_nonblocking(true).unwrap();
    while slow.write(&[0; 65_536]).is_ok() {}
    let files = [slow.as_raw_fd()];
    let with = [ControlMessage::ScmRights(&files)];
    let none = MsgFlags::empty();
    sendmsg::<()>(to.as_raw_fd(), &[IoSlice::new(bytes)], &with, none, None).unwrap();
    reads
}

/// A switch that waits for the close of such a file does so for longer than `until` allows.
pub fn files_that_agents_send_are_not_closed_by_the_thread_of_the_switch() {
    let mut switch = Switch::with(|setup| setup.buffers = 16);
    let path = switch.setup.socket.clone();
    let mut kept = Vec::new();
    // Sent with its hello, and again when it is attached.
    let connect = || {
        let stream = UnixStream::connect(&path).unwrap();
        let reads = send_slow_file(&stream, &handshake::hello("rogue"));
        (Rogue::answered(stream), reads)
    };
    let (rogue, reads) = switch.attach(connect);
    kept.push(reads);
    kept.push(send_slow_file(&rogue.stream, b"x"));
    drop(rogue);
    switch.until(|port| port.carrier() == Some(false));
    // Instead of a hello, with a name that is refused, and without further data.
    let attached = switch.attach(|| Rogue::connect(&path));
    for bytes in [&b"x"[..], &handshake::hello("other")] {
        let stream = UnixStream::connect(&path).unwrap();
        kept.push(send_slow_file(&stream, bytes));
        let refused = switch.port.agent_status().counters.refused;
        switch.until_counted(|counters| counters.refused > refused);
    }
    drop(attached);
    switch.until(|port| port.carrier() == Some(false));
    is_whole_again(&mut switch, "it sent files");
}

pub fn while_too_many_sockets_cannot_be_closed_nobody_is_accepted() {
    let mut switch = Switch::with(|setup| setup.backoff_max = Span::from_millis(1));
    let path = switch.setup.socket.clone();
    let mut kept = Vec::new();
    let began = Instant::now();
    while switch.port.agent_status().counters.refused < 32 {
        assert!(began.elapsed() < LIMIT, "{:?}", switch.port.agent_status());
        let stream = UnixStream::connect(&path).unwrap();
        kept.push(send_slow_file(&stream, b"no hello"));
        let refused = switch.port.agent_status().counters.refused;
        switch.until_counted(|counters| counters.refused > refused);
    }
    let waiting = UnixStream::connect(&path).unwrap();
    (&waiting).write_all(b"no hello").unwrap();
    let waits = switch.port.agent_status().counters.waits;
    let counters = switch.until_counted(|counters| counters.waits > waits + 3);
    assert_eq!(counters.refused, 32);
    // Without readers all files can be closed.
    drop(kept);
    switch.until_counted(|counters| counters.refused == 33);
}
