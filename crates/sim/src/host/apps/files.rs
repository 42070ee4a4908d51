//! A client of a file service that behaves like PostMark (TR3022, Network Appliance 1997).
//!
//! First it creates a pool of files. Then it runs transactions, one after the other; each is
//! a creation or a deletion, and a reading of a whole file or an appending to one, drawn at
//! random with the biases of the plan; files are drawn evenly from those there are. Sizes are
//! uniform between two bounds. Every step is a call to the server, as NFS (RFC 1094) would
//! make it: one call for a creation, a deletion or the look-up of a name, one for each block
//! that is read or written. The server keeps no files: it answers with as many bytes as asked.

use super::caller::{Call, Caller, Progress};
use super::{App, FileStats, FlowStats, Transport};
use crate::host::datagram::Datagram;
use crate::host::stack::Stack;
use axon_wire::{Bytes, Span, Time};
use oorandom::Rand64;
use std::collections::VecDeque;
use std::net::Ipv4Addr;

/// Bytes of a call or an answer without data: RPC header, credentials, a file handle and
/// attributes, about what NFS version 2 sends.
const CALL_BYTES: u32 = 128;
/// What is left of a block's datagram for the call: less than a call without data, so that a
/// block of 1 KiB and its call fit one frame.
const DATA_CALL_BYTES: u32 = 64;

/// PostMark's own settings, for a target and a transport that are to be filled in.
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

/// What a client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilePlan {
    /// The server.
    pub target: Ipv4Addr,
    /// Its port.
    pub port: u16,
    /// How calls travel.
    pub transport: Transport,
    /// After which a call over UDP is sent again.
    pub timeout: Span,
    /// Files before the transactions begin, at least 1.
    pub files: u32,
    /// Transactions; until it is stopped without.
    pub transactions: Option<u64>,
    /// The smallest file and the shortest appending, in bytes.
    pub size_min: u32,
    /// The largest file that is created, in bytes.
    pub size_max: u32,
    /// The most that one call reads or writes, in bytes, at least 1.
    pub block: u32,
    /// Of ten transactions, how many read; the others append.
    pub read_bias: u32,
    /// Of ten transactions, how many create; the others delete.
    pub create_bias: u32,
    /// The client's processor time between an answer and the next call.
    pub client: Span,
    /// Seed of its random numbers.
    pub seed: u64,
}

/// A client at work. The time of each transaction counts, not that of creating the pool.
pub(crate) struct FileClient {
    plan: FilePlan,
    caller: Caller,
    udp_port: Option<u16>,
    random: Rand64,
    /// Sizes of the files there are.
    files: Vec<u32>,
    /// Calls of the open transaction that are still to be made.
    calls: VecDeque<Call>,
    /// When the next call is made; none while one waits for its answer.
    next: Option<Time>,
    /// The next call waits for the way to the server.
    pending: bool,
    began: Time,
    files_done: FileStats,
    stats: FlowStats,
}

