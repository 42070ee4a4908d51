//! A client of a file service that behaves like PostMark (TR3022, Network Appliance 1997).
//!
//! The client first creates a pool of files. Then it runs transactions, one after another. Each is
//! a creation or a deletion, and a read of a whole file or an append to one, drawn at random with
//! the biases of the plan; files are drawn uniformly. Sizes are uniform between two bounds. Every
//! step is a call to the server, as in NFS (RFC 1094): one call for a creation, a deletion or a
//! name look-up, one for each block read or written. The server stores the files, and the client
//! checks every answer: sizes, and each byte that it has written.

use super::caller::{Call, Caller, Progress};
use super::file_store::{DATA_AT, FileAnswer, FileCall, Status, byte_of};
use super::{App, AppId, FileStats, FlowStats, Transport};
use crate::datagram::Datagram;
use crate::stack::Stack;
use crate::tcp::ConnectionId;
use axon_wire::{Bytes, Span, Time};
use oorandom::Rand64;
use std::collections::VecDeque;
use std::net::Ipv4Addr;

/// Length of a call or an answer without data, in bytes: RPC header, credentials, a file handle and
/// attributes, about as in NFS version 2.
const CALL_BYTES: u32 = 128;
/// Bytes of a call or an answer before its data.
const DATA_CALL_BYTES: u32 = DATA_AT as u32;

/// PostMark's default settings; target and transport are to be filled in.
pub const POSTMARK: FilePlan = FilePlan {
    target: Ipv4Addr::UNSPECIFIED,
    port: 2049,
    transport: Transport::Udp,
    timeout: Span::from_millis(100),
    files: 500,
    transactions: Some(500),
    size_min: 500,
    size_max: 9_770,
    block: 1024,
    read_bias: 5,
    create_bias: 5,
    client: Span::ZERO,
    seed: 42,
};

/// Workload of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilePlan {
    /// Server address.
    pub target: Ipv4Addr,
    /// Server port.
    pub port: u16,
    /// Transport of calls.
    pub transport: Transport,
    /// Retry timeout of a call over UDP, and of a connection that has closed.
    pub timeout: Span,
    /// Number of files before the transactions begin, at least 1.
    pub files: u32,
    /// Number of transactions; `None` runs until stopped.
    pub transactions: Option<u64>,
    /// Minimum size of files and appends, in bytes.
    pub size_min: u32,
    /// Maximum size of created files, in bytes.
    pub size_max: u32,
    /// Maximum bytes read or written per call, at least 1.
    pub block: u32,
    /// Number of transactions out of ten that read; the others append.
    pub read_bias: u32,
    /// Number of transactions out of ten that create; the others delete.
    pub create_bias: u32,
    /// Client processor time between an answer and the next call.
    pub client: Span,
    /// Seed of the random numbers.
    pub seed: u64,
}

/// File on the server.
#[derive(Clone, Copy, Debug)]
struct File {
    number: u64,
    size: u32,
}

/// Planned call, and the required size of the file after it.
#[derive(Clone, Copy, Debug)]
struct Planned {
    call: FileCall,
    size: u32,
}

impl Planned {
    /// Returns the sizes of the request and its answer.
    fn bytes(&self) -> Call {
        let (request, response) = match self.call {
            FileCall::Write { bytes, .. } => (DATA_CALL_BYTES + bytes, CALL_BYTES),
            FileCall::Read { bytes, .. } => (CALL_BYTES, DATA_CALL_BYTES + bytes),
            _ => (CALL_BYTES, CALL_BYTES),
        };
        Call { request, response, work: Span::ZERO }
    }

    /// Returns whether the call succeeded, and the number of bytes that differ from those written.
    fn judge(&self, answer: &[u8]) -> (bool, u64) {
        let said = FileAnswer::parse(answer);
        let done = FileAnswer { status: Status::Done, size: self.size };
        let FileCall::Read { file, offset, bytes } = self.call else {
            return (said == Some(done), 0);
        };
        let data = answer.get(DATA_AT..).unwrap_or_default();
        let right = |at: &u32| data.get(*at as usize) == Some(&byte_of(file, offset + at));
        let wrong = bytes as usize - (0..bytes).filter(right).count();
        (said == Some(done), wrong as u64)
    }
}

/// Running file client. Transactions are timed, the creation of the pool is not. A file is no
/// longer used after a failed call, since its content is unknown.
pub(crate) struct FileClient {
    plan: FilePlan,
    caller: Caller,
    udp_port: Option<u16>,
    random: Rand64,
    /// Existing files.
    files: Vec<File>,
    /// Number of the next file.
    number: u64,
    /// Remaining calls of the open transaction.
    calls: VecDeque<Planned>,
    /// Call that waits for its answer.
    open: Option<Planned>,
    /// Time of the next call; `None` while one waits for its answer.
    next: Option<Time>,
    /// True if the next call waits for the connection to the server.
    pending: bool,
    began: Time,
    files_done: FileStats,
    stats: FlowStats,
}

impl FileClient {
    pub(crate) fn new(id: AppId, plan: FilePlan, now: Time, stack: &mut Stack) -> FileClient {
        // Distinguishes this client's file numbers from those of other clients on the host.
        let own = stack.ip.ephemeral_port();
        let udp_port = (plan.transport == Transport::Udp).then_some(own);
        let server = (plan.target, plan.port);
        FileClient {
            plan,
            caller: Caller::new(id, server, plan.transport, plan.timeout, udp_port),
            udp_port,
            random: Rand64::new(u128::from(plan.seed)),
            files: Vec::new(),
            number: u64::from(own) << 32,
            calls: VecDeque::new(),
            open: None,
            next: Some(now),
            pending: false,
            began: now,
            files_done: FileStats::default(),
            stats: FlowStats::default(),
        }
    }

    fn size(&mut self) -> u32 {
        let range = u64::from(self.plan.size_min)..u64::from(self.plan.size_max) + 1;
        self.random.rand_range(range) as u32
    }

    fn plan_call(&mut self, call: FileCall, size: u32) {
        self.calls.push_back(Planned { call, size });
    }

    /// Plans the calls that append `bytes` bytes to a file, block by block.
    fn write(&mut self, File { number: file, size }: File, bytes: u32) {
        let (mut offset, end) = (size, size.saturating_add(bytes));
        while offset < end {
            let bytes = (end - offset).min(self.plan.block);
            self.plan_call(FileCall::Write { file, offset, bytes }, offset + bytes);
            offset += bytes;
        }
    }

    /// Plans the calls that read a whole file, block by block.
    fn read(&mut self, File { number: file, size }: File) {
        let mut offset = 0;
        while offset < size {
            let bytes = (size - offset).min(self.plan.block);
            self.plan_call(FileCall::Read { file, offset, bytes }, size);
            offset += bytes;
        }
    }

    fn create(&mut self) {
        let size = self.size();
        let file = self.number;
        self.number += 1;
        self.plan_call(FileCall::Create { file }, 0);
        self.write(File { number: file, size: 0 }, size);
        self.files.push(File { number: file, size });
        self.files_done.created += 1;
        self.files_done.written_bytes += Bytes(u64::from(size));
    }

    /// Returns the index of a random file; there is always one.
    fn pick(&mut self) -> usize {
        self.random.rand_range(0..self.files.len() as u64) as usize
    }

    /// Plans the next transaction.
    fn plan_next(&mut self, now: Time) {
        self.began = now;
        if self.files_done.began.is_none() {
            if (self.files.len() as u32) < self.plan.files {
                return self.create();
            }
            self.files_done.began = Some(now);
        }
        // The last file is kept, so that there is one to read.
        let create = self.random.rand_range(0..10) < u64::from(self.plan.create_bias);
        if create || self.files.len() <= 1 {
            self.create();
        } else {
            let place = self.pick();
            let gone = self.files.swap_remove(place);
            self.plan_call(FileCall::Remove { file: gone.number }, 0);
            self.files_done.deleted += 1;
        }
        let place = self.pick();
        let file = self.files[place];
        self.plan_call(FileCall::LookUp { file: file.number }, file.size);
        if self.random.rand_range(0..10) < u64::from(self.plan.read_bias) {
            self.read(file);
            self.files_done.reads += 1;
            self.files_done.read_bytes += Bytes(u64::from(file.size));
        } else {
            // At most as much as a file of the pool may still grow.
            let room = self.plan.size_max.saturating_sub(file.size).max(1);
            let bytes = 1 + self.random.rand_range(0..u64::from(room)) as u32;
            self.write(file, bytes);
            self.files[place].size = file.size.saturating_add(bytes);
            self.files_done.appends += 1;
            self.files_done.written_bytes += Bytes(u64::from(bytes));
        }
    }

    /// Schedules the next step after a call that succeeded or failed.
    fn go_on(&mut self, now: Time, done: bool) {
        if self.calls.is_empty() {
            if done && self.files_done.began.is_some() {
                self.stats.completed += 1;
                self.stats.times.add(now.since(self.began));
            }
            let ended = self.stats.completed + self.stats.failed;
            if self.plan.transactions.is_some_and(|count| ended >= count) {
                self.stats.done = Some(now);
            }
        }
        self.stats.files = Some(self.files_done);
        if self.stats.done.is_none() {
            self.next = Some(now + self.plan.client);
        }
    }