impl FileClient {
    pub(crate) fn new(plan: FilePlan, now: Time, stack: &mut Stack) -> FileClient {
        let udp = plan.transport == Transport::Udp;
        let udp_port = udp.then(|| stack.ephemeral_port());
        let server = (plan.target, plan.port);
        FileClient {
            plan,
            caller: Caller::new(server, plan.transport, plan.timeout, udp_port),
            udp_port,
            random: Rand64::new(u128::from(plan.seed)),
            files: Vec::new(),
            calls: VecDeque::new(),
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

    fn plain_call(&mut self) {
        let call = Call { request: CALL_BYTES, response: CALL_BYTES, work: Span::ZERO };
        self.calls.push_back(call);
    }

    /// Calls that move `bytes` bytes, block by block.
    fn data_calls(&mut self, bytes: u32, write: bool) {
        let mut left = bytes;
        while left > 0 {
            let block = left.min(self.plan.block);
            left -= block;
            let (request, response) = match write {
                true => (DATA_CALL_BYTES + block, CALL_BYTES),
                false => (CALL_BYTES, DATA_CALL_BYTES + block),
            };
            self.calls.push_back(Call { request, response, work: Span::ZERO });
        }
    }

    fn create(&mut self) {
        let size = self.size();
        self.plain_call();
        self.data_calls(size, true);
        self.files.push(size);
        self.files_done.created += 1;
        self.files_done.written_bytes += Bytes(u64::from(size));
    }

    /// One of the files, by place; there is always one.
    fn pick(&mut self) -> usize {
        self.random.rand_range(0..self.files.len() as u64) as usize
    }

    /// Puts together the next transaction.
    fn plan_next(&mut self, now: Time) {
        self.began = now;
        if self.files_done.began.is_none() {
            if (self.files.len() as u32) < self.plan.files {
                return self.create();
            }
            self.files_done.began = Some(now);
        }
        // The last file stays, or there would be nothing to read.
        let create = self.random.rand_range(0..10) < u64::from(self.plan.create_bias);
        if create || self.files.len() == 1 {
            self.create();
        } else {
            let place = self.pick();
            self.files.swap_remove(place);
            self.plain_call();
            self.files_done.deleted += 1;
        }
        let place = self.pick();
        self.plain_call();
        if self.random.rand_range(0..10) < u64::from(self.plan.read_bias) {
            let size = self.files[place];
            self.data_calls(size, false);
            self.files_done.reads += 1;
            self.files_done.read_bytes += Bytes(u64::from(size));
        } else {
            // As much as a file of the pool may still grow.
            let room = self.plan.size_max.saturating_sub(self.files[place]).max(1);
            let bytes = 1 + self.random.rand_range(0..u64::from(room)) as u32;
            self.data_calls(bytes, true);
            self.files[place] = self.files[place].saturating_add(bytes);
            self.files_done.appends += 1;
            self.files_done.written_bytes += Bytes(u64::from(bytes));
        }
    }

    /// After an answer: what is next, and when.
    fn go_on(&mut self, now: Time) {
        if self.calls.is_empty() {
            if self.files_done.began.is_some() {
                self.stats.completed += 1;
                self.stats.times.add(now.since(self.began));
            }
            if self.plan.transactions.is_some_and(|count| self.stats.completed >= count) {
                self.stats.done = Some(now);
            }
        }
        self.stats.files = Some(self.files_done);
        if self.stats.done.is_none() {
            self.next = Some(now + self.plan.client);
        }
    }

    /// Makes the next call if it is time and the server can be called.
    fn call(&mut self, now: Time, stack: &mut Stack) -> bool {
        if self.next.is_some_and(|next| next <= now) {
            (self.next, self.pending) = (None, true);
        }
        if !self.pending {
            return false;
        }
        let before = stack.sockets.iter().count();
        if !self.caller.is_ready(stack) {
            return stack.sockets.iter().count() > before;
        }
        self.pending = false;
        if self.calls.is_empty() {
            self.plan_next(now);
        }
        if let Some(call) = self.calls.pop_front() {
            self.caller.ask(now, call);
        }
        true
    }
}

impl App for FileClient {
    fn poll(&mut self, now: Time, stack: &mut Stack) -> bool {
        let called = self.call(now, stack);
        match self.caller.poll(now, stack, &mut self.stats) {
            Progress::None => called,
            Progress::More => true,
            Progress::Answered => {
                self.go_on(now);
                true
            }
            Progress::Failed => {
                // The call is lost; the client goes on with the next, as a soft mount does.
                self.stats.failed += 1;
                self.go_on(now);
                true
            }
        }
    }

    fn deadline(&self) -> Option<Time> {
        [self.next, self.caller.deadline()].into_iter().flatten().min()
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
        self.go_on(now);
        self.poll(now, stack)
    }

    fn udp_port(&self) -> Option<u16> {
        self.udp_port
    }

    fn source_port(&self) -> Option<u16> {
        self.caller.local_port
    }

    fn count_retransmits(&mut self, local_port: u16, segments: u64) {
        if self.caller.local_port == Some(local_port) {
            self.stats.retransmits += segments;
        }
    }
}