    /// Makes the next call if it is due and the server can be called.
    fn call(&mut self, now: Time, stack: &mut Stack) -> bool {
        if self.next.is_some_and(|next| next <= now) {
            (self.next, self.pending) = (None, true);
        }
        if !self.pending {
            return false;
        }
        if !self.caller.is_ready(now, stack) {
            return false;
        }
        self.pending = false;
        if self.calls.is_empty() {
            self.plan_next(now);
        }
        if let Some(planned) = self.calls.pop_front() {
            self.caller.say(now, planned.bytes(), &planned.call.emit());
            self.open = Some(planned);
        }
        true
    }

    /// Processes the answer and proceeds.
    fn take_answer(&mut self, now: Time) {
        let Some(planned) = self.open.take() else { return };
        let (done, wrong_bytes) = planned.judge(self.caller.answer());
        self.stats.received.wrong_bytes += wrong_bytes;
        if done && wrong_bytes == 0 {
            self.go_on(now, true);
        } else {
            self.give_up(now, planned);
        }
    }

    /// Ends the transaction after a failed call, and stops using its file.
    fn give_up(&mut self, now: Time, planned: Planned) {
        self.stats.failed += 1;
        self.files.retain(|file| file.number != planned.call.file());
        self.calls.clear();
        self.go_on(now, false);
    }
}

impl App for FileClient {
    fn poll(&mut self, now: Time, stack: &mut Stack) -> bool {
        let called = self.call(now, stack);
        match self.caller.poll(now, stack, &mut self.stats) {
            Progress::None => called,
            Progress::More => true,
            Progress::Answered => {
                self.take_answer(now);
                true
            }
            Progress::Failed => {
                // The call has failed; the client continues with the next transaction, as with a
                // soft mount.
                if let Some(planned) = self.open.take() {
                    self.give_up(now, planned);
                }
                true
            }
        }
    }

    fn connection(&mut self, now: Time, id: ConnectionId, stack: &mut Stack) {
        self.stats.retransmits += stack.tcp.new_retransmits(id);
        if self.caller.owns(now, id, stack) {
            while self.poll(now, stack) {}
        }
    }

    fn deadline(&self) -> Option<Time> {
        [self.next, self.caller.deadline(self.pending)].into_iter().flatten().min()
    }

    fn stop(&mut self, now: Time, stack: &mut Stack) {
        (self.next, self.pending) = (None, false);
        self.caller.close(stack);
        self.stats.done.get_or_insert(now);
    }

    fn stats(&self) -> &FlowStats {
        &self.stats
    }

    fn receive(&mut self, now: Time, datagram: &Datagram<'_>, stack: &mut Stack) -> bool {
        if !self.caller.receive(now, datagram, &mut self.stats) {
            return false;
        }
        self.take_answer(now);
        self.poll(now, stack)
    }

    fn udp_port(&self) -> Option<u16> {
        self.udp_port
    }

    fn source_port(&self) -> Option<u16> {
        self.caller.local_port()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_good_if_the_size_and_every_byte_are_those_that_were_written() {
        let answer = |status: u8, size: u8, data: &[u8]| {
            let mut answer = vec![0, 0, 0, 9, 0, 0, 0, status, 0, 0, 0, size];
            answer.resize(DATA_AT, 0);
            [&answer[..], data].concat()
        };
        let look = Planned { call: FileCall::LookUp { file: 5 }, size: 40 };
        assert_eq!(look.judge(&answer(0, 40, &[])), (true, 0));
        assert_eq!(look.judge(&answer(0, 41, &[])), (false, 0));
        assert_eq!(look.judge(&answer(1, 40, &[])), (false, 0));
        assert_eq!(look.judge(&[]), (false, 0));
        let read = Planned { call: FileCall::Read { file: 5, offset: 30, bytes: 10 }, size: 40 };
        let mut data: Vec<u8> = (30..40).map(|at| byte_of(5, at)).collect();
        assert_eq!(read.judge(&answer(0, 40, &data)), (true, 0));
        assert_eq!(read.judge(&answer(0, 40, &data[..7])), (true, 3));
        data[4] ^= 1;
        assert_eq!(read.judge(&answer(0, 40, &data)), (true, 1));
        assert_eq!(read.bytes().response, DATA_CALL_BYTES + 10);
    }
}
